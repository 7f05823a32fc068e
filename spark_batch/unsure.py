"""Where a record may be that is not found: in a topic that cannot be read whole, or where retention was faster (A8). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_batch.model import Verdict
from spark_batch.outcomes import SUBSTITUTES
from spark_batch.plan import DEAD_LETTERS
from spark_batch.verdicts import FIXED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from spark_batch.context import Context
    from spark_batch.outcomes import Expected, Stored
    from spark_batch.plan import Plan

_NEVER = 2**62
"""Beyond every offset."""
_NAMED = 5
"""Partitions that a note names."""


@dataclass(frozen=True, slots=True)
class Unsure:
    """What is not found may be there, or have been there. Small, and picklable."""

    topics: Mapping[int, Verdict] = field(default_factory=dict)
    """Topics from which any record may be gone or hidden, and what to say of a record that is not found there."""
    removed: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(topic, source partition) -> the highest source offset whose output may have stood where retention removed records."""

    def __bool__(self) -> bool:
        return bool(self.topics or self.removed)

    def hides(self, topic: int, source: int, offset: int) -> bool:
        """Whether a record of this source record, in this topic, may be one that cannot be seen."""
        return topic in self.topics or offset <= self.removed.get((topic, source), -1)

    def at(self, source: int, offset: int, short: AbstractSet[int] | None) -> dict[int, Verdict]:
        """The topics in which something of this source record may be, as outcomes.judge_record wants them.

        `short`: topics of which its range's receipt claims more than is there (see `shortage`); None: no receipt says. Where all is there
        that the receipt claims, retention has removed nothing, and no dead letter stood in for outputs.
        """
        found = {
            topic: verdict
            for topic, verdict in self.topics.items()
            if topic != DEAD_LETTERS or short is None or topic in short
        }
        for (topic, number), highest in self.removed.items():
            if number == source and offset <= highest and (short is None or topic in short):
                found.setdefault(topic, Verdict.EXPIRED)
        return found


def shortage(
    claimed: Sequence[int], records: Iterable[tuple[Expected | None, Sequence[Stored], Sequence[Stored]]]
) -> frozenset[int]:
    """Topics of which a receipt claims more than is there. `claimed`: its figures; `records`: of its range, or of a part of it, what must
    be, outputs, dead letters. What is there and must not be does not count.
    """
    there = [0] * len(claimed)
    for expected, outputs, letters in records:
        if expected is None:
            continue
        wanted = {(each.nth, each.topic) for each in expected.outputs}
        for _, topic in wanted & {(each.nth, each.topic) for each in outputs}:
            there[FIXED + topic] += 1
        there[FIXED - 1] += bool(letters) and (expected.letter is not None or letters[0].error in SUBSTITUTES)
    short = {topic for topic in range(len(claimed) - FIXED - 1) if there[FIXED + topic] < claimed[FIXED + topic]}
    return frozenset(short | ({DEAD_LETTERS} if there[FIXED - 1] < claimed[FIXED - 1] else set()))


def unsure_of(context: Context, plan: Plan, firsts: Mapping[tuple[int, int, int], int]) -> Unsure:
    """`firsts`: (output topic, its partition, source partition) -> source offset of the first output that is left; see scanned.What.FIRST.

    Outputs of one source partition stand in its order in every output partition, so what was removed is of no higher offset than the first
    that is left. To which partition an output went is not known (its key may be new), so the highest of all of them counts. Where none is
    left nothing is certain, and neither it is of dead letters: their order is promised to nobody.
    """
    names = {**dict(enumerate(plan.outputs)), DEAD_LETTERS: plan.dead_letters}
    gone = context.cut.compacted | context.recreated
    held = {each.topic for each in context.cut.open_transactions}
    removed: dict[tuple[int, int], int] = {}
    for topic, name in names.items():
        for _, partition in (each for each in plan.removed if each[0] == name):
            for source in range(len(plan.sources)):
                first = _NEVER if topic == DEAD_LETTERS else firsts.get((topic, partition, source), _NEVER)
                removed[topic, source] = max(first, removed.get((topic, source), -1))
    whole = {
        number: Verdict.UNVERIFIABLE if name in gone else Verdict.UNKNOWN
        for number, name in names.items()
        if name in gone | held
    }
    return Unsure(whole, removed)


def removal_note(plan: Plan, records: int) -> str:
    """Why so many source records are expired though they themselves are there."""
    places = [f"{topic} {partition} below offset {end}" for (topic, partition), end in sorted(plan.removed.items())]
    named = ", ".join(places[:_NAMED]) + (f", and {len(places) - _NAMED} more" if len(places) > _NAMED else "")
    return (
        f"of {records} source records something is not there, and may have stood where retention removed outputs or dead letters before "
        f"this audit: partitions {named}. They are expired-unaudited, not missing"
    )
