"""Rules that concern several places of a pipeline file at once.

They look at plain data, of which any part may be missing or of a wrong type, so that they can speak up together with the
errors of single values. No message repeats a value: topics may come from `${...}` references.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    path: Path
    """The place in the file, keys and indexes from its root."""
    message: str


def whole_file(data: dict[str, Any]) -> list[Broken]:
    """What breaks a rule, in no particular order."""
    return [*_routes(data), *_topics(data)]


def _get(data: Any, *path: str | int) -> Any:
    for key in path:
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            return None
    return data


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _routes(data: dict[str, Any]) -> Iterator[Broken]:
    steps = _items(_get(data, "steps"))
    places = [index for index, step in enumerate(steps) if isinstance(step, dict) and "route" in step]
    for index in places[1:]:
        yield Broken(("steps", index, "route"), "a second route step, expected at most one")
    if len(places) == 1 and places[0] != len(steps) - 1:
        yield Broken(("steps", places[0], "route"), "a route step before other steps, expected it to be the last step")
    has_default = False
    for index in places:
        routes = _items(_get(steps, index, "route"))
        for entry, route in enumerate(routes):
            if isinstance(route, dict) and route.get("when") is None:
                has_default = True
                if entry != len(routes) - 1:
                    path: Path = ("steps", index, "route", entry)
                    yield Broken(path, "a route without `when` takes every record, expected it to be the last entry")
    if _get(data, "sink") is None and not has_default:
        yield Broken((), "sink is missing, expected a sink or a route step whose last entry has no `when`")


def _topics(data: dict[str, Any]) -> Iterator[Broken]:
    """No loop from a pipeline into itself, and nothing but outputs in a sink."""
    name = _get(data, "name")
    sources = {topic for topic in _items(_get(data, "source", "topics")) if isinstance(topic, str)}
    sinks: list[tuple[Path, str, Any]] = [(("sink", "topic"), "the sink", _get(data, "sink", "topic"))]
    for index, step in enumerate(_items(_get(data, "steps"))):
        for entry, route in enumerate(_items(_get(step, "route"))):
            sinks.append((("steps", index, "route", entry, "to"), "a route's topic", _get(route, "to")))
    dead = _get(data, "dead_letters", "topic") or f"{name}.dead-letters"
    receipts = _get(data, "receipts") or f"{name}.receipts"
    own: list[tuple[Path, str, Any]] = [
        (("dead_letters", "topic"), "the dead-letter topic", dead),
        (("receipts",), "the receipts topic", receipts),
    ]
    targets = {topic for _, _, topic in sinks if isinstance(topic, str)}
    for path, what, topic in [*sinks, *own]:
        if isinstance(topic, str) and topic in sources:
            yield Broken(path, f"{what} is also a source topic, a loop, expected another topic")
    for path, what, topic in own:
        if isinstance(topic, str) and topic in targets:
            yield Broken(path, f"{what} is also a topic of outputs, expected a topic of its own")
    if dead == receipts:
        yield Broken(("receipts",), "the receipts topic is also the dead-letter topic, expected a topic of its own")
