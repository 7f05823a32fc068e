"""One consistent look at a running pipeline, without stopping it and without a false alarm (A1).

The order is the proof: the group's offsets C, then the outputs' high watermarks, then a wait until every last stable offset has reached
them. Offsets and outputs of a transaction are committed together, so whatever C covers lies below those high watermarks, and once no
transaction is open below them a read_committed reader sees all of it. C comes from stable offsets; any other order gives false alarms.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_batch.errors import CannotJudgeError
from spark_batch.model import Cut, OpenTransaction, Range
from transforms.topic_pattern import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spark_batch.kafka_admin import KafkaAdmin, OpenProducer, Topic, Transaction
    from spark_batch.model import Partition
    from transforms.loading import LoadedPipeline

_POLL_S = 0.05
"""Markers land some ten milliseconds after a commit returned (A6): the usual wait is one or two of these."""
_GRACE_S = 5.0
"""After the wait, where no transaction is open: a marker that is being replicated holds its partition back, too."""
_ATTEMPTS = 5
"""Cuts, while source partitions are being added."""
_ENDING = frozenset({"PrepareCommit", "PrepareAbort"})
_ONGOING = "Ongoing"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one pipeline."""

    sources: tuple[str, ...]
    outputs: tuple[str, ...]
    """Everything that its transactions write: outputs, dead letters, receipts; each once."""
    pattern: str | None = None
    """The source's, where it is one: `sources` are those that it takes now."""


def topics_of(loaded: LoadedPipeline, admin: KafkaAdmin) -> Topics:
    """The topics of a pipeline; those that its pattern takes are looked up as the worker does (worker/topics.py).

    Raises CannotJudgeError where a pattern takes none: nothing audited is not the same as nothing found.
    """
    spec = loaded.spec
    written = (*loaded.transform.topics, spec.dead_letter_topic, spec.receipts_topic)
    return _looked_up(admin, Topics(tuple(spec.source.topics), tuple(dict.fromkeys(written)), spec.source.pattern))


def _looked_up(admin: KafkaAdmin, topics: Topics) -> Topics:
    if topics.pattern is None:
        return topics
    pattern = topics.pattern
    sources = tuple(sorted(name for name in admin.names() if matches(pattern, name)))
    if not sources:
        raise CannotJudgeError(f"no topic matches the source's pattern {pattern}")
    return replace(topics, sources=sources)


def take_cut(
    admin: KafkaAdmin, topics: Topics, group: str, wait_s: float, tell: Callable[[str], None] = lambda _stage: None
) -> Cut:
    """Take a cut, waiting at most `wait_s` seconds for transactions that hold the group's offsets back, and as long again for those that
    are open in the outputs.

    Partitions come from the cluster's metadata, new ones included (A9). Raises CannotJudgeError where a topic does not exist, where source
    partitions or topics come and go faster than a cut is taken, and where an output partition has lost its end.
    """
    for _ in range(_ATTEMPTS):
        tell("taking the cut")
        look = _look(admin, topics, group, wait_s)
        # Whatever wrote outputs below the ends read records that were there before: the sources are described last, too. Outputs of a
        # partition that the cut does not know would be orphans, and the next audit would not look for them where they are.
        now = _looked_up(admin, topics)
        if look.sources == _described(admin, now.sources):
            return _settled(admin, look, group, wait_s, tell)
        topics = now
    raise CannotJudgeError(
        f"source partitions or topics appeared, or disappeared, while the cut was taken, {_ATTEMPTS} times in a row: audit again when "
        "nobody is adding any"
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """What is read for a cut, in this order."""

    taken_ms: int
    sources: dict[str, Topic]
    source_start: dict[Partition, int]
    committed: dict[Partition, int]
    outputs: dict[str, Topic]
    high: dict[Partition, int]


def _look(admin: KafkaAdmin, topics: Topics, group: str, wait_s: float) -> _Look:
    taken_ms = round(time.time() * 1000)
    sources = _described(admin, topics.sources)
    source_start = admin.starts(_partitions(sources))
    committed = admin.committed(group, _partitions(sources), wait_s)
    # Outputs are described after C was read: a partition that is new in between may hold what C covers.
    outputs = _described(admin, topics.outputs)
    return _Look(taken_ms, sources, source_start, committed, outputs, admin.ends(_partitions(outputs), committed=False))


def _settled(admin: KafkaAdmin, look: _Look, group: str, wait_s: float, tell: Callable[[str], None]) -> Cut:
    source_end = admin.ends(look.source_start, committed=True)
    began = time.monotonic()
    ends, open_transactions = _await_stable(admin, look.high, began + wait_s, tell)
    waited_s = time.monotonic() - began
    starts = admin.starts(look.high)
    return Cut(
        taken_ms=look.taken_ms,
        group=group,
        committed=look.committed,
        source_start=look.source_start,
        source_end=_await_source(admin, look.committed, source_end, began + wait_s, tell),
        # A log start beyond the pinned end: retention was faster than the wait, nothing of it is left.
        outputs={partition: Range(min(starts[partition], end), end) for partition, end in ends.items()},
        topic_ids={name: topic.id for name, topic in {**look.sources, **look.outputs}.items()},
        compacted=admin.compacted([*look.sources, *look.outputs]),
        waited_s=waited_s,
        open_transactions=tuple(open_transactions),
    )


def moved_starts(admin: KafkaAdmin, cut: Cut) -> dict[Partition, tuple[int, int]]:
    """Log starts that retention has moved since the cut: (then, now) (A8). Looked at after the scan."""
    then = {**cut.source_start, **{partition: span.start for partition, span in cut.outputs.items()}}
    now = admin.starts(then)
    return {partition: (start, now[partition]) for partition, start in then.items() if now[partition] > start}


def _described(admin: KafkaAdmin, names: Sequence[str]) -> dict[str, Topic]:
    found = admin.topics(names)
    if missing := [name for name in names if name not in found]:
        raise CannotJudgeError("\n".join(f"topic {name} does not exist: nothing can be said of it" for name in missing))
    return found


def _partitions(topics: Mapping[str, Topic]) -> list[Partition]:
    return [(name, number) for name, topic in topics.items() for number in range(topic.partitions)]


def _await_stable(
    admin: KafkaAdmin, high: Mapping[Partition, int], deadline: float, tell: Callable[[str], None]
) -> tuple[dict[Partition, int], list[OpenTransaction]]:
    """(end of what is to be read per partition, transactions that hold some of them back).

    After the deadline a partition ends at its last stable offset: a read_committed reader told to go beyond it would hang (A3). Raises
    CannotJudgeError where a partition ends below what was pinned, and no transaction is the reason.
    """
    stable = _stable(admin, high, high)
    grace = deadline + _GRACE_S
    while held := _held(high, stable):
        if time.monotonic() >= deadline:
            # Only what is still open after its coordinator was asked counts: it may have ended meanwhile.
            open_transactions = _open_transactions(admin, held)
            stable = _stable(admin, high, held, stable)
            held = _held(high, stable)
            still = [each for each in open_transactions if (each.topic, each.partition) in held]
            lost = sorted(set(held) - {(each.topic, each.partition) for each in still})
            if not lost:
                return {partition: min(end, stable[partition]) for partition, end in high.items()}, still
            if time.monotonic() >= grace:
                raise CannotJudgeError("\n".join(_lost_end(each, high[each], stable[each]) for each in lost))
        tell(f"waiting for transactions in {len(held)} partitions")
        time.sleep(_POLL_S)
        stable = _stable(admin, high, held, stable)
    return dict(high), []


def _lost_end(partition: Partition, high: int, stable: int) -> str:
    """Offsets went back: what was read for missing may be on a replica that is no leader any more, or nowhere."""
    topic, number = partition
    return (
        f"{topic}[{number}] ended at offset {high} when the cut was taken, and ends at {stable} now, without an open transaction: its "
        "leader has changed, and records were lost, or are not replicated yet. See kafka-topics.sh --describe for its leader and replicas, "
        "and audit again"
    )


def _await_source(
    admin: KafkaAdmin,
    committed: Mapping[Partition, int],
    ends: dict[Partition, int],
    deadline: float,
    tell: Callable[[str], None],
) -> dict[Partition, int]:
    """The source's ends, asked for again where an offset lies beyond: while leaders change, one that lags behind may have answered."""
    while beyond := [partition for partition, offset in committed.items() if offset > ends[partition]]:
        if time.monotonic() >= deadline:
            break
        tell(f"waiting for the ends of {len(beyond)} source partitions, beyond which offsets are committed")
        time.sleep(_POLL_S)
        ends = {**ends, **admin.ends(beyond, committed=True)}
    return ends


def _stable(
    admin: KafkaAdmin,
    high: Mapping[Partition, int],
    ask: Iterable[Partition],
    known: Mapping[Partition, int] | None = None,
) -> dict[Partition, int]:
    return {**(known or high), **admin.ends(ask, committed=True)}


def _held(high: Mapping[Partition, int], stable: Mapping[Partition, int]) -> list[Partition]:
    return [partition for partition, end in high.items() if stable[partition] < end]


def _open_transactions(admin: KafkaAdmin, partitions: Iterable[Partition]) -> list[OpenTransaction]:
    """Who holds these partitions back, hanging ones told from running ones (A12)."""
    producers = admin.open_producers(partitions)
    known = admin.transactions({producer.producer_id for each in producers.values() for producer in each})
    return [
        _named(partition, producer, known.get(producer.producer_id))
        for partition, each in producers.items()
        for producer in each
    ]


def _named(partition: Partition, producer: OpenProducer, transaction: Transaction | None) -> OpenTransaction:
    """KIP-664: it hangs when its coordinator has no such transaction, or not over this partition, and so will never end it."""
    alive = transaction is not None and (
        transaction.state in _ENDING or (transaction.state == _ONGOING and partition in transaction.partitions)
    )
    return OpenTransaction(
        topic=partition[0],
        partition=partition[1],
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        start_offset=producer.start_offset,
        since_ms=producer.last_ms,
        coordinator_state=transaction.state if transaction is not None and alive else None,
        transactional_id=transaction.transactional_id if transaction is not None else None,
    )
