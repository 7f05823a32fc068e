"""Which steps, branches and routes of a pipeline its tests reach.

Found by running the inputs through shorter pipelines: a record reaches step n when the pipeline of the steps before it lets it
through, and a filter rejects something when fewer records come through behind it than before it. So the generated function is
neither traced nor instrumented, and what is measured does not depend on how it is written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from transforms.compiler import compile_pipeline
from transforms.spec import Sink
from transforms.steps import step_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transforms.records import Result, SourceRecord, Transform
    from transforms.spec import Pipeline
    from transforms.steps import RouteAllStep, RouteStep, Step

Runner: TypeAlias = "Callable[[Transform, Sequence[SourceRecord]], Result]"
"""Runs a transform, with a time budget or without."""

_BRANCHING = {"filter": "rejects", "assert": "fails", "tombstone": "deletes"}
"""What a step can do with a record beside letting it pass."""
_PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Point:
    """Something that a test can reach."""

    step: int
    """Its index."""
    what: str
    """`steps[2] route`, `steps[0] filter rejects`, `steps[2] route[0] to large`."""
    reached: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """What came of some records behind the first steps of a pipeline."""

    through: Counter[int]
    """Outputs by the index of the record."""
    failed: frozenset[int]
    """Records for which the last of these steps failed."""


def coverage(spec: Pipeline, records: Sequence[SourceRecord], run: Runner) -> list[Point]:
    """Every step, both ways of a filter, assert or tombstone, and every route, in the order of the file."""
    alive = [record for record in records if record.value() is not None]
    steps = spec.steps[:-1] if spec.route else spec.steps
    runs = [_run(spec, count, alive, run) for count in range(len(steps) + 1)]
    points = []
    for index, step in enumerate(steps):
        name = f"steps[{index}] {step_name(step)}"
        before, after = runs[index], runs[index + 1]
        points.append(Point(index, name, reached=bool(before.through)))
        if other := _BRANCHING.get(step_name(step) or ""):
            failed = after.failed if other == "fails" else frozenset()
            lost = before.through - after.through
            stopped = failed or any(number not in after.failed for number in lost)
            points.append(Point(index, f"{name} {other}", reached=bool(stopped)))
            points.append(Point(index, f"{name} passes", reached=bool(after.through)))
    if spec.route is not None:
        points.append(Point(len(steps), f"steps[{len(steps)}] {step_name(spec.route)}", bool(runs[-1].through)))
        points += _routes(spec, spec.route, alive, run)
    return points


def _run(spec: Pipeline, count: int, records: Sequence[SourceRecord], run: Runner) -> _Run:
    shorter = spec.model_copy(update={"steps": spec.steps[:count], "sink": Sink(topic=_PROBE)})
    result = run(compile_pipeline(shorter), records)
    numbers = {id(record): number for number, record in enumerate(records)}
    through = Counter(numbers[id(output[5])] for output in result.outputs if output[1] is not None)
    # What the steps made may have no JSON form yet: it did come through.
    through.update(numbers[id(failure.record)] for failure in result.failures if failure.step == "encode")
    last = f"steps[{count - 1}] "
    failed = frozenset(numbers[id(failure.record)] for failure in result.failures if failure.step.startswith(last))
    return _Run(through, failed)


def _routes(
    spec: Pipeline, step: RouteStep | RouteAllStep, records: Sequence[SourceRecord], run: Runner
) -> list[Point]:
    """Each entry gets a topic of its own, and the outputs tell which were taken."""
    index, name = len(spec.steps) - 1, step_name(step) or ""
    probes = [route.model_copy(update={"to": f"{_PROBE}.{number}"}) for number, route in enumerate(step.routes)]
    probed: list[Step] = [*spec.steps[:-1], step.model_copy(update={name: probes})]
    shorter = spec.model_copy(update={"steps": probed, "sink": Sink(topic=_PROBE)})
    outputs = run(compile_pipeline(shorter), records).outputs
    taken = {output[0] for output in outputs if output[1] is not None}
    points = [
        Point(index, f"steps[{index}] {name}[{number}] to {route.to}", f"{_PROBE}.{number}" in taken)
        for number, route in enumerate(step.routes)
    ]
    if step.default is None:
        points.append(Point(index, f"steps[{index}] {name}, none matches", _PROBE in taken))
    return points
