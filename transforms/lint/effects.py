"""Where the expressions of a step stand, and what each step does to the fields of a record.

A step that is not in here is taken to do anything: nothing is known of the fields behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from transforms.steps import step_name

if TYPE_CHECKING:
    from transforms.steps import Step
    from transforms.yaml_tree import Path as KeyPath


@dataclass(frozen=True, slots=True)
class Place:
    """An expression of a step."""

    path: KeyPath
    """From the step on: `("filter",)`, `("set", "a")`, `("route", 0, "when")`."""
    text: str
    wanted: Literal["bool", "json"]


Places: TypeAlias = list[Place]


def value_of(step: Step) -> Any:
    """What stands behind a step's name; a name that Python or pydantic reserve has an underscore in the model."""
    name = step_name(step) or ""
    return getattr(step, name if name in type(step).model_fields else f"{name}_", None)


def expressions(step: Step) -> Places:  # noqa: PLR0911 - one per form of step
    """In the order of the file."""
    name, value = step_name(step) or "", value_of(step)
    match name:
        case "filter" | "tombstone":
            return [Place((name,), value, "bool")]
        case "value" | "key":
            return [Place((name,), value, "json")]
        case "assert":
            return [Place((name, "that"), value.that, "bool")]
        case "set" | "default":
            return [Place((name, key), text, "json") for key, text in value.items()]
        case "headers":
            return [Place((name, "set", key), text, "json") for key, text in value.set.items()]
        case "route" | "route_all":
            conditions = ((index, route.when) for index, route in enumerate(value))
            return [Place((name, index, "when"), when, "bool") for index, when in conditions if when is not None]
    return []


def fields_needed(step: Step) -> list[tuple[KeyPath, str]]:
    """(place, field) of the fields that a step changes where they are, and leaves alone where they are not."""
    name, value = step_name(step) or "", value_of(step)
    match name:
        case "drop" | "keep" | "parse_json":
            return [((name, index), field) for index, field in enumerate(value)]
        case "cast" | "parse_time":
            return [((name, field), field) for field in value]
        case "mask":
            return [((name, "fields", index), field) for index, field in enumerate(value.fields_)]
        case "explode":
            return [((name, "field"), value.field)]
    return []


def types_made(step: Step) -> dict[str, str]:
    """Type by field, of the fields that a step changes; "int?" is an int, or null, or a missing field."""
    value = value_of(step)
    match step_name(step):
        case "cast":
            return {field: f"{kind}?" for field, kind in value.items()}
        case "parse_time":
            return {field: "string?" if form.to == "rfc3339" else "int?" for field, form in value.items()}
        case "mask":
            return dict.fromkeys(value.fields_, "string?")
        case "parse_json":
            return dict.fromkeys(value, "dyn")
    return {}
