"""The value as a whole: what it is at the source, which steps can work on it, and which topics can hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transforms.cel.nodes import Literal, MapOf, Meta
from transforms.checks import NEED_OBJECT
from transforms.lint.facts import Domain, Facts, shape
from transforms.lint.fields import Fields, chain
from transforms.lint.overloads import DYN
from transforms.lint.state import State
from transforms.steps import RouteAllStep, RouteStep
from transforms.steps.paths import parts, quoted

if TYPE_CHECKING:
    from transforms.cel.nodes import Node
    from transforms.lint.view import View
    from transforms.yaml_tree import Path as KeyPath

_OBJECTS = ("map", "optional", DYN)
_WRITABLE = ("string", "bytes", "optional", DYN)
"""What a topic of text, or of bytes, can hold."""


def at_source(view: View) -> State:
    """What is known of a record before the first step."""
    form, key_format = view.get("source", "format"), view.get("source", "key_format")
    state = State(facts=Facts(_topic(view)))
    if form in ("string", "bytes"):
        state.fields = Fields(form, open=False, closed_by=f"the format of the source is {form}")
    elif isinstance(form, dict):
        state.fields = Fields()
    if key_format in (None, "string", "bytes"):
        state.key = f"{key_format or 'string'}?"
    return state


def _topic(view: View) -> dict[Any, Domain]:
    topics = view.get("source", "topics")
    names = topics if isinstance(topics, list) else []
    paths = [("source", "topics", index) for index in range(len(names))]
    # Where a variable names them, they are others elsewhere.
    if not names or not all(isinstance(name, str) for name in names) or not view.tree.referenced.isdisjoint(paths):
        return {}
    return {shape(Meta(0, "topic")): Domain(only=frozenset(("str", name) for name in names))}


def remake(state: State, node: Node, kind: str, why: str) -> None:
    """The step `why` makes the value of an expression, of the type `kind`, the whole value."""
    names = chain(node)
    known = Fields() if names is None else state.fields.get(names).copy()
    if isinstance(node, MapOf):
        keys = [key.value for key, _ in node.entries if isinstance(key, Literal) and isinstance(key.value, str)]
        if len(keys) == len(node.entries):
            inside = {key: Fields() for key in keys}
            known = Fields("map", open=False, inside=inside, closed_by=f"{why} does not make it")
    if known.type == DYN and kind != "optional":
        known.type = kind
    plain = known.type.rstrip("?")
    if plain not in (DYN, "map"):
        known.open, known.closed_by = False, f"{why} makes the value a {plain}"
    state.forget()
    state.fields, state.made_by = known, why


def must_be_object(view: View, state: State, path: KeyPath, name: str) -> None:
    """Says so where a step works on fields of what a step `value` has made something else; of a source, loading says it."""
    kind = state.fields.type.rstrip("?")
    if name in NEED_OBJECT and state.made_by is not None and kind not in _OBJECTS:
        view.error("type", path, f"{name} needs an object, but {state.made_by} makes it a {kind}", offset=None)
        state.fields, state.made_by = Fields("map"), None


def must_have_room(view: View, state: State, path: KeyPath, field: str, offset: int | None = None) -> None:
    """Says so where a field is to be put into one that is no object for sure."""
    names = parts(field)
    for depth in range(1, len(names)):
        around = state.fields.get(names[:depth])
        kind = around.type
        if around.there and kind not in _OBJECTS and kind != "null" and not kind.endswith("?"):
            message = (
                f"no room for the field {quoted(names)}: {quoted(names[:depth])} is a {kind} here, expected an object"
            )
            view.error("type", path, message, offset=offset)
            return


def must_be_writable(view: View, state: State) -> None:
    """Says so where what the last step leaves is nothing that a topic of text, or of bytes, can hold."""
    kind = state.fields.type.rstrip("?")
    if view.spec is None or state.made_by is None or state.stopped or kind in _WRITABLE:
        return
    places: list[tuple[KeyPath, str, str]] = []
    last = view.steps[-1]
    if isinstance(last, RouteStep | RouteAllStep):
        name = "route" if isinstance(last, RouteStep) else "route_all"
        path = ("steps", len(view.steps) - 1, name)
        places += [((*path, index), route.to, route.format) for index, route in enumerate(last.routes)]
    if view.spec.sink is not None and view.spec.sink.topic in view.spec.topics:
        places.append((("sink",), view.spec.sink.topic, view.spec.sink.format))
    for place, topic, form in places:
        if form != "json":
            message = f"{topic} has the format {form}, but {state.made_by} makes the value a {kind}, expected a string"
            view.error("type", (*place, "format"), message)
