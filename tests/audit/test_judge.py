"""The judge on what real workers left: complete where all is well, and no more said than is known."""

from __future__ import annotations

import signal
from itertools import pairwise
from typing import TYPE_CHECKING

import orjson
import pytest

from devkit.reader import Reader
from spark_batch.model import Depth, Disorder, ExitCode, Kind, LatencyRow, Range, Verdict
from tests.audit.auditor import Auditor
from tests.support.pipelines import Scene
from tests.support.topics import set_topic
from tests.support.waiting import PATIENCE_S
from worker.topics import RECEIPT_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

RECORDS = 600
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def auditor(spark: SparkSession, bootstrap: str) -> Iterator[Auditor]:
    """Of pipelines on the broker of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECKON_BOOTSTRAP_SERVERS", bootstrap)
        yield Auditor(spark)


@pytest.fixture(scope="module")
def scene(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A pipeline that worked off 600 records, half of them out of transactions, some of which were aborted."""
    with Scene(bootstrap, tmp_path_factory.mktemp("judge"), records=100) as made:
        made.produce(RECORDS // 2)
        made.produce_in_transactions(RECORDS // 2)
        made.drain()
        yield made


def verdicts(scene: Scene) -> dict[Verdict, int]:
    """What the oracle says of every source record."""
    counts = dict.fromkeys((Verdict.EXACTLY_ONCE, Verdict.DEAD_LETTERED, Verdict.FILTERED), 0)
    for source in scene.sources():
        expected = scene.expected(source)
        dead = expected is not None and expected.topic == scene.dead_letters
        counts[Verdict.DEAD_LETTERED if dead else Verdict.EXACTLY_ONCE if expected else Verdict.FILTERED] += 1
    return counts


@pytest.mark.parametrize("depth", [Depth.RECORDS, Depth.CONTENT])
def test_a_healthy_pipeline_is_complete_and_every_record_has_its_verdict(
    scene: Scene, auditor: Auditor, depth: Depth
) -> None:
    judgement = auditor(scene.path, depth)
    assert (judgement.exit_code, judgement.findings, judgement.depth) == (ExitCode.COMPLETE, (), depth)
    assert {v: n for v, n in judgement.totals.items() if v is not Verdict.IN_FLIGHT} == verdicts(scene)
    assert judgement.audited == {p: Range(0, end) for p, end in scene.committed().items()}
    for partition, span in judgement.audited.items():
        strip = [s for s in judgement.stretches if (s.topic, s.partition) == partition]
        assert [s.start for s in strip] == [span.start, *(s.end for s in strip[:-1])]
        assert strip[-1].end == span.end


def test_at_depth_offsets_records_are_claimed_and_nothing_more_is_said_of_them(scene: Scene, auditor: Auditor) -> None:
    judgement = auditor(scene.path, Depth.OFFSETS)
    assert judgement.exit_code is ExitCode.COMPLETE
    assert {v: n for v, n in judgement.totals.items() if v is not Verdict.IN_FLIGHT} == {Verdict.CLAIMED: RECORDS}
    assert judgement.ledger == ()


def test_the_ledger_counts_what_a_plain_consumer_counts(scene: Scene, auditor: Auditor) -> None:
    judgement = auditor(scene.path)
    reader = Reader(scene.bootstrap)
    topics = [scene.sink, scene.dead_letters, scene.receipts]
    places = {p for p in judgement.cut.outputs if p[0] in topics}
    committed, everything = (reader.read(topics, committed=which) for which in (True, False))
    assert {(r.topic, r.partition) for r in judgement.ledger} == places
    for row in judgement.ledger:
        there = sum((r.topic, r.partition) == (row.topic, row.partition) for r in everything)
        shown = sum((r.topic, r.partition) == (row.topic, row.partition) for r in committed)
        assert (row.committed, row.aborted, row.in_flight, row.foreign) == (shown, there - shown, 0, 0)
        assert row.committed + row.aborted + row.markers == row.end - row.start
    assert all(balance.claimed == balance.found > 0 for balance in judgement.balances)


def test_latency_and_late_records_are_what_a_plain_consumer_finds(scene: Scene, auditor: Auditor) -> None:
    """Receipts and source records looked at one by one; half of the source was written in transactions, markers between its records."""
    judgement = auditor(scene.path)
    receipts = [
        orjson.loads(each.value or b"") for each in Reader(scene.bootstrap).read([scene.receipts], committed=True)
    ]
    claims = [(entry, receipt["time_ms"]) for receipt in receipts for entry in receipt["partitions"]]
    latencies: dict[int, list[int]] = {}
    highest: dict[tuple[int, bytes], int] = {}
    late = []
    for source in sorted(scene.sources(), key=lambda each: each.position):
        topic, partition, offset = source.position
        written = [
            time_ms
            for entry, time_ms in claims
            if (entry["topic"], entry["partition"]) == (topic, partition) and entry["from"] <= offset < entry["to"]
        ]
        hour = source.timestamp_ms - source.timestamp_ms % 3_600_000
        latencies.setdefault(hour, []).extend(time_ms - source.timestamp_ms for time_ms in written)
        assert source.key is not None
        before = highest.get((partition, source.key), 0)
        late += [before - source.timestamp_ms] if source.timestamp_ms < before else []
        highest[partition, source.key] = max(before, source.timestamp_ms)
    rows = []
    for hour, found in sorted(latencies.items()):
        ranks = [sorted(found)[-(-len(found) * rank // 100) - 1] for rank in (50, 95, 99)]
        rows.append(LatencyRow(hour, len(found), *map(float, ranks)))
    assert judgement.latency == tuple(rows)
    assert judgement.disorder == (Disorder(scene.source, RECORDS, len(late), max(late, default=0)),)


def test_another_transform_is_no_false_alarm(scene: Scene, auditor: Auditor, tmp_path: Path) -> None:
    """Bitmaps and receipts are judged as before; of content nothing is said."""
    other = tmp_path / scene.path.name
    other.write_text(scene.path.read_text().replace("n * 2", "n * 3"))
    assert auditor(other).exit_code is ExitCode.COMPLETE
    judgement = auditor(other, Depth.CONTENT)
    assert judgement.exit_code is ExitCode.CANNOT_JUDGE
    assert judgement.finding_counts == {Kind.OTHER_TRANSFORM: len(scene.partitions)}
    assert judgement.totals[Verdict.UNVERIFIABLE] == RECORDS


@pytest.mark.long  # two audits and two workers
def test_outputs_from_before_lineage_was_switched_on_are_unverifiable_and_not_missing(
    auditor: Auditor, bootstrap: str, tmp_path: Path
) -> None:
    """Receipts say which those are. Switched off, all of them are compared by content: a header more or less is no difference there."""
    with Scene(bootstrap, tmp_path, records=100) as scene:
        scene.produce(60)
        scene.drain(env={"RECKON_LINEAGE": "false"})
        bare = scene.committed()
        scene.produce(40)
        scene.drain()
        judgement = auditor(scene.path)
        ranges = [(f.kind, f.topic, f.partition, f.offset, f.end) for f in judgement.findings]
        assert ranges == [(Kind.OTHER_TRANSFORM, *place, 0, end) for place, end in sorted(bare.items())]
        assert {f.detail.partition(" wrote")[0] for f in judgement.findings} == {"workers with lineage: false"}
        assert (judgement.exit_code, judgement.totals[Verdict.UNVERIFIABLE]) == (ExitCode.CANNOT_JUDGE, 60)
        assert sum(judgement.totals.values()) == 100
        text = scene.path.read_text()
        scene.path.write_text(f"{text}lineage: false\n")
        off = auditor(scene.path)
        assert (off.exit_code, off.findings, off.totals) == (ExitCode.COMPLETE, (), verdicts(scene))


@pytest.mark.long  # three workers and an audit
def test_workers_whose_clocks_are_wrong_by_a_day_and_jump(auditor: Auditor, bootstrap: str, tmp_path: Path) -> None:
    """No offset, no output and no verdict depends on a clock: one is killed inside a transaction, its successor is wrong, too.

    In a receipt topic as workers create it; one with the workers' times does not take those of tomorrow.
    """
    wrong = {"FAULT_CLOCK_S": "86400"}
    with Scene(bootstrap, tmp_path, partitions=1, records=50) as scene:
        scene.produce(100)
        refused = scene.worker(faults=wrong)
        assert refused.wait(PATIENCE_S) == 1
        assert "a receipt that of the clock here: is it right?" in refused.log_path.read_text()
        set_topic(bootstrap, scene.receipts, RECEIPT_CONFIG)
        scene.produce(300)
        killed = scene.worker(faults=wrong | {"FAULT_KILL": "before_commit:4"})
        assert killed.wait(PATIENCE_S) == -signal.SIGKILL
        successor = scene.worker(faults=wrong)
        scene.produce(300)
        scene.await_drained()
        successor.terminate()
        assert successor.wait(PATIENCE_S) == 0
        assert scene.problems() == []
        # Most receipts are some two days before or after the one before them.
        times = [receipt["time_ms"] for receipt in scene.receipt_values()]
        jumps = [later - sooner for sooner, later in pairwise(times)]
        assert min(jumps) < -DAY_MS < DAY_MS < max(jumps)
        judgement = auditor(scene.path, Depth.CONTENT)
        assert (judgement.exit_code, judgement.findings, judgement.totals) == (ExitCode.COMPLETE, (), verdicts(scene))
        # Latencies are by the broker's clock: by the workers' half of them would be two days longer than the others.
        assert judgement.latency
        assert all(row.p99_ms - row.p50_ms < DAY_MS for row in judgement.latency)
