"""What a record that has passed `validate` is known to be, as far as its JSON Schema says so in plain words."""

from __future__ import annotations

from typing import Any

from transforms.lint.fields import Fields
from transforms.lint.overloads import DYN, NUMBER

_KINDS = {
    "string": "string",
    "boolean": "bool",
    "object": "map",
    "array": "list",
    "null": "null",
    # 1.0 is an integer there, and a double here.
    "integer": NUMBER,
    "number": NUMBER,
}


def learn(fields: Fields, schema: Any, why: str) -> None:
    """Adds to the fields what the schema says of them. A field may still be missing: then reading it fails, whatever its type.

    `why` is told where a field cannot be there. What stands in `allOf`, `$ref`, `if` and the like is passed over.
    """
    # Up to draft 7 a `$ref` makes what stands beside it void.
    if not isinstance(schema, dict) or "$ref" in schema:
        return
    kind = _kind(schema.get("type"))
    if kind != DYN and fields.type in (DYN, f"{kind}?"):
        fields.type = kind
    properties = schema.get("properties", {})
    for name, inner in properties.items():
        if fields.absent((name,)) is None:
            learn(fields.inside.setdefault(name, Fields()), inner, why)
    if schema.get("additionalProperties") is False and "patternProperties" not in schema and fields.open:
        fields.open, fields.closed_by = False, why
        for name in fields.inside.keys() - properties.keys():
            del fields.inside[name]


def _kind(types: Any) -> str:
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    kinds = {_KINDS.get(name, DYN) for name in names}
    null = "?" if "null" in kinds and len(kinds) == 2 else ""
    if null:
        kinds.discard("null")
    return kinds.pop() + null if len(kinds) == 1 else DYN
