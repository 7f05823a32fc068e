"""docs/steps.md, made of the steps themselves: what it says is what the models check and the tests run."""

from __future__ import annotations

import json
import re
import textwrap
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr

from transforms.steps import STEPS
from transforms.steps.base import Given, Kind, Made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from transforms.steps import Step

_HEAD = """\
# Steps

Written by `reckon docs` from the steps' own descriptions; every example here is run as a test. What a pipeline file is, and what
expressions see: [pipeline.md](pipeline.md).

A *field* is a name, or a path of names with dots: `customer.email`. A name that has dots itself stands in backticks:
`` `shop.id`.value ``; two backticks inside of them stand for one. An *expression* is CEL, a *condition* one that gives true or false.

"""
_NAMES = {
    int: "whole number",
    str: "text",
    SecretStr: "`${...}` reference",
    bool: "true or false",
    dict: "mapping",
    Any: "anything",
}


def render() -> str:
    """The whole page."""
    index = "\n".join(f"- [`{name}`](#{name}): {_lower(step.summary)}" for name, step in STEPS.items())
    return _HEAD + index + "\n\n" + "\n".join(_step(name, step) for name, step in STEPS.items())


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _step(name: str, step: type[Step]) -> str:
    (field,) = step.model_fields.values()
    model = next(_models(_annotation(field)), None)
    lines = [f"## {name}", "", step.summary, ""]
    if step.notes:
        lines += [textwrap.fill(step.notes, 120, break_long_words=False, break_on_hyphens=False), ""]
    if model is None:
        lines += [f"`{name}`: {_type(_annotation(field))}", ""]
    else:
        kind = _type(_annotation(field))
        lines += [f"`{name}`: {kind}, each with:", ""] if kind != "mapping" else []
        lines += ["| key | type | default | |", "|---|---|---|---|", *_rows(model, ""), ""]
    return "\n".join([*lines, *_example(step)])


def _annotation(field: FieldInfo) -> Any:
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside of a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _type(annotation: Any) -> str:
    """A type in the words of a pipeline file."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        named = [mark.name for mark in parts[1:] if isinstance(mark, Kind)]
        return named[0] if named else _type(parts[0])
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in parts)
    if origin in (list, dict):
        return f"{'list' if origin is list else 'mapping'} of {' to '.join(_plural(_type(part)) for part in parts)}"
    if parts:  # a union
        return " or ".join(_type(part) for part in parts if part is not NoneType)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    return _NAMES[annotation]


def _plural(text: str) -> str:
    return f"{text}s" if re.fullmatch(r"\w+", text) and text not in ("text", "anything") else text


def _rows(model: type[BaseModel], before: str) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        key = before + (field.alias or name)
        about = _lower(field.description or "").replace("\n", " ")
        rows.append(f"| `{key}` | {_type(_annotation(field))} | {_default(field)} | {about} |")
        for inner in _models(_annotation(field)):
            rows += _rows(inner, f"{key}.")
    return rows


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value in (None, [], {}) else f"`{json.dumps(value)}`"


def _example(step: type[Step]) -> list[str]:
    example = step.example
    lines = ["```yaml", f"- {example.yaml}", "```", "", "```"]
    lines += [f"in   {_given(entry)}" for entry in example.inputs]
    lines += [f"out  {_made(made)}" for made in example.outputs]
    lines += [f"dead letter  {failure}" for failure in example.failures]
    return [*lines, "```", ""]


def _given(entry: Any) -> str:
    given = entry if isinstance(entry, Given) else Given(entry)
    return _record(given.value, given.key, given.headers)


def _made(made: Made) -> str:
    return ("" if made.topic == "out" else f"{made.topic}: ") + _record(made.value, made.key, made.headers)


def _record(value: Any, key: str | None, headers: dict[str, str] | None) -> str:
    more = [f"key {key}"] if key is not None else []
    more += ["headers " + json.dumps(headers)] if headers else []
    return json.dumps(value, ensure_ascii=False) + (f"   ({', '.join(more)})" if more else "")
