"""validate: JSON Schema."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import jsonschema_rs
from pydantic import Field, PrivateAttr, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from transforms.errors import ValidationFailed
from transforms.steps.base import Example, Made, Model, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from transforms.code import Code

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_SHOWN = 3
"""Errors of a record that its dead letter names; there may be thousands."""


def validator(schema: Any) -> jsonschema_rs.Validator:
    """Draft 2020-12 unless `$schema` says otherwise. ValueError for what is no schema.

    Regular expressions take time linear in the text; a reference to another document is not followed, to no file and to no host.
    """
    return jsonschema_rs.validator_for(
        schema, mask="the value", pattern_options=jsonschema_rs.RegexOptions(), offline=True
    )


def checking(schema: Any) -> Callable[[Any], None]:
    """A function that raises `ValidationFailed`."""
    compiled = validator(schema)

    def check(value: Any) -> None:
        try:
            problem = None if compiled.is_valid(value) else _failure(compiled, value)
        except ValueError:
            # The library's own, where it looks deeper than 255 levels, be it for the words of an error; its text may quote the record.
            problem = ValidationFailed(
                "no match, or none that can be told: the record is nested more than 255 levels deep"
            )
        if problem is not None:
            raise problem

    return check


def _failure(compiled: jsonschema_rs.Validator, value: Any) -> ValidationFailed:
    found: list[str] = []
    for error in compiled.iter_errors(value):
        if len(found) == _SHOWN:
            found.append("and more")
            break
        place = ".".join(map(str, error.instance_path))
        found.append((f"{place}: " if place else "") + error.message)
    return ValidationFailed("; ".join(found))


class Validation(Model):
    inline: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    file: Annotated[str, Field(min_length=1)] | None = None
    """A file of JSON, relative to the pipeline's."""
    _schema: Any = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _compile(self, info: ValidationInfo) -> Self:
        if (self.inline is None) == (self.file is None):
            raise PydanticCustomError("schema", "one of the keys schema and file is needed")
        schema = self.inline if self.file is None else _read(Path((info.context or {}).get("folder", ".")) / self.file)
        try:
            validator(schema)
        except ValueError as error:
            at, reason = _wrong(error)
            place = " at " + "/".join(map(str, at)) if at and self.inline is None else ""
            raise PydanticCustomError(
                "schema", "not a JSON Schema{place}: {reason}", {"place": place, "reason": reason, "at": at}
            ) from None
        self._schema = schema
        return self

    @property
    def schema_(self) -> Any:
        return self._schema


def _wrong(error: ValueError) -> tuple[list[str | int], str]:
    """(path in the schema, what is wrong there)."""
    if not isinstance(error, jsonschema_rs.ValidationError):
        return [], str(error)
    at: list[str | int] = list(error.instance_path)
    given: Any = error.instance
    if at[-1:] != ["type"] or not isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AnyOf):
        return at, error.message
    bad = [index for index, name in enumerate(given) if name not in TYPES] if isinstance(given, list) else []
    if bad:
        at, given = [*at, bad[0]], given[bad[0]]
    if not isinstance(given, str) or given in TYPES:
        return at, "not a type, or a list of different ones"
    close = difflib.get_close_matches(given, TYPES, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(TYPES)}"
    return at, f"no type {given!r}, {hint}"


def _types(schema: dict[str, Any]) -> dict[str, str]:
    """CEL types of the fields that a valid record has for certain. An `integer` may be 1.0, which is none in CEL."""
    properties, required = schema.get("properties"), schema.get("required")
    # Up to draft 7 a `$ref` makes what stands beside it void.
    if not isinstance(properties, dict) or not isinstance(required, list) or "$ref" in schema:
        return {}
    kinds = {"string": "string", "boolean": "bool", "object": "map", "array": "list"}
    inner = {name: properties[name] for name in required if isinstance(properties.get(name), dict)}
    types = {name: schema.get("type") for name, schema in inner.items() if "$ref" not in schema}
    return {name: kinds[kind] for name, kind in types.items() if isinstance(kind, str) and kind in kinds}


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror
    except (ValueError, RecursionError):
        reason = "not JSON"
    raise PydanticCustomError(
        "schema", "cannot read the schema {file}: {reason}", {"file": repr(path.name), "reason": reason}
    )


class ValidateStep(Step):
    summary: ClassVar = (
        "Makes a dead letter of each record that does not match a JSON Schema, and says what does not match, and where."
    )
    example: ClassVar = Example(
        yaml="validate: {schema: {required: [id], properties: {id: {type: integer, minimum: 1}}}}",
        inputs=[{"id": 1}, {"id": 0}, {}],
        outputs=[Made({"id": 1})],
        failures=[
            "ValidationFailed: id: the value is less than the minimum of 1",
            'ValidationFailed: "id" is a required property',
        ],
    )
    notes: ClassVar = (
        "Draft 2020-12 unless `$schema` names another. Schemas are also read from a file: `validate: {file: "
        "order.schema.json}`, relative to the pipeline's; references to other documents are refused. Patterns are "
        "those of Rust's `regex`: linear time, no look-around. `format` is an annotation, as the draft has it, "
        "and not checked."
    )

    validate_: Annotated[Validation, Field(alias="validate")]

    def emit(self, code: Code) -> None:
        schema = self.validate_.schema_
        code.write(f"{code.constants.bind(checking(schema))}(r)")
        if code.object and isinstance(schema, dict):
            code.types.update(_types(schema))

    def fingerprint(self) -> Any:
        return {"validate": self.validate_.schema_}
