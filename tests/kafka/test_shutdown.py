"""How a worker ends: signals, exit codes, and what it never says."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from devkit.ports import HOST, Port
from tests.kafka.test_rebalance import owned
from tests.support.pipelines import STEPS, Scene, events, under_load
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from devkit.workers import WorkerProcess

PATIENT = {
    "RECKON_CONSUMER_SESSION_TIMEOUT_MS": "280000",
    "RECKON_CONSUMER_HEARTBEAT_INTERVAL_MS": "300",
    "RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "30000",
    "RECKON_RECORD_BUDGET_MS": "20000",
    "RECKON_START_TIMEOUT_S": "120",
}
"""A group that waits for the dead for longer than any test waits for anything: what happens does not happen because of a timeout. Nor
does one take anything back because the machine is busy."""


@pytest.fixture
def scene(bootstrap: str, tmp_path: Path) -> Iterator[Scene]:
    with Scene(bootstrap, tmp_path, records=200) as scene:
        yield scene


def test_until_drained_waits_for_the_partitions_of_a_worker_that_died(bootstrap: str, tmp_path: Path) -> None:
    """Of two jobs one is killed before its partition is at its end: the other takes it over before it says that all is drained.

    While the gate is there a partition lasts for 100 s at least.
    """
    gate = tmp_path / "gate"
    gate.touch()
    steps = STEPS.replace("]", ", {python: tests.support.gate:passing}]")
    env = {
        "GATE": str(gate),
        "RECKON_RECORD_BUDGET_MS": "6000",
        "RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "7000",
        "RECKON_CONSUMER_SESSION_TIMEOUT_MS": "8000",
    }
    with Scene(bootstrap, tmp_path, records=4, steps=steps) as scene:
        for partition in (0, 1):
            scene.produce(200, partition=partition)
        workers = [scene.worker(name, drain=True, env=env) for name in ("one", "two")]
        await_true(lambda: [owned(worker) for worker in workers] == [1, 1], "one each", PATIENCE_S)
        workers[0].kill()
        assert max(scene.committed().values(), default=0) < 200, "a partition was at its end already"
        gate.unlink()

        assert workers[1].wait(2 * PATIENCE_S) == 0
        assert events(workers[1], "stopped")[0]["drained"] is True
        assert scene.problems() == []


def test_sigterm_under_load_ends_in_order_and_leaves_the_group_at_once(scene: Scene) -> None:
    """Exit code 0, which one that outlasts its grace period has not; another worker has its partition long before its session would have
    ended, and nothing is lost or doubled.
    """
    leaving = scene.worker("leaving", env=PATIENT)
    staying = scene.worker("staying", env=PATIENT)
    await_true(lambda: [owned(leaving), owned(staying)] == [1, 1], "a partition for each", PATIENCE_S)
    with under_load(scene):
        scene.await_committed(400)
        leaving.terminate()
        assert leaving.wait() == 0
        await_true(lambda: owned(staying) == 2, "the other has both partitions", PATIENCE_S)
    scene.await_drained()
    staying.terminate()
    assert staying.wait() == 0
    assert scene.problems() == []


def test_a_second_signal_ends_it_at_once_and_nothing_is_lost(scene: Scene) -> None:
    """Inside a transaction that lasts a minute: the first SIGTERM waits for it, the second one does not."""
    scene.produce(1000)
    env = PATIENT | {"RECKON_CONSUMER_GROUP_INSTANCE_ID": "one", "RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": "270000"}
    worker = scene.worker(faults={"FAULT_DELAY_MS": "60000"}, env=env)
    sink = [(scene.sink, number) for number in range(3)]
    await_true(lambda: any(scene.reader.end_offsets(sink, committed=False).values()), "outputs of an open transaction")
    worker.terminate()
    worker.wait_for_log("stopping")
    assert worker.alive
    worker.terminate()
    assert worker.wait() == 1
    assert len(events(worker, "second stop signal: leaving at once, the open transaction will be aborted")) == 1

    scene.drain(env=env)
    assert scene.problems() == []


def test_exit_code_0_when_drained(scene: Scene) -> None:
    """--until-drained: all that was there at the start is committed; an empty source is drained at once."""
    assert scene.drain(env=PATIENT).wait() == 0
    scene.produce(500)
    (stopped,) = events(scene.drain(env=PATIENT), "stopped")
    assert stopped["drained"] is True
    assert stopped["read"] == 500
    assert scene.problems() == []


def test_exit_code_0_when_the_source_ends_in_aborted_records(scene: Scene) -> None:
    """No record ever comes from the last offsets: the end is known all the same."""
    scene.produce_in_transactions(200, aborted_every=1)
    scene.reader.await_stable([scene.source])
    scene.drain(env=PATIENT)
    assert scene.problems() == []


def test_exit_code_1_when_records_are_gone_before_they_were_read(bootstrap: str, tmp_path: Path) -> None:
    """The group's offset is not in the log any more: the worker stops and says so, it does not skip."""
    with Scene(bootstrap, tmp_path, partitions=1) as scene:
        scene.produce(100)
        scene.drain(env=PATIENT)
        scene.produce(100)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        (future,) = admin.delete_records([TopicPartition(scene.source, 0, 150)]).values()
        future.result(PATIENCE_S)
        worker = scene.worker(drain=True, env=PATIENT)
        assert worker.wait() == 1
        assert f"{scene.source} partition 0: offset 100 of group {scene.name} is not in the log any more" in text(
            worker
        )
        assert {(scene.source, 0): 100} == scene.committed()


def test_a_source_that_was_processed_and_then_expired_is_no_loss(bootstrap: str, tmp_path: Path) -> None:
    """Commit markers behind the last record are committed when the source is quiet; else the log's start would lie beyond our offset."""
    with Scene(bootstrap, tmp_path, partitions=1) as scene:
        scene.produce_in_transactions(100, aborted_every=1000)
        scene.reader.await_stable([scene.source])
        (end,) = scene.reader.end_offsets(scene.partitions).values()
        assert end > 100, "the source has no markers"
        worker = scene.worker(faults={"FAULT_QUIET_S": "1"}, env=PATIENT)
        await_true(lambda: scene.committed() == {(scene.source, 0): end}, "the markers are committed", PATIENCE_S)
        worker.terminate()
        assert worker.wait() == 0
        scene.reader.await_stable([scene.receipts])
        assert [[(p["from"], p["to"], p["read"]) for p in r["partitions"]] for r in scene.receipt_values()][-1] == [
            (100, end, 0)
        ]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        (future,) = admin.delete_records([TopicPartition(scene.source, 0, -1)]).values()
        future.result(PATIENCE_S)

        scene.drain(env=PATIENT)


def test_sigterm_while_waiting_for_a_broker(scene: Scene) -> None:
    """Nothing is in its hands, so it need not wait for the end of its patience: exit code 0."""
    with closing(Port()) as port:
        address = f"{HOST}:{port.number}"
        worker = scene.worker(env={"RECKON_KAFKA_BOOTSTRAP_SERVERS": address, "RECKON_START_TIMEOUT_S": "600"})
        worker.wait_for_log("waiting for a broker")
        worker.terminate()
        assert worker.wait() == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sink:", "sinks:", "sinks"),
        ("p-", "absent-", "does not exist"),
    ],
)
def test_exit_code_2_for_a_bad_pipeline_file_and_for_missing_topics(
    scene: Scene, old: str, new: str, message: str
) -> None:
    """The message names what is wrong; for topics all that are missing."""
    scene.path.write_text(scene.path.read_text().replace(old, new))
    worker = scene.worker()
    assert worker.wait() == 2
    assert message in text(worker)
    if message == "does not exist":
        absent = scene.name.replace("p-", "absent-")
        assert f"source topic {absent}.in does not exist" in text(worker)
        assert f"sink topic {absent}.out does not exist" in text(worker)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RECKON_PRODUCER_REQUEST_TIMEOUT_MS", "soon"),
        ("RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS", "soon"),
        ("RECKON_CONSUMER_NO_SUCH_SETTING", "1"),
        ("RECKON_TRANSACTION_RECORDS", "0"),
    ],
)
def test_exit_code_2_for_a_setting_that_the_client_does_not_take(scene: Scene, name: str, value: str) -> None:
    """Whatever the reason, the setting is named, and there is no traceback."""
    worker = scene.worker(env={name: value})
    assert worker.wait() == 2, worker.tail()
    setting = name.removeprefix("RECKON_").removeprefix("PRODUCER_").removeprefix("CONSUMER_")
    assert setting.replace("_", ".").lower() in text(worker) or name in text(worker)
    assert "Traceback" not in text(worker)


def test_exit_code_3_when_a_twin_is_alive(scene: Scene) -> None:
    """E2: two live workers with one instance id fence each other; one ends and names the setting, the data is exact.

    They fight on equal terms: now and then each of them is fenced for the third time at the same moment, and both end.
    """
    with under_load(scene):
        twins = [
            scene.worker("twin", short=False, env={"RECKON_CONSUMER_HEARTBEAT_INTERVAL_MS": "300"}) for _ in range(2)
        ]
        await_true(lambda: not all(twin.alive for twin in twins), "one of the twins ends", 2 * PATIENCE_S)
        before = sum(scene.committed().values())
        await_true(
            lambda: sum(scene.committed().values()) > before or not any(twin.alive for twin in twins),
            "the other goes on, if it is left",
        )
    for twin in twins:
        twin.terminate()
    codes = [twin.wait() for twin in twins]
    assert sorted(codes) in ([0, 3], [3, 3])
    for twin in (twin for twin, code in zip(twins, codes, strict=True) if code == 3):
        assert "another live worker uses " in text(twin)
        assert "RECKON_INSTANCE_ID" in text(twin)
    scene.drain("twin", env=PATIENT)
    assert scene.problems() == []


def test_exit_code_4_when_a_deploy_pours_the_source_into_the_dead_letters(bootstrap: str, tmp_path: Path) -> None:
    """Nothing of the batch that would pass the limit is committed, no dead letter of it can be read."""
    with Scene(bootstrap, tmp_path, steps='[{filter: "no_such_field > 1"}]') as scene:
        scene.produce(500)
        worker = scene.worker(drain=True, env=PATIENT)
        assert worker.wait() == 4
        assert "of the last" in text(worker)
        assert "nothing of this batch was committed" in text(worker)
        assert [] == scene.outputs() == scene.reader.read([scene.receipts])
        assert scene.committed() == {}


def test_exit_code_5_when_no_broker_answers_at_the_start(scene: Scene) -> None:
    """Within the start timeout, and the address is named."""
    with closing(Port()) as port:  # held, so that nobody else listens there
        address = f"{HOST}:{port.number}"
        worker = scene.worker(env={"RECKON_BOOTSTRAP_SERVERS": address, "RECKON_START_TIMEOUT_S": "1"})
        assert worker.wait() == 5
    assert f"no broker answers at {address} within 1 s" in text(worker)


def test_no_secret_is_ever_logged(scene: Scene) -> None:
    """Neither by a worker that runs with librdkafka's debug output, nor by --print-config, which masks it."""
    secret = "hunter2-is-secret"
    env = {"RECKON_KAFKA_SASL_PASSWORD": secret, "RECKON_KAFKA_SSL_KEY_PASSWORD": secret, "RECKON_LOG_LEVEL": "debug"}
    scene.produce(100)
    worker = scene.drain(env=PATIENT | env | {"RECKON_KAFKA_DEBUG": "conf,security"})
    assert secret not in text(worker)
    shown = scene.worker(env=env, more_args=["--print-config"])
    assert shown.wait() == 0
    assert secret not in text(shown)
    assert "consumer.sasl.password = ******** " in text(shown)
    assert "producer.ssl.key.password = ******** " in text(shown)


def text(worker: WorkerProcess) -> str:
    return worker.log_path.read_text()
