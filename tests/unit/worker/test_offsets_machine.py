"""Offset tracking as a state machine: whatever happens, every record is committed exactly once, in order, without a gap.

The world around `Offsets` is simulated: a log with gaps per partition, the group's offsets at the broker, a consumer's fetch position
that moves only when it is told to, other members of the group. The oracle is the list of records that commits made effective.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from worker.offsets import Offsets, Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PARTITIONS: tuple[Partition, ...] = (("in", 0), ("in", 1), ("other", 0))
partitions = st.sampled_from(PARTITIONS)
few = st.integers(1, 4)
gaps = st.lists(st.integers(1, 3), min_size=1, max_size=12)


class Worker(RuleBasedStateMachine):
    """One worker among others."""

    offsets_class: type[Offsets] = Offsets

    @initialize(logs=st.tuples(gaps, gaps, gaps), first=st.integers(0, 5))
    def begin(self, logs: tuple[list[int], ...], first: int) -> None:
        self.log: dict[Partition, list[int]] = {}
        for partition, steps in zip(PARTITIONS, logs, strict=True):
            offset = first
            self.log[partition] = [offset := offset + step for step in steps]
        self.effective: dict[Partition, list[int]] = {p: [] for p in PARTITIONS}
        self.broker: dict[Partition, int] = {}
        self.restart()

    def restart(self) -> None:
        self.offsets = self.offsets_class()
        self.fetch: dict[Partition, int] = {}
        self.batch: dict[Partition, list[int]] = {}

    @precondition(lambda self: len(self.fetch) < len(PARTITIONS))
    @rule(partition=partitions)
    def assign(self, partition: Partition) -> None:
        if partition in self.fetch:
            return
        assert partition not in self.offsets.owned
        start = self.broker.get(partition, 0)
        self.offsets.assign({partition: start})
        self.fetch[partition] = start

    @precondition(lambda self: self.fetch)
    @rule(partition=partitions, most=few)
    def deliver(self, partition: Partition, most: int) -> None:
        """The consumer hands over records from its position on; the worker takes what it wants of them."""
        if partition not in self.fetch:
            return
        run = [o for o in self.log[partition] if o >= self.fetch[partition]][:most]
        if run:
            self.fetch[partition] = run[-1] + 1
        self.take(partition, run)

    @rule(partition=partitions, most=few)
    def deliver_again(self, partition: Partition, most: int) -> None:
        """Records of an earlier fetch come late, also of partitions that are gone."""
        self.take(partition, [o for o in self.log[partition] if o < self.fetch.get(partition, 99)][-most:])

    def take(self, partition: Partition, run: list[int]) -> None:
        wanted = self.offsets.wanted(partition)
        taken = [] if wanted is None else [o for o in run if o >= wanted]
        if taken:
            self.offsets.read(partition, taken[-1])
            self.batch.setdefault(partition, []).extend(taken)

    @precondition(lambda self: self.batch)
    @rule()
    def commit(self) -> None:
        self.commit_at_broker()
        self.offsets.committed()
        self.batch = {}

    def commit_at_broker(self) -> None:
        ranges = self.offsets.ranges()
        assert set(self.batch) == set(ranges)
        for partition, (start, end) in ranges.items():
            assert self.broker.get(partition, 0) == start, "ranges of transactions tile the partition"
            self.broker[partition] = end
            self.effective[partition] += self.batch[partition]

    @precondition(lambda self: self.batch)
    @rule()
    def abort(self) -> None:
        self.seek(self.offsets.rewind())
        self.batch = {}

    def seek(self, seeks: Mapping[Partition, int]) -> None:
        for partition, offset in seeks.items():
            self.fetch[partition] = offset

    @precondition(lambda self: self.batch)
    @rule(took_place=st.booleans(), partition=partitions, ahead=st.integers(0, 3))
    def commit_unknown(self, took_place: bool, partition: Partition, ahead: int) -> None:  # noqa: FBT001 - drawn by hypothesis
        """EndTxn's answer is lost; before we ask, another member may have got a partition and gone on."""
        ranges = self.offsets.ranges()
        if took_place:
            self.commit_at_broker()
        if partition in ranges:
            self.others_commit(partition, ahead)
        self.seek(self.offsets.resolve({p: self.broker[p] for p in ranges if p in self.broker}))
        self.batch = {}

    def others_commit(self, partition: Partition, most: int) -> None:
        run = [o for o in self.log[partition] if o >= self.broker.get(partition, 0)][:most]
        if run:
            self.broker[partition] = run[-1] + 1
            self.effective[partition] += run

    @precondition(lambda self: self.fetch)
    @rule(partition=partitions, ahead=st.integers(0, 3))
    def revoke_or_lose(self, partition: Partition, ahead: int) -> None:
        """The partition is not ours any more; lost ones have been read on by their new owner before we hear of it."""
        self.others_commit(partition, ahead if partition in self.fetch else 0)
        self.offsets.release([partition])
        self.fetch.pop(partition, None)
        self.batch.pop(partition, None)

    @rule()
    def crash(self) -> None:
        self.restart()

    @invariant()
    def effective_records_are_a_prefix_of_the_log(self) -> None:
        for partition, records in self.effective.items():
            assert self.log[partition][: len(records)] == records

    def teardown(self) -> None:
        """From wherever it stopped, a drain commits the rest and nothing twice."""
        if not hasattr(self, "log"):
            return
        self.seek(self.offsets.rewind())
        self.batch = {}
        for partition in PARTITIONS:
            self.assign(partition)
            self.deliver(partition, 99)
        self.commit_at_broker()
        assert self.log == self.effective


def test_every_record_is_committed_exactly_once() -> None:
    """No sequence of deliveries, commits, aborts, rebalances, losses, unknown outcomes and crashes loses or doubles a record."""
    run_state_machine_as_test(
        Worker, settings=settings(max_examples=60, stateful_step_count=30, deadline=None, database=None)
    )


class SeeksNothing(Offsets):
    def rewind(self) -> dict[Partition, int]:
        super().rewind()
        return {}


class SeeksPastTheBatch(Offsets):
    def rewind(self) -> dict[Partition, int]:
        ends = {p: end for p, (_, end) in self.ranges().items()}
        super().rewind()
        return ends


class ForgetsToRewindItself(Offsets):
    def rewind(self) -> dict[Partition, int]:
        return {p: start for p, (start, _) in self.ranges().items()}


class CommitsNothing(Offsets):
    def committed(self) -> None:
        pass


class KeepsWhatIsReleased(Offsets):
    def release(self, partitions: Iterable[Partition]) -> None:
        pass


class ReadsOffByOne(Offsets):
    def read(self, partition: Partition, last: int) -> None:
        super().read(partition, last)
        self._positions[partition].read = last


class TakesUnknownForCommitted(Offsets):
    def resolve(self, committed: Mapping[Partition, int]) -> dict[Partition, int]:
        self.committed()
        return {}


class TakesUnknownForAborted(Offsets):
    def resolve(self, committed: Mapping[Partition, int]) -> dict[Partition, int]:
        return self.rewind()


@pytest.mark.parametrize(
    "broken",
    [
        SeeksNothing,
        SeeksPastTheBatch,
        ForgetsToRewindItself,
        CommitsNothing,
        KeepsWhatIsReleased,
        ReadsOffByOne,
        TakesUnknownForCommitted,
        TakesUnknownForAborted,
    ],
)
def test_the_machine_fails_on_broken_tracking(broken: type[Offsets]) -> None:
    """The verifier is no rubber stamp: each of these mistakes makes it fail."""
    machine = type(f"Worker{broken.__name__}", (Worker,), {"offsets_class": broken})

    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=200,
                stateful_step_count=30,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
