"""Sensitivity: worlds with planted defects are audited, findings compared as exact multisets: nothing missed, nothing added."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from spark_batch.model import Depth, ExitCode, Kind, Verdict
from tests.audit.planting import KINDS, Expected, expected_at, found, sow
from tests.audit.scenes import SCENES, end_open_transactions
from tests.audit.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from spark_batch.model import Judgement
    from tests.audit.auditor import Auditor
    from tests.audit.planting import PlantKind
    from tests.audit.scenes import Scene

RECORDS_PER_PLANT = 60
"""Source records of a world per defect: enough for every plant to find a place."""

MISSING_OUTPUTS = (
    "missing_output",
    "missing_one_of_several",
    "missing_all_of_several",
    "missing_and_denied",
    "doubled_and_missing",
    "mislabelled",
)
"""Plants that leave an output out."""


@dataclass(slots=True)
class Outcome:
    """Of one audited world."""

    what: str
    depth: Depth
    planted: Counter[str]
    expected: Counter[Expected]
    found: Counter[Expected]
    problems: list[str] = field(default_factory=list)
    """Of other kinds: exit code, counts."""
    took_s: float = 0.0
    details: dict[Expected, str] = field(default_factory=dict)

    @property
    def missed(self) -> list[Expected]:
        return sorted((self.expected - self.found).elements(), key=str)

    @property
    def extra(self) -> list[Expected]:
        return sorted((self.found - self.expected).elements(), key=str)

    def lines(self) -> list[str]:
        """What is wrong; empty: exactly the planted defects were found."""
        return [
            *(f"{self.what} at {self.depth}: missed {each}" for each in self.missed),
            *(f"{self.what} at {self.depth}: extra {each} ({self.details.get(each, '')})" for each in self.extra),
            *(f"{self.what} at {self.depth}: {problem}" for problem in self.problems),
        ]


def mixed(
    auditor: Auditor,
    bootstrap: str,
    folder: Path,
    seed: int,
    kinds: Sequence[PlantKind],
    *,
    depth: Depth = Depth.CONTENT,
    skip: int = 0,
    what: str = "",
) -> Outcome:
    """A world with these defects, audited once. At a depth below content each defect has its receipt range to itself, because two
    of them can look like nothing there: an output in the wrong topic, and another one for it."""
    world = World(
        bootstrap,
        folder,
        Random(seed),
        records=600 + RECORDS_PER_PLANT * len(kinds) * (1 if depth is Depth.CONTENT else 2),
        window=60 if depth is Depth.CONTENT else 30,
        start="latest" if skip else "earliest",
        skip=skip,
        apart=depth is not Depth.CONTENT,
    )
    planted = sow(world, kinds)
    world.write()
    expected = expected_at(depth, planted)
    return judged(auditor, world, what or f"mixed, seed {seed}", depth, Counter(k.name for k in kinds), expected)


def scene(
    auditor: Auditor,
    bootstrap: str,
    folder: Path,
    seed: int,
    which: Sequence[Scene],
    kinds: Sequence[PlantKind] = (),
    *,
    depth: Depth = Depth.CONTENT,
) -> Outcome:
    """A world with defects of whole partitions or topics, each of another one, and others elsewhere in it."""
    world = World(bootstrap, folder, Random(seed), records=1500 + RECORDS_PER_PLANT * len(kinds))
    names = [each.name for each in which]
    places = []
    for each in which:
        places.append(world.dice.choice(world.intact))
        each.before(world, places[-1])
    planted = sow(world, kinds)
    world.write()
    try:
        expected = [found for each, place in zip(which, places, strict=True) for found in each.after(world, place)]
        expected += expected_at(depth, planted)
        every = Counter([*names, *(kind.name for kind in kinds)])
        return judged(auditor, world, f"{', '.join(names)}, seed {seed}", depth, every, expected)
    finally:
        end_open_transactions()


def judged(
    auditor: Auditor, world: World, what: str, depth: Depth, planted: Counter[str], expected: Iterable[Expected]
) -> Outcome:
    """Audit a world that is written."""
    began = time.monotonic()
    judgement = auditor(world.path, depth)
    outcome = Outcome(what, depth, planted, Counter(_merged(expected)), Counter(found(judgement.findings)))
    outcome.took_s = time.monotonic() - began
    outcome.details = dict(zip(found(judgement.findings), (f.detail for f in judgement.findings), strict=True))
    outcome.problems = _problems(judgement, outcome, world)
    return outcome


def _merged(expected: Iterable[Expected]) -> list[Expected]:
    """Receipts missing side by side leave one gap."""
    merged: list[Expected] = []
    for each in sorted(expected, key=lambda e: (e.kind, e.topic, e.partition, -1 if e.offset is None else e.offset)):
        last = merged[-1] if merged else None
        if last and each.kind is Kind.RECEIPT_MISSING and (*last[:3], last.end) == (*each[:3], each.offset):
            merged[-1] = last._replace(end=each.end)
        else:
            merged.append(each)
    return merged


def _problems(judgement: Judgement, outcome: Outcome, world: World) -> list[str]:
    """Exit code, counts per kind, and that every source record has one verdict."""
    problems = []
    faults = any(each.kind.is_fault for each in outcome.expected)
    code = ExitCode.FINDINGS if faults else ExitCode.CANNOT_JUDGE if outcome.expected else ExitCode.COMPLETE
    if judgement.exit_code != code:
        problems.append(f"exit code {judgement.exit_code!r}, expected {code!r}")
    counts = Counter(each.kind for each in outcome.found.elements())
    told = +Counter(judgement.finding_counts)
    if counts != told:
        problems.append(f"counts per kind {told}, findings say {counts}")
    if outcome.depth is not Depth.OFFSETS:
        verdicts = Counter(judgement.totals)
        of_records = verdicts.total() - verdicts[Verdict.ORPHAN] - verdicts[Verdict.IN_FLIGHT]
        if not any(verdicts[v] for v in (Verdict.UNKNOWN, Verdict.EXPIRED)) and of_records != len(world.fates):
            problems.append(f"{of_records} verdicts for {len(world.fates)} source records: {dict(verdicts)}")
    return problems


def everything(
    auditor: Auditor, bootstrap: str, folder: Path, seed: int, rounds: int, *, only: str = ""
) -> Iterator[Outcome]:
    """All kinds: alone; mixed in `rounds` worlds at content depth and as many at records depth; receipts at offsets depth; scenes, alone
    and mixed with all the others. `only`: those whose name contains it."""
    for what, make in _agenda(seed, rounds):
        if only in what:
            yield make(auditor, bootstrap, folder)


def _agenda(seed: int, rounds: int) -> Iterator[tuple[str, Callable[[Auditor, str, Path], Outcome]]]:
    kinds = list(KINDS.values())
    late = [kind for kind in kinds if kind.name == "orphan_before_the_beginning"]
    usual = [kind for kind in kinds if kind not in late]

    def world(what: str, nth: int, chosen: Sequence[PlantKind], depth: Depth, skip: int = 0) -> tuple[str, Any]:
        return what, partial(mixed, seed=seed + nth, kinds=chosen, depth=depth, skip=skip, what=what)

    yield world("nothing planted", 0, [], Depth.CONTENT)
    for number in range(rounds):
        skip = 32_700 if number % 2 else 0  # its records lie around a bucket's boundary
        chosen = (kinds if skip else usual) * 4
        yield world(f"mixed {number}", 1000 + number, chosen, Depth.CONTENT, skip)
        at_records = [kind for kind in chosen if Depth.RECORDS in kind.depths]
        yield world(f"mixed {number}", 2000 + number, at_records, Depth.RECORDS, skip)
    receipts = [kind for kind in usual if Depth.OFFSETS in kind.depths]
    yield world("mixed receipts", 3000, receipts * 8, Depth.OFFSETS)
    for number, which in enumerate(SCENES):
        alone = partial(scene, which=[which])
        yield which.name, partial(alone, seed=seed + 4000 + number)
        if which.leaves_some:
            beside = [kind for kind in usual if not (which.hides and kind.name in MISSING_OUTPUTS)]
            yield f"{which.name}, mixed", partial(alone, seed=seed + 5000 + number, kinds=beside)
        if which.offsets_depth:
            yield which.name, partial(alone, seed=seed + 6000 + number, depth=Depth.OFFSETS)
    for number, kind in enumerate(kinds):
        depth = Depth.RECORDS if Depth.RECORDS in kind.depths else Depth.CONTENT
        yield world(f"{kind.name} alone", 10 * number, [kind], depth, 500 if kind in late else 0)
