"""Which steps, branches and routes of a pipeline its tests reach.

Found by running the inputs through shorter pipelines: a record reaches step n when the pipeline of the steps before it lets it
through, and a filter rejects something when fewer records come through behind it than before it. So the generated function is
neither traced nor instrumented, and what is measured does not depend on how it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transforms.compiler import compile_pipeline
from transforms.spec import Sink
from transforms.steps import step_name
from transforms.steps.route import RouteStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transforms.records import SourceRecord
    from transforms.spec import Pipeline
    from transforms.steps import Step

_BRANCHING = {"filter": ("rejects", "passes"), "assert": ("fails", "passes")}
_PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Point:
    """Something that a test can reach."""

    step: int
    """Its index."""
    what: str
    """`steps[2] route`, `steps[0] filter rejects`, `steps[2] route[0] to large`."""
    reached: bool
    route: int | None = None
    """The index of an entry of a route step."""


def coverage(spec: Pipeline, records: Sequence[SourceRecord]) -> list[Point]:
    """Every step, both ways of a filter or assert, and every route, in the order of the file."""
    alive = [record for record in records if record.value() is not None]
    through = [_through(spec, count, alive) for count in range(len(spec.steps) + 1)]
    points = []
    for index, step in enumerate(spec.steps):
        name = f"steps[{index}] {step_name(step)}"
        points.append(Point(index, name, reached=bool(through[index])))
        if branches := _BRANCHING.get(step_name(step) or ""):
            stopped, passed = branches
            points.append(Point(index, f"{name} {stopped}", reached=bool(through[index] - through[index + 1])))
            points.append(Point(index, f"{name} {passed}", reached=bool(through[index + 1])))
        if isinstance(step, RouteStep):
            points += _routes(spec, index, step, alive)
    return points


def _through(spec: Pipeline, count: int, records: Sequence[SourceRecord]) -> set[int]:
    """Indexes of the records that come to the end of the first `count` steps."""
    if count == len(spec.steps) and count and isinstance(spec.steps[-1], RouteStep):
        return set()  # nothing stands behind a route
    shorter = spec.model_copy(update={"steps": spec.steps[:count], "sink": Sink(topic=_PROBE)})
    result = compile_pipeline(shorter).run(iter(records))
    numbers = {id(record): number for number, record in enumerate(records)}
    through = {numbers[id(output[5])] for output in result.outputs}
    # What the steps made may have no JSON form yet: it did come through.
    return through | {numbers[id(failure.record)] for failure in result.failures if failure.step == "encode"}


def _routes(spec: Pipeline, index: int, step: RouteStep, records: Sequence[SourceRecord]) -> list[Point]:
    """Each entry gets a topic of its own, and the outputs tell which were taken."""
    probes = [route.model_copy(update={"to": f"{_PROBE}.{number}"}) for number, route in enumerate(step.route)]
    probed: list[Step] = [*spec.steps[:index], step.model_copy(update={"route": probes})]
    shorter = spec.model_copy(update={"steps": probed, "sink": Sink(topic=_PROBE)})
    taken: set[Any] = {output[0] for output in compile_pipeline(shorter).run(iter(records)).outputs}
    points = [
        Point(index, f"steps[{index}] route[{number}] to {route.to}", f"{_PROBE}.{number}" in taken, number)
        for number, route in enumerate(step.route)
    ]
    if spec.sink is not None and step.default is None:
        points.append(Point(index, f"steps[{index}] route, none matches", _PROBE in taken))
    return points
