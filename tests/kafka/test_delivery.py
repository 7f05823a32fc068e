"""What arrives: keys, headers, timestamps, tombstones, lineage, partitions, receipts, and what becomes of outputs that cannot arrive."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.support.broker import create_topics
from tests.support.pipelines import EPOCH_MS, LASTING, Scene, events
from tests.support.waiting import PATIENCE_S
from worker.dead_letter import WORKER_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from devkit.verify import StoredRecord
    from devkit.workers import WorkerProcess

COPY = "[]"

UNHURRIED = LASTING | {"RECKON_RECORD_BUDGET_MS": "20000", "RECKON_START_TIMEOUT_S": "120"}
"""Nothing here is about timeouts: none may make a transaction be taken back and a record be read twice because the machine is busy."""


@pytest.fixture
def scene(bootstrap: str, tmp_path: Path) -> Iterator[Scene]:
    """A pipeline that copies, one partition to one."""
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1, steps=COPY) as scene:
        yield scene


def send(scene: Scene, *records: dict[str, Any]) -> None:
    """In this order, each once, and as one batch if it is large enough: small ones are then fetched, and committed, together."""
    producer = Producer(
        {
            "bootstrap.servers": scene.bootstrap,
            "message.max.bytes": 10_000_000,
            "enable.idempotence": True,
            "linger.ms": 60_000,  # flush() sends at once
            "on_delivery": _delivered,
        }
    )
    for number, record in enumerate(records):
        producer.produce(scene.source, **{"partition": 0, "timestamp": EPOCH_MS + number, **record})
    assert producer.flush(PATIENCE_S) == 0


def _delivered(error: KafkaError | None, _message: Message) -> None:
    assert error is None, error


def drain(scene: Scene, env: Mapping[str, str] | None = None) -> WorkerProcess:
    return scene.drain(short=False, env={**UNHURRIED, **(env or {})})


def in_topic(scene: Scene, topic: str) -> list[StoredRecord]:
    return [record for record in scene.outputs() if record.topic == topic]


def noise(size: int) -> str:
    """Text that no compression makes small."""
    return random.Random(size).randbytes(size // 2).hex()


def test_e9_a_record_that_outlasts_its_budget_is_a_dead_letter(bootstrap: str, tmp_path: Path) -> None:
    """Its neighbours, of the same batch, are outputs."""
    steps = "[{python: tests.support.gate:endless}]"
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1, steps=steps) as scene:
        values = [b'{"n": 1}', b'{"n": 2, "endless": true}', b'{"n": 3}']
        send(scene, *({"value": value} for value in values))
        drain(scene, {"RECKON_RECORD_BUDGET_MS": "2000"})
        outputs, letters = in_topic(scene, scene.sink), in_topic(scene, scene.dead_letters)

    assert [json.loads(record.value or b"")["n"] for record in outputs] == [1, 3]
    assert [letter.value for letter in letters] == [values[1]]
    assert dict(letters[0].headers)["reckon.error.class"] == b"TimeBudgetExceeded"


def test_key_headers_timestamp_and_tombstone_are_kept(scene: Scene) -> None:
    """Also an empty value, which is no tombstone, a null key, and headers that are doubled, empty or null."""
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None), ("bin", b"\x00\xff")]
    send(
        scene,
        {"value": b"\x00raw", "key": b"k\x00", "headers": headers},
        {"value": None, "key": b"gone", "headers": headers[:1]},
        {"value": b"", "key": None},
        {"value": b"x", "key": b""},
    )
    drain(scene)
    lineage = [("reckon.source", f"{scene.source}/0/{offset}/0".encode()) for offset in range(4)]
    assert [
        (b"k\x00", b"\x00raw", (*headers, lineage[0]), EPOCH_MS),
        (b"gone", None, (*headers[:1], lineage[1]), EPOCH_MS + 1),
        (None, b"", (lineage[2],), EPOCH_MS + 2),
        (b"", b"x", (lineage[3],), EPOCH_MS + 3),
    ] == [(r.key, r.value, r.headers, r.timestamp_ms) for r in in_topic(scene, scene.sink)]


@pytest.mark.parametrize(("lineage", "expected"), [("true", "own"), ("false", "none")])
def test_a_lineage_header_of_an_upstream_pipeline_is_replaced(scene: Scene, lineage: str, expected: str) -> None:
    """It names the record's grandparent; with lineage off there is none rather than a wrong one."""
    send(scene, {"value": b"v", "headers": [("reckon.source", b"elsewhere/7/7/0"), ("mine", b"1")]}, {"value": b"w"})
    drain(scene, {"RECKON_LINEAGE": lineage})
    own = [(("reckon.source", f"{scene.source}/0/{n}/0".encode()),) if expected == "own" else () for n in (0, 1)]
    assert [(("mine", b"1"), *own[0]), own[1]] == [record.headers for record in in_topic(scene, scene.sink)]
    assert [receipt["lineage"] for receipt in scene.receipt_values()] == [expected == "own"]


def test_keys_go_to_the_partitions_where_javas_clients_put_them(bootstrap: str, tmp_path: Path) -> None:
    """Judged by an implementation of its own, which is right on the values in Kafka's UtilsTest.testMurmur2."""
    vectors = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    assert vectors == {key: murmur2(key) for key in vectors}
    keys = [*vectors, *(f"user-{n}".encode() for n in range(200)), b"", b"\xff\x00"]
    with Scene(bootstrap, tmp_path, partitions=1, sinks=7, steps=COPY) as scene:
        send(scene, *({"value": b"v", "key": key} for key in keys))
        drain(scene)
        expected = {key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in keys}
        assert expected == {r.key: r.partition for r in in_topic(scene, scene.sink)}


def murmur2(data: bytes) -> int:
    """MurmurHash2 with Kafka's seed, as a signed 32-bit number; written from the algorithm's description."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if tail := data[whole:]:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def test_a_dead_letter_is_the_source_record_with_eight_headers(bootstrap: str, tmp_path: Path) -> None:
    """Key, value, headers and timestamp untouched, and what went wrong, where, in which line of the file."""
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1) as scene:
        send(
            scene,
            {"value": b'{"n": 1}', "key": b"good"},
            {"value": b"\xff no json", "key": b"k\x00", "headers": [("mine", b"\x01"), ("none", None)]},
            {"value": b'{"m": 1}', "key": None},
        )
        drain(scene)
        line = next(n for n, text in enumerate(scene.path.read_text().splitlines(), 1) if text.startswith("steps:"))
        (decode, field) = in_topic(scene, scene.dead_letters)
        if decode.key is None:
            decode, field = field, decode
        assert (decode.key, decode.value, decode.timestamp_ms) == (b"k\x00", b"\xff no json", EPOCH_MS + 1)
        assert decode.headers[:2] == (("mine", b"\x01"), ("none", None))
        headers = dict(decode.headers[2:])
        assert (headers.pop("reckon.error.message") or b"").startswith(b"not JSON: ")
        assert {
            "reckon.error.class": b"DecodeError",
            "reckon.step": b"decode",
            "reckon.pipeline.line": b"0",
            "reckon.source.topic": scene.source.encode(),
            "reckon.source.partition": b"0",
            "reckon.source.offset": b"1",
            "reckon.worker.version": WORKER_VERSION.encode(),
        } == headers

        assert (field.key, field.value, field.timestamp_ms) == (None, b'{"m": 1}', EPOCH_MS + 2)
        assert (
            ("reckon.error.class", b"CelError"),
            ("reckon.error.message", b'no such field: "n"'),
            ("reckon.step", b"steps[0] filter"),
            ("reckon.pipeline.line", str(line).encode()),
            ("reckon.source.topic", scene.source.encode()),
            ("reckon.source.partition", b"0"),
            ("reckon.source.offset", b"2"),
            ("reckon.worker.version", WORKER_VERSION.encode()),
        ) == field.headers


def test_a_receipt_says_what_one_transaction_did(bootstrap: str, tmp_path: Path) -> None:
    """Two outputs, one filtered record, one dead letter, from offsets 0 to 4."""
    with Scene(bootstrap, tmp_path, partitions=1) as scene:
        send(scene, {"value": b'{"n": 1}'}, {"value": b'{"n": 3}'}, {"value": b"bad"}, {"value": None, "key": b"k"})
        worker = drain(scene)
        (starting,) = events(worker, "starting")
        (record,) = scene.reader.read([scene.receipts])
        receipt = json.loads(record.value or b"")
        assert record.key == f"{scene.name}/one".encode()
        assert len(receipt.pop("incarnation")) == 36
        assert receipt.pop("time_ms") == record.timestamp_ms
        assert len(receipt["partitions"][0].pop("topic_id")) == 22
        assert receipt == {
            "schema": 1,
            "pipeline": scene.name,
            "transactional_id": f"{scene.name}/one",
            "sequence": 1,
            "transform": starting["transform"],
            "worker": WORKER_VERSION,
            "lineage": True,
            "partitions": [
                {
                    "topic": scene.source,
                    "partition": 0,
                    "from": 0,
                    "to": 4,
                    "read": 4,
                    "filtered": 1,
                    "dead_lettered": 1,
                    "written": {scene.sink: 2},
                }
            ],
        }


def test_until_drained_takes_what_was_there_and_a_second_run_takes_the_rest(scene: Scene) -> None:
    """Receipts of both runs tile the source; a third run has nothing to do and writes nothing."""
    for records in (300, 200, 0):
        send(scene, *({"value": b"{}", "key": str(n).encode()} for n in range(records)))
        (stopped,) = events(drain(scene), "stopped")
        assert (True, records) == (stopped["drained"], stopped["read"])
    ranges = [(part["from"], part["to"]) for r in scene.receipt_values() for part in r["partitions"]]
    assert (ranges[0][0], ranges[-1][1]) == (0, 500)
    assert [end for _, end in ranges[:-1]] == [start for start, _ in ranges[1:]]
    assert len(in_topic(scene, scene.sink)) == 500


def test_e8_an_output_that_the_broker_refuses_diverts_its_input(bootstrap: str, tmp_path: Path) -> None:
    """A sink that takes 2000 bytes: of many neighbours in one batch the one too large goes to the dead letters, all others arrive once."""
    with Scene(bootstrap, tmp_path, partitions=1, steps='[{set: {pad: "text"}}]') as scene:
        small = f"{scene.name}.small"
        create_topics(bootstrap, {small: 1}, {"max.message.bytes": "20000"})
        scene.path.write_text(scene.path.read_text().replace(f"topic: {scene.sink}", f"topic: {small}"))
        values = [json.dumps({"n": n, "text": noise(60_000) if n in (70, 301) else "x"}).encode() for n in range(500)]
        send(scene, *({"value": value, "key": b"k"} for value in values))
        worker = drain(scene)

        arrived = [json.loads(record.value or b"")["n"] for record in scene.reader.read([small])]
        assert [n for n in range(500) if n not in (70, 301)] == arrived
        dead = in_topic(scene, scene.dead_letters)
        assert sorted([values[70], values[301]]) == sorted(record.value or b"" for record in dead)
        for record in dead:
            headers = dict(record.headers)
            assert (headers["reckon.error.class"], headers["reckon.step"]) == (b"UndeliverableOutput", b"sink")
            assert (headers["reckon.error.message"] or b"").startswith(b"MSG_SIZE_TOO_LARGE")
        assert events(worker, "aborting")
        parts = [part for receipt in scene.receipt_values() for part in receipt["partitions"]]
        assert (sum(p["read"] for p in parts), sum(p["dead_lettered"] for p in parts)) == (500, 2)


def test_e8_an_output_that_the_client_refuses_diverts_its_input(bootstrap: str, tmp_path: Path) -> None:
    """An output beyond the producer's message.max.bytes, of an input within: only the transform made it too large."""
    steps = '[{set: {a: "text", b: "text", c: "text"}}]'
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1, steps=steps) as scene:
        values = [json.dumps({"n": n, "text": noise(6_000) if n == 7 else "x"}).encode() for n in range(20)]
        send(scene, *({"value": value, "key": b"k"} for value in values))
        drain(scene, {"RECKON_PRODUCER_MESSAGE_MAX_BYTES": "10000"})
        arrived = [json.loads(record.value or b"")["n"] for record in in_topic(scene, scene.sink)]
        assert [n for n in range(20) if n != 7] == arrived
        assert [values[7]] == [record.value for record in in_topic(scene, scene.dead_letters)]


def test_e8_a_dead_letter_that_cannot_be_delivered_stops_the_worker(bootstrap: str, tmp_path: Path) -> None:
    """Exit code 1, the record and the remedy are named, nothing is committed: a record is not dropped for want of a place."""
    with Scene(bootstrap, tmp_path, partitions=1, sinks=1) as scene:
        send(scene, {"value": b'{"n": 1}'}, {"value": ("no json" + noise(6_000)).encode()})
        worker = scene.worker(drain=True, short=False, env=UNHURRIED | {"RECKON_PRODUCER_MESSAGE_MAX_BYTES": "5000"})
        assert worker.wait() == 1
        said = worker.log_path.read_text()
        assert f"the dead letter of {scene.source}[0] offset 1 cannot be delivered to {scene.dead_letters}: " in said
        assert "raise the topic's max.message.bytes and the producer's message.max.bytes" in said
        assert scene.outputs() == []
        assert scene.committed() == {}
