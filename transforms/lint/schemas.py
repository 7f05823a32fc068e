"""What a record that has passed `validate` is known to be, as far as its JSON Schema says so in plain words."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from transforms.lint.fields import Fields
from transforms.lint.overloads import DYN, NUMBER

if TYPE_CHECKING:
    from transforms.lint.view import View
    from transforms.yaml_tree import Path as KeyPath

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

_OF_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
"""Keywords with a schema per name, ..."""
_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
"""... with a list of schemas, ..."""
_OF_ONE = (
    *("items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties"),
    *("propertyNames", "contentSchema", "not", "if", "then", "else"),
)
"""... and with one."""
KEYWORDS = frozenset(
    "type enum const format pattern minLength maxLength multipleOf minimum maximum exclusiveMinimum exclusiveMaximum "  # noqa: SIM905 - shorter
    "minItems maxItems uniqueItems minContains maxContains minProperties maxProperties required dependentRequired "
    "contentMediaType contentEncoding title description default examples deprecated readOnly writeOnly "
    "$schema $id id $ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary $comment".split()
).union(_OF_NAMES, _OF_SCHEMAS, _OF_ONE)
"""Of all drafts from 4 to 2020-12."""


def check_keywords(view: View, step: KeyPath, schema: Any) -> None:
    """Warns of what is no keyword, which validators pass over. `x-...` is meant to be none."""
    waiting: list[tuple[KeyPath, Any]] = [((), schema)]
    while waiting:
        path, here = waiting.pop()
        for name, value in here.items() if isinstance(here, dict) else ():
            if name not in KEYWORDS and not name.startswith("x-"):
                _warn(view, step, (*path, name))
            if name in _OF_NAMES and isinstance(value, dict):
                waiting += [((*path, name, inner), part) for inner, part in value.items()]
            elif name in _OF_SCHEMAS and isinstance(value, list):
                waiting += [((*path, name, index), part) for index, part in enumerate(value)]
            elif name in _OF_ONE:
                waiting.append(((*path, name), value))


def _warn(view: View, step: KeyPath, keyword: KeyPath) -> None:
    close = difflib.get_close_matches(str(keyword[-1]), KEYWORDS, n=1)
    hint = f", did you mean {close[0]!r}?" if close else ""
    message = f"{keyword[-1]!r} is no keyword of JSON Schema, and checks nothing{hint}"
    place = (*step, "validate", "schema", *keyword)
    if place in view.tree.keys:
        view.warn("unknown-keyword", place, message, offset=None)
    else:
        view.warn("unknown-keyword", (*step, "validate", "file"), f"{'/'.join(map(str, keyword))}: {message}")


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
