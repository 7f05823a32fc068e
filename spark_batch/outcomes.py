"""What became of one source record: what its transform yields now, against what stands in the topics. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from spark_batch.model import Kind, Verdict
from spark_batch.plan import DEAD_LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SUBSTITUTES = frozenset({"UndeliverableOutput", "TimeBudgetExceeded"})
"""Error classes of dead letters that the worker writes though the transform itself has nothing against the record (E8, E9)."""
_OF_THE_PROCESS = SUBSTITUTES | {"MemoryError", "RecursionError"}
"""Error classes that another process need not come to."""
_PART = 16
"""Bytes per part of a print: 128 bits are enough for what nobody forges."""


class Stored(NamedTuple):
    """An output or a dead letter, expected or found."""

    nth: int
    """Its index among the outputs of its source record."""
    topic: int
    """Number of an output topic, or plan.DEAD_LETTERS."""
    partition: int
    place: int
    """Its offset; -1 where it is expected."""
    print: bytes
    time_ms: int
    """-1: not to be compared (the broker's own time, or none)."""
    error: str = ""
    """Of a dead letter: its class."""


class Expected(NamedTuple):
    """What a source record must become."""

    outputs: Sequence[Stored] = ()
    letter: Stored | None = None


NOTHING = Expected()

Fault: TypeAlias = "tuple[Kind, Stored | None, str]"
"""(kind, the output that is at fault or None for the source record, detail)."""


@dataclass(slots=True)
class Outcome:
    verdict: Verdict | None = None
    """None: there is no such source record."""
    faults: list[Fault] = field(default_factory=list)
    became: Expected = NOTHING
    """What the figures of a right receipt would count: as expected, or the dead letter that took its place."""


def fingerprint(value: bytes | None, key: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """48 bytes: a hash of value, key and headers each, so that what differs can be named."""
    head = sha256()
    for name, content in headers:
        text = name.encode("utf-8", "surrogatepass")
        head.update(b"%d:%b%d:%b" % (len(text), text, -1 if content is None else len(content), content or b""))
    return _hash(value) + _hash(key) + head.digest()[:_PART]


def _hash(data: bytes | None) -> bytes:
    return bytes(_PART) if data is None else sha256(data).digest()[:_PART]


def judge_record(
    expected: Expected | None,
    outputs: Sequence[Stored],
    letters: Sequence[Stored],
    unsure: Mapping[int, Verdict],
    *,
    current: bool,
) -> Outcome:
    """`expected`: None where the source holds no such record. `unsure`: topics in which an output or a dead letter of this record may be,
    or have been, that is not found, and what to say of it then. `current`: whether the transform that wrote the outputs is the one that
    gave `expected`.
    """
    if expected is None:
        gone = "it names a source record that does not exist"
        return Outcome(None, [(Kind.ORPHAN, each, gone) for each in (*outputs, *letters)])
    if not current:
        return _by_number(outputs, letters)
    substitute = not outputs and bool(letters) and letters[0].error in SUBSTITUTES
    if expected.letter is not None or substitute:
        return _dead(expected, outputs, letters, unsure)
    return _alive(expected, outputs, letters, unsure)


def _by_number(outputs: Sequence[Stored], letters: Sequence[Stored]) -> Outcome:
    """Another transform was at work: only what is there twice can be told."""
    outcome = Outcome(Verdict.UNVERIFIABLE, became=Expected(outputs, letters[0] if letters else None))
    seen = set()
    for each in sorted(outputs):
        if each.nth in seen:
            outcome.faults.append((Kind.DUPLICATE, each, "there is another one of the same source record and index"))
        seen.add(each.nth)
    for each in letters[1:]:
        outcome.faults.append((Kind.DUPLICATE, each, "a second dead letter"))
    if outputs and letters:
        outcome.faults.append((Kind.ORPHAN, letters[0], "its source record has outputs"))
    return _settled(outcome)


def _dead(
    expected: Expected, outputs: Sequence[Stored], letters: Sequence[Stored], unsure: Mapping[int, Verdict]
) -> Outcome:
    """A record that must be, or rightly was, dead-lettered."""
    wanted = expected.letter
    outcome = Outcome(Verdict.DEAD_LETTERED, became=Expected(letter=wanted or letters[0]))
    for each in outputs:
        outcome.faults.append((Kind.ORPHAN, each, f"its source record must be dead-lettered ({_error(wanted)})"))
    if wanted is None:
        # Not compared with its source record: a print of every record, for the sake of the few that time out, would double the shuffle.
        outcome.faults += [(Kind.DUPLICATE, each, "a second dead letter") for each in letters[1:]]
    elif letters:
        right = next((each for each in letters if not _differences(wanted, each)), letters[0])
        if differs := _differences(wanted, right):
            outcome.faults.append((Kind.ALTERED, right, f"differs from its source record: {', '.join(differs)}"))
        outcome.faults += [(Kind.DUPLICATE, each, "a second dead letter") for each in letters if each is not right]
    else:
        return _lacking(outcome, [wanted], unsure)
    return _settled(outcome)


def _alive(
    expected: Expected, outputs: Sequence[Stored], letters: Sequence[Stored], unsure: Mapping[int, Verdict]
) -> Outcome:
    """A record that must have outputs, or none on purpose."""
    plain = Verdict.EXACTLY_ONCE if expected.outputs else Verdict.FILTERED
    outcome = Outcome(plain, became=expected)
    if letters and not outputs and expected.outputs:
        detail = f"dead-lettered ({letters[0].error}), though the transform yields outputs"
        outcome.faults.append((Kind.ALTERED, letters[0], detail))
        outcome.faults += [(Kind.DUPLICATE, each, "a second dead letter") for each in letters[1:]]
        return _settled(outcome)
    if not outputs and not letters and DEAD_LETTERS in unsure:
        outcome.verdict = unsure[DEAD_LETTERS]  # whatever it yields, a dead letter may have stood in for it
        return outcome
    slots: dict[int, list[Stored]] = {}
    for each in sorted(outputs):
        slots.setdefault(each.nth, []).append(each)
    lacking = []
    for wanted in expected.outputs:
        found = slots.pop(wanted.nth, [])
        if not found:
            lacking.append(wanted)
            continue
        right = min(found, key=lambda each: _distance(wanted, each))
        if fault := _fault(wanted, right):
            outcome.faults.append(fault)
        outcome.faults += [
            (Kind.DUPLICATE, each, "there is another one of the same source record and index")
            for each in found
            if each is not right
        ]
    for found in slots.values():
        outcome.faults += [(Kind.ORPHAN, each, "its source record yields no such output") for each in found]
    outcome.faults += [(Kind.ORPHAN, each, "its source record must have no dead letter") for each in letters]
    return _lacking(outcome, lacking, unsure)


def _distance(wanted: Stored, found: Stored) -> int:
    """0: it is the one; the higher the less it looks like it."""
    return 2 * bool(_differences(wanted, found)) + (wanted.topic != found.topic)


def _fault(wanted: Stored, found: Stored) -> Fault | None:
    differs = _differences(wanted, found)
    if not differs and wanted.topic == found.topic:
        return None
    if not differs:
        return Kind.MISROUTED, found, "the right output in the wrong topic"
    return Kind.ALTERED, found, f"differs from what the transform yields: {', '.join(differs)}"


def _differences(wanted: Stored, found: Stored) -> list[str]:
    names = ("value", "key", "headers")
    differs = [
        name
        for part, name in enumerate(names)
        if wanted.print[part * _PART : (part + 1) * _PART] != found.print[part * _PART : (part + 1) * _PART]
    ]
    if wanted.time_ms >= 0 and found.time_ms >= 0 and wanted.time_ms != found.time_ms:
        differs.append("timestamp")
    if wanted.topic == DEAD_LETTERS and wanted.error != found.error and found.error not in _OF_THE_PROCESS:
        differs.append("error class")
    return differs


def _lacking(outcome: Outcome, lacking: Sequence[Stored], unsure: Mapping[int, Verdict]) -> Outcome:
    lost = [each for each in lacking if each.topic not in unsure]
    if lost:
        what = ", ".join("its dead letter" if each.topic == DEAD_LETTERS else f"output {each.nth}" for each in lost)
        outcome.faults.append((Kind.MISSING, None, f"{what} is not there"))
    _settled(outcome)
    if lacking and not outcome.faults:
        outcome.verdict = unsure[lacking[0].topic]
    return outcome


def _settled(outcome: Outcome) -> Outcome:
    """The worst of the faults is the record's verdict. An output that should not be does not change what became of the record."""
    kinds = {kind for kind, _, _ in outcome.faults}
    if Kind.MISSING in kinds:
        outcome.verdict = Verdict.MISSING
    elif kinds & {Kind.ALTERED, Kind.MISROUTED}:
        outcome.verdict = Verdict.ALTERED
    elif Kind.DUPLICATE in kinds:
        outcome.verdict = Verdict.DUPLICATE
    return outcome


def _error(letter: Stored | None) -> str:
    return letter.error if letter is not None else "the transform fails"
