"""Rules that concern several places of a pipeline file at once.

They look at plain data, of which any part may be missing or of a wrong type, so that they can speak up together with the
errors of single values. No message repeats a value: topics may come from `${...}` references.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from transforms import topic_pattern
from transforms.steps.paths import parts

if TYPE_CHECKING:
    from collections.abc import Iterator

Path: TypeAlias = tuple[str | int, ...]
MAX_EXPLODES = 8
"""Python takes 20 blocks inside of each other."""


@dataclass(frozen=True, slots=True)
class Broken:
    path: Path
    """The place in the file, keys and indexes from its root."""
    message: str
    key: bool = False
    """Whether the key is wrong, not its value."""


def whole_file(data: dict[str, Any]) -> list[Broken]:
    """What breaks a rule, in no particular order."""
    return [*_source(data), *_routes(data), *_topics(data), *_formats(data), *_depth(data), *_overwritten(data)]


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


def _routing(data: dict[str, Any]) -> Iterator[tuple[Path, list[Any]]]:
    """The place and the entries of every step that routes."""
    for index, step in enumerate(_items(_get(data, "steps"))):
        for name in ("route", "route_all"):
            if isinstance(step, dict) and name in step:
                yield ("steps", index, name), _items(step[name])


def _targets(data: dict[str, Any]) -> Iterator[tuple[Path, str, Any, Any]]:
    """(place, what it is, topic, format) of whatever outputs can go to."""
    if _get(data, "sink") is not None:
        yield ("sink", "topic"), "the sink", _get(data, "sink", "topic"), _get(data, "sink", "format") or "json"
    for path, routes in _routing(data):
        for entry, route in enumerate(routes):
            yield (*path, entry, "to"), "a route's topic", _get(route, "to"), _get(route, "format") or "json"


def _source(data: dict[str, Any]) -> Iterator[Broken]:
    source = _get(data, "source")
    if not isinstance(source, dict):
        return
    topics, pattern, formats = source.get("topics"), source.get("pattern"), source.get("format")
    if "topics" not in source and pattern is None:
        yield Broken(("source",), "the key 'topics' of 'source' is missing, expected it, or the key 'pattern'")
    if topics and pattern is not None:
        yield Broken(("source", "pattern"), "a pattern beside a list of topics, expected one of them")
    if topics and isinstance(formats, dict):
        for topic in formats:
            if topic not in _items(topics):
                yield Broken(
                    ("source", "format", topic), "not one of the source's topics, expected one of them", key=True
                )


def _routes(data: dict[str, Any]) -> Iterator[Broken]:
    places = list(_routing(data))
    for path, _ in places[1:]:
        yield Broken(path, "a second route step, expected at most one")
    if len(places) == 1 and places[0][0][1] != len(_items(_get(data, "steps"))) - 1:
        yield Broken(places[0][0], "a route step before other steps, expected it to be the last step")
    has_default = False
    for path, routes in places:
        for entry, route in enumerate(routes):
            if isinstance(route, dict) and route.get("when") is None:
                has_default = True
                if entry != len(routes) - 1 and path[-1] == "route":
                    message = "a route without `when` takes every record, expected it to be the last entry"
                    yield Broken((*path, entry), message)
            topic = _get(route, "to")
            if (
                path[-1] == "route_all"
                and topic is not None
                and topic in [_get(other, "to") for other in routes[:entry]]
            ):
                message = "the topic stands in this step already, expected it once: join the conditions with ||"
                yield Broken((*path, entry, "to"), message)
    if _get(data, "sink") is None and not has_default:
        yield Broken((), "sink is missing, expected a sink or a route step whose last entry has no `when`")


def _topics(data: dict[str, Any]) -> Iterator[Broken]:
    """No loop from a pipeline into itself, and nothing but outputs in a sink."""
    name = _get(data, "name")
    topics = {topic for topic in _items(_get(data, "source", "topics")) if isinstance(topic, str)}
    pattern = _get(data, "source", "pattern")
    usable = isinstance(pattern, str) and topic_pattern.problem(pattern) is None
    sinks: list[tuple[Path, str, Any]] = [(path, what, topic) for path, what, topic, _ in _targets(data)]
    dead = _get(data, "dead_letters", "topic") or f"{name}.dead-letters"
    receipts = _get(data, "receipts") or f"{name}.receipts"
    own: list[tuple[Path, str, Any]] = [
        (("dead_letters", "topic"), "the dead-letter topic", dead),
        (("receipts",), "the receipts topic", receipts),
    ]
    targets = {topic for _, _, topic in sinks if isinstance(topic, str)}
    for path, what, topic in [*sinks, *own]:
        if isinstance(topic, str) and topic in topics:
            yield Broken(path, f"{what} is also a source topic, a loop, expected another topic")
        elif isinstance(topic, str) and usable and topic_pattern.matches(pattern, topic):
            yield Broken(
                path, f"{what} matches the source's pattern, a loop, expected another topic or a narrower pattern"
            )
    for path, what, topic in own:
        if isinstance(topic, str) and topic in targets:
            yield Broken(path, f"{what} is also a topic of outputs, expected a topic of its own")
    if dead == receipts:
        yield Broken(("receipts",), "the receipts topic is also the dead-letter topic, expected a topic of its own")


NEED_OBJECT = frozenset(
    "set default rename drop keep cast parse_json parse_time mask flatten explode".split()  # noqa: SIM905 - shorter
)
"""Steps that work on fields."""


def _formats(data: dict[str, Any]) -> Iterator[Broken]:
    """Steps that find text where they need an object, and topics that what is left cannot be written to."""
    this = _first_type(_get(data, "source", "format"))
    for index, step in enumerate(_items(_get(data, "steps"))):
        for name in step if isinstance(step, dict) else ():
            path: Path = ("steps", index, name)
            if this in ("string", "bytes") and (name in NEED_OBJECT or (name == "validate" and this == "bytes")):
                message = f"{name} needs an object, but the format of the source is {this}"
                yield Broken(path, f"{message}, expected a step `value` before it, as in value: '{{\"text\": this}}'")
            this = "any" if name in ("value", "python") else "json" if name in NEED_OBJECT else this
    known: dict[Any, Any] = {}
    for path, what, topic, form in _targets(data):
        if this == "json" and form in ("string", "bytes"):
            yield Broken(
                path,
                f"{what} has the format {form}, but the value is an object, expected a step `value` that makes text",
            )
        if this == "bytes" and form == "json" and not isinstance(_get(data, "source", "format"), dict):
            yield Broken(
                path,
                f"{what} has the format json, which cannot hold the bytes of the source, expected the format bytes",
            )
        if isinstance(topic, str) and known.setdefault(topic, form) != form:
            yield Broken(path, f"{what} has another format elsewhere in the file, expected one format per topic")


def _first_type(formats: Any) -> Any:
    """What `this` is before the first step; where the source's topics differ, the one that steps can do least with."""
    found = list(formats.values()) if isinstance(formats, dict) else [formats]
    return next((kind for kind in ("bytes", "string") if kind in found), "json")


def _depth(data: dict[str, Any]) -> Iterator[Broken]:
    """Each explode is a loop inside of the one before it."""
    explodes = [
        index for index, step in enumerate(_items(_get(data, "steps"))) if isinstance(step, dict) and "explode" in step
    ]
    for index in explodes[MAX_EXPLODES:]:
        yield Broken(("steps", index, "explode"), f"one explode too many, expected at most {MAX_EXPLODES}")


def _overwritten(data: dict[str, Any]) -> Iterator[Broken]:
    """Fields that a step writes, and then writes again, or writes an object around: the first value is lost."""
    for index, step in enumerate(_items(_get(data, "steps"))):
        before: list[tuple[str, tuple[str, ...]]] = []
        for path, field, key in _written(step):
            try:
                names = parts(field)
            except ValueError:
                continue  # the model says so
            for other, known in before:
                if known[: len(names)] == names:
                    message = f"the field {field!r} takes the place of {other!r}, which this step has just written, expected another field"
                    yield Broken(("steps", index, *path), message, key=key)
                    break
            before.append((field, names))


def _written(step: Any) -> Iterator[tuple[Path, str, bool]]:
    """(place, field, whether it is a key) in the order in which a step writes them; `default` writes only what is not there."""
    changes, renames, explosion = (_get(step, name) for name in ("set", "rename", "explode"))
    if isinstance(changes, dict):
        yield from ((("set", field), field, True) for field in changes)
    if isinstance(renames, dict):
        yield from ((("rename", old), new, False) for old, new in renames.items() if isinstance(new, str))
    into = "into" if _get(explosion, "into") is not None else "field"
    found = ((("explode", name), _get(explosion, name), False) for name in (into, "index"))
    yield from (entry for entry in found if isinstance(entry[1], str))
