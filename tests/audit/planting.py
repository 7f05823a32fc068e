"""Defects, each with the exact findings that an audit must report for it.

A plant spoils a `World`'s plan before it is written, or its topics afterwards (`After`), and returns a function that says, once all is
written, what must be found. What a finding's place is, by kind:

- what is missing: the source record; RECEIPT_MISSING: the unclaimed source range; RECEIPT_OVERLAP: the source range claimed twice;
  RECEIPT_MISMATCH: the receipt's source range;
- what is there and should not be, or differs: the record in the output topic or the dead letters, with the source record that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from spark_batch.model import Depth, Finding, Kind
from worker.lineage import HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.audit.world import Fate, Part, Place, Planned, World


class Expected(NamedTuple):
    """A finding without its prose."""

    kind: Kind
    topic: str
    partition: int
    offset: int | None
    end: int | None = None
    """None for a single offset."""
    source: Place | None = None


Reveal: TypeAlias = "Callable[[], list[Expected]]"
Plant: TypeAlias = "Callable[[World], Reveal]"


@dataclass(frozen=True, slots=True)
class PlantKind:
    name: str
    plant: Plant
    depths: frozenset[Depth]
    """Where it must be found. CONTENT finds all; below, some cannot be seen."""


KINDS: dict[str, PlantKind] = {}
"""Defects of records and receipts: any number of them fits into one world."""

_ALL = frozenset(Depth)
_RECORDS = frozenset({Depth.RECORDS, Depth.CONTENT})
_CONTENT = frozenset({Depth.CONTENT})


def _kind(depths: frozenset[Depth]) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        name = plant.__name__.strip("_")
        KINDS[name] = PlantKind(name, plant, depths)
        return plant

    return register


# How findings are compared


def found(findings: Iterable[Finding]) -> list[Expected]:
    """An audit's findings in the form of `Expected`."""
    return [_bare(finding) for finding in findings]


_OF_OUTPUTS = frozenset({Kind.DUPLICATE, Kind.ALTERED, Kind.MISROUTED, Kind.REORDERED, Kind.ORPHAN})


def _bare(finding: Finding) -> Expected:
    single = finding.end is None or (finding.offset is not None and finding.end == finding.offset + 1)
    of_range = finding.kind in (Kind.RECEIPT_MISSING, Kind.RECEIPT_OVERLAP, Kind.RECEIPT_MISMATCH)
    source = finding.source if finding.kind in _OF_OUTPUTS else None
    end = None if single and not of_range else finding.end
    return Expected(finding.kind, finding.topic, finding.partition, finding.offset, end, source)


_OF_RANGES = frozenset(
    {
        "dead_in_place_of_output",
        "missing_and_denied",
        "receipt_doubled",
        "receipt_figures",
        "receipt_missing",
        "receipt_overlapping",
    }
)


def sow(world: World, kinds: Iterable[PlantKind]) -> list[tuple[PlantKind, Reveal]]:
    """Plant one defect per entry, those first that need a receipt's range to themselves."""
    ordered = sorted(kinds, key=lambda kind: kind.name not in _OF_RANGES)
    return [(kind, kind.plant(world)) for kind in ordered]


def expected_at(depth: Depth, planted: Iterable[tuple[PlantKind, Reveal]]) -> list[Expected]:
    """What an audit of that depth must find of them."""
    return [expected for kind, reveal in planted if depth in kind.depths for expected in reveal()]


def _missing(fate: Fate) -> Expected:
    return Expected(Kind.MISSING, *fate.place)


def _at(kind: Kind, planned: Planned, source: Place | None) -> Expected:
    return Expected(kind, *planned.place, source=source)


# Which source records a plant may take


def _one_output(fate: Fate) -> bool:
    return len(fate.outputs) == 1 and fate.letter is None


def _fan_out(fate: Fate) -> bool:
    return len(fate.outputs) > 1


def _any_output(fate: Fate) -> bool:
    return bool(fate.outputs)


def _dead(fate: Fate) -> bool:
    return fate.letter is not None and not fate.diverted


def _filtered(fate: Fate) -> bool:
    return fate.filtered


def _lineage(place: Place, index: int = 0) -> tuple[str, str]:
    topic, partition, offset = place
    return HEADER, f"{topic}/{partition}/{offset}/{index}"


def _relabel(planned: Planned, header: tuple[str, str] | None) -> None:
    planned.headers = [h for h in planned.headers if h[0] != HEADER] + ([header] if header else [])


# Outputs


@_kind(_RECORDS)
def missing_output(world: World) -> Reveal:
    """The receipt counts it, as the worker made it."""
    fate = world.pick(_one_output)
    fate.part.messages.remove(fate.outputs[0])
    return lambda: [_missing(fate)]


@_kind(_RECORDS)
def missing_one_of_several(world: World) -> Reveal:
    fate = world.pick(_fan_out)
    fate.part.messages.remove(world.dice.choice(fate.outputs))
    return lambda: [_missing(fate)]


@_kind(_RECORDS)
def missing_all_of_several(world: World) -> Reveal:
    fate = world.pick(_fan_out)
    for planned in fate.outputs:
        fate.part.messages.remove(planned)
    return lambda: [_missing(fate)]


@_kind(_CONTENT)
def missing_and_denied(world: World) -> Reveal:
    """A worker that takes a record for filtered: topics and receipt agree, only the transform knows better."""
    fate = _own_range(world)
    fate.part.messages.remove(fate.outputs[0])
    fate.part.filtered += 1
    fate.part.written[fate.outputs[0].topic] -= 1
    return lambda: [_missing(fate)]


def _own_range(world: World) -> Fate:
    """A record whose receipt's range is spared by all other plants: with a receipt that agrees with one defect and not with another, its
    figures would be neither those of what is there nor of what must be, and it would be a finding of its own."""
    part = world.pick_part(lambda p: any(map(_one_output, p.fates)))
    return next(filter(_one_output, part.fates))


@_kind(_RECORDS)
def doubled_at_once(world: World) -> Reveal:
    fate = world.pick(_any_output)
    planned = world.dice.choice(fate.outputs)
    copy = planned.copy()
    fate.part.messages.insert(fate.part.messages.index(planned) + 1, copy)
    return lambda: [_at(Kind.DUPLICATE, copy, fate.place)]


@_kind(_RECORDS)
def doubled_later(world: World) -> Reveal:
    """In another transaction: a copy that stands late is a duplicate, no disorder."""
    fate = world.pick(_any_output)
    copy = world.dice.choice(fate.outputs).copy()
    _later(world, fate.part, copy)
    return lambda: [_at(Kind.DUPLICATE, copy, fate.place)]


@_kind(_RECORDS)
def doubled_elsewhere(world: World) -> Reveal:
    """In a higher partition of the topic; of copies the one with the lowest (partition, offset) counts as the first."""

    def has_room(planned: Planned) -> bool:
        return planned.topic == world.out and planned.partition + 1 < world.sinks[world.out]

    fate = world.pick(lambda f: any(map(has_room, f.outputs)))
    planned = next(filter(has_room, fate.outputs))
    copy = planned.copy()
    copy.partition += 1
    _later(world, fate.part, copy)
    return lambda: [_at(Kind.DUPLICATE, copy, fate.place)]


@_kind(_RECORDS)
def tripled(world: World) -> Reveal:
    fate = world.pick(_one_output)
    copies = [fate.outputs[0].copy(), fate.outputs[0].copy()]
    for copy in copies:
        _later(world, fate.part, copy)
    return lambda: [_at(Kind.DUPLICATE, copy, fate.place) for copy in copies]


@_kind(_RECORDS)
def doubled_and_missing(world: World) -> Reveal:
    """In one receipt range, topic and bucket of offsets: they must not cancel."""
    one = world.pick(lambda f: _one_output(f) and _kin(f) is not None)
    two = _kin(one)
    assert two is not None
    world.take(two)
    copy = one.outputs[0].copy()
    one.part.messages.insert(one.part.messages.index(one.outputs[0]) + 1, copy)
    two.part.messages.remove(two.outputs[0])
    return lambda: [_at(Kind.DUPLICATE, copy, one.place), _missing(two)]


def _kin(fate: Fate, *, behind: bool = False, same_partition: bool = False) -> Fate | None:
    """An untouched record of the same receipt range whose one output goes to the same topic; `behind` it, and to the same partition."""
    mine = fate.outputs[0]
    for other in fate.part.fates:
        if other is fate or other.touched or not _one_output(other) or other.outputs[0].topic != mine.topic:
            continue
        if behind and other.place < fate.place:
            continue
        if not same_partition or other.outputs[0].partition == mine.partition:
            return other
    return None


def _later(world: World, part: Part, planned: Planned) -> None:
    """Behind everything else of a later transaction, or of the same one."""
    at = world.transactions.index(world.transaction_of(part))
    world.dice.choice(world.transactions[at:]).late.append(planned)


@_kind(_CONTENT)
def altered_value(world: World) -> Reveal:
    """One bit."""
    fate = world.pick(lambda f: any(p.value for p in f.outputs))
    planned = fate.outputs[0]
    planned.value = _flipped(world, planned.value)
    return lambda: [_at(Kind.ALTERED, planned, fate.place)]


def _flipped(world: World, data: bytes | None) -> bytes:
    assert data
    spot = world.dice.randrange(len(data))
    return data[:spot] + bytes([data[spot] ^ 1 << world.dice.randrange(8)]) + data[spot + 1 :]


@_kind(_CONTENT)
def altered_null(world: World) -> Reveal:
    """A tombstone became an empty value, or a value a tombstone: both hash to nothing if one is careless."""
    fate = world.pick(_any_output)
    planned = world.dice.choice(fate.outputs)
    planned.value = b"" if planned.value is None else None
    return lambda: [_at(Kind.ALTERED, planned, fate.place)]


@_kind(_CONTENT)
def altered_key(world: World) -> Reveal:
    """It stays in its partition."""
    fate = world.pick(_any_output)
    planned = world.dice.choice(fate.outputs)
    planned.key = world.dice.choice([k for k in (None, b"", b"kx") if k != planned.key])
    return lambda: [_at(Kind.ALTERED, planned, fate.place)]


@_kind(_CONTENT)
def altered_header(world: World) -> Reveal:
    """A value changed, one dropped, a null that became empty, two that changed places, one too many."""
    fate = world.pick(lambda f: any(len(p.headers) > 4 for p in f.outputs))
    planned = fate.outputs[0]
    headers = planned.headers
    match world.dice.randrange(5):
        case 0:
            headers[0] = (headers[0][0], b"another")
        case 1:
            del headers[2]
        case 2:
            headers[1] = (headers[1][0], b"")
        case 3:
            headers[0], headers[1] = headers[1], headers[0]
        case 4:
            headers.insert(1, ("extra", b"1"))
    return lambda: [_at(Kind.ALTERED, planned, fate.place)]


@_kind(_CONTENT)
def altered_timestamp(world: World) -> Reveal:
    fate = world.pick(_any_output)
    planned = world.dice.choice(fate.outputs)
    planned.timestamp_ms += world.dice.choice([-1, 1, 3_600_000])
    return lambda: [_at(Kind.ALTERED, planned, fate.place)]


@_kind(_CONTENT)
def altered_shift(world: World) -> Reveal:
    """A byte moves from the key's end to the value's beginning: fields hashed without their lengths would not show it."""
    fate = world.pick(lambda f: any(p.key and p.value for p in f.outputs))
    planned = fate.outputs[0]
    assert planned.key
    assert planned.value
    planned.key, planned.value = planned.key[:-1], planned.key[-1:] + planned.value
    return lambda: [_at(Kind.ALTERED, planned, fate.place)]


@_kind(_RECORDS)
def misrouted(world: World) -> Reveal:
    """The right output in the other topic, while the receipt names the right one."""
    fate = world.pick(_one_output)
    planned = fate.outputs[0]
    planned.topic = world.large if planned.topic == world.out else world.out
    planned.partition = world.home(planned.topic, planned.key)
    return lambda: [_at(Kind.MISROUTED, planned, fate.place)]


def _neighbours(world: World) -> tuple[Fate, Fate]:
    """Two records of one receipt range, in order, with one output each, in the same partition; both are taken."""
    first = world.pick(lambda f: _one_output(f) and _kin(f, behind=True, same_partition=True) is not None)
    second = _kin(first, behind=True, same_partition=True)
    assert second is not None
    world.take(second)
    return first, second


@_kind(_RECORDS)
def reordered(world: World) -> Reveal:
    """Two outputs of one source partition in one output partition change places; the earlier one is found behind the later one."""
    first, second = _neighbours(world)
    messages, (one, two) = first.part.messages, (first.outputs[0], second.outputs[0])
    # Moved, not swapped: everything else keeps its order, whatever lies between the two.
    messages.remove(one)
    messages.insert(messages.index(two) + 1, one)
    return lambda: [_at(Kind.REORDERED, one, first.place)]


@_kind(_RECORDS)
def reordered_across(world: World) -> Reveal:
    """Written by a later transaction than its successor; the receipt names the right one."""
    first, _ = _neighbours(world)
    planned = first.outputs[0]
    first.part.messages.remove(planned)
    _later(world, first.part, planned)
    return lambda: [_at(Kind.REORDERED, planned, first.place)]


# Orphans


def _orphan(world: World, part: Part, header: tuple[str, str], source: Place | None) -> Reveal:
    """An output that nobody has asked for, among the outputs of a transaction or behind them."""
    planned = world.pick_model().copy()
    _relabel(planned, header)
    if world.dice.random() < 0.5:
        _later(world, part, planned)
    else:
        part.messages.insert(world.dice.randrange(len(part.messages) + 1), planned)
    return lambda: [_at(Kind.ORPHAN, planned, source)]


@_kind(_RECORDS)
def orphan_of_no_record(world: World) -> Reveal:
    """An offset of the source that holds a marker or an aborted record, within what receipts claim."""
    source, part = world.pick_gap()
    return _orphan(world, part, _lineage(source), source)


@_kind(_RECORDS)
def orphan_beyond_the_end(world: World) -> Reveal:
    """An offset that the source has not reached."""
    place = world.dice.choice(world.intact)
    source = (*place, world.ends[place] + world.dice.choice([1_000, 10**12]))
    return _orphan(world, world.some_part(), _lineage(source), source)


@_kind(_RECORDS)
def orphan_of_another_topic(world: World) -> Reveal:
    source = (f"{world.name}.z", 0, world.dice.randrange(1000))
    return _orphan(world, world.some_part(), _lineage(source), source)


@_kind(_RECORDS)
def orphan_of_another_partition(world: World) -> Reveal:
    source = (world.sources[0][0], 99, world.dice.randrange(1000))
    return _orphan(world, world.some_part(), _lineage(source), source)


@_kind(_RECORDS)
def orphan_before_the_beginning(world: World) -> Reveal:
    """A record that is there, but before the group's beginning: nobody ever claimed it."""
    place = world.dice.choice(world.intact)
    if not world.begins[place]:
        raise LookupError("the group of this world begins at offset 0")
    source = (*place, world.dice.randrange(world.begins[place]))
    return _orphan(world, world.some_part(), _lineage(source), source)


@_kind(_RECORDS)
def orphan_that_says_nothing(world: World) -> Reveal:
    """A lineage header that cannot be parsed."""
    topic = world.sources[0][0]
    text = world.dice.choice(["", "/", f"{topic}/0/7", f"{topic}/0/x/0", f"{topic}/0/-1/0", f"{topic}/0/1/0/0", "\x00"])
    return _orphan(world, world.some_part(), (HEADER, text), None)


@_kind(_RECORDS)
def orphan_of_filtered(world: World) -> Reveal:
    fate = world.pick(_filtered)
    return _orphan(world, fate.part, _lineage(fate.place), fate.place)


@_kind(_RECORDS)
def orphan_of_dead(world: World) -> Reveal:
    """An output beside the dead letter."""
    fate = world.pick(_dead)
    return _orphan(world, fate.part, _lineage(fate.place), fate.place)


@_kind(_RECORDS)
def orphan_index(world: World) -> Reveal:
    """One output more than the transform makes of that record."""
    fate = world.pick(_any_output)
    return _orphan(world, fate.part, _lineage(fate.place, 7), fate.place)


@_kind(_RECORDS)
def mislabelled(world: World) -> Reveal:
    """An output that names an earlier record, which has its own: one missing, one double."""
    second = world.pick(lambda f: _one_output(f) and _kin(f, same_partition=True) is not None)
    first = _kin(second, same_partition=True)
    assert first is not None
    world.take(first)
    if first.place > second.place:
        first, second = second, first
    planned = second.outputs[0]
    _relabel(planned, _lineage(first.place))
    return lambda: [_missing(second), _at(Kind.DUPLICATE, planned, first.place)]


# Dead letters


@_kind(_RECORDS)
def dead_missing(world: World) -> Reveal:
    fate = world.pick(_dead)
    assert fate.letter is not None
    fate.part.messages.remove(fate.letter)
    return lambda: [_missing(fate)]


@_kind(_RECORDS)
def dead_doubled(world: World) -> Reveal:
    fate = world.pick(lambda f: f.letter is not None)
    assert fate.letter is not None
    copy = fate.letter.copy()
    _later(world, fate.part, copy)
    return lambda: [_at(Kind.DUPLICATE, copy, fate.place)]


@_kind(_CONTENT)
def dead_altered(world: World) -> Reveal:
    """Value, key, timestamp, or a header of the original."""
    fate = world.pick(lambda f: _dead(f) and bool(f.letter and f.letter.value))
    letter = fate.letter
    assert letter is not None
    match world.dice.randrange(4):
        case 0:
            letter.value = _flipped(world, letter.value)
        case 1:
            letter.key = b"another" if letter.key is None else None
        case 2:
            letter.timestamp_ms += 1
        case 3:
            letter.headers.insert(0, ("extra", b"1"))
    return lambda: [_at(Kind.ALTERED, letter, fate.place)]


@_kind(_RECORDS)
def dead_orphan(world: World) -> Reveal:
    """A dead letter of an offset without a record."""
    source, part = world.pick_gap()
    letter = _letter_for(world, source)
    _later(world, part, letter)
    return lambda: [_at(Kind.ORPHAN, letter, source)]


@_kind(_RECORDS)
def dead_of_filtered(world: World) -> Reveal:
    fate = world.pick(_filtered)
    letter = _letter_for(world, fate.place)
    _later(world, fate.part, letter)
    return lambda: [_at(Kind.ORPHAN, letter, fate.place)]


@_kind(_RECORDS)
def dead_beside_output(world: World) -> Reveal:
    """A dead letter of a record whose output stands: one fate too many."""
    fate = world.pick(_one_output)
    letter = _letter_for(world, fate.place)
    _later(world, fate.part, letter)
    return lambda: [_at(Kind.ORPHAN, letter, fate.place)]


@_kind(_CONTENT)
def dead_in_place_of_output(world: World) -> Reveal:
    """A dead letter with an error of the transform's, which the transform does not come to; topics and receipt agree."""
    fate = _own_range(world)
    letter = _letter_for(world, fate.place)
    fate.part.messages[fate.part.messages.index(fate.outputs[0])] = letter
    fate.part.written[fate.outputs[0].topic] -= 1
    fate.part.dead_lettered += 1
    return lambda: [_at(Kind.ALTERED, letter, fate.place)]


def _letter_for(world: World, place: Place) -> Planned:
    model = next(f.letter for f in world.fates.values() if _dead(f) and f.letter is not None)
    letter = model.copy()
    names = {f"reckon.source.{name}": str(at) for name, at in zip(("topic", "partition", "offset"), place, strict=True)}
    letter.headers = [h for h in letter.headers if h[0] not in names] + list(names.items())
    return letter


# Receipts


@_kind(_ALL)
def receipt_missing(world: World) -> Reveal:
    transaction = world.pick_transaction()
    transaction.receipts = 0
    return lambda: [Expected(Kind.RECEIPT_MISSING, *part.place, part.from_, part.to) for part in transaction.parts]


@_kind(_ALL)
def receipt_doubled(world: World) -> Reveal:
    transaction = world.pick_transaction()
    transaction.receipts = 2
    return lambda: [Expected(Kind.RECEIPT_OVERLAP, *part.place, part.from_, part.to) for part in transaction.parts]


@_kind(_ALL)
def receipt_overlapping(world: World) -> Reveal:
    """It claims the last records of the receipt before it once more, figures and all."""
    before, part = world.pick_neighbours(lambda before, part: len(before.fates) > 3 and len(part.fates) > 3)
    again = before.fates[-world.dice.randint(1, 3) :]
    part.from_ = again[0].place[2]
    part.fates = again + part.fates
    part.count()
    return lambda: [Expected(Kind.RECEIPT_OVERLAP, *part.place, part.from_, before.to)]


@_kind(_RECORDS)
def receipt_figures(world: World) -> Reveal:
    """One figure is wrong, or two in a way that their sum is right; every record is as it must be."""
    part = world.pick_part(lambda p: p.filtered > 0 and p.written[world.out] > 1 and p.dead_lettered > 0)
    step = world.dice.choice([-1, 1])
    match world.dice.randrange(6):
        case 0:
            part.read += step
        case 1:
            part.filtered += step
        case 2:
            part.dead_lettered += step
        case 3:
            part.written[world.out] += step
        case 4:
            part.filtered, part.read = part.filtered + step, part.read + step
        case 5:
            part.written[world.out], part.written[world.large] = (
                part.written[world.out] - 1,
                part.written[world.large] + 1,
            )
    return lambda: [Expected(Kind.RECEIPT_MISMATCH, *part.place, part.from_, part.to)]
