"""The JSON Schema (2020-12) of a pipeline file, for completion and checks in editors: from the models and their docstrings.

It is a little wider than the models: CEL, names of topics, and rules between several keys are left to `reckon lint`.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from typing import Any

from pydantic import BaseModel

from transforms.spec import Pipeline
from transforms.steps import STEPS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = {"type": "string", "pattern": r"\$\{"}
_SCALARS = ["string", "number", "boolean", "null"]


def schema_text() -> str:
    """What `config/schema.json` holds."""
    return json.dumps(editor_schema(), indent=2, ensure_ascii=False) + "\n"


def editor_schema() -> dict[str, Any]:
    schema: dict[str, Any] = _without_noise(Pipeline.model_json_schema())
    definitions: dict[str, Any] = schema.pop("$defs")
    for model in _models(Pipeline, {}).values():
        definition = definitions.get(model.__name__, schema if model is Pipeline else {})
        _describe(definition, model)
    stepwise = _reachable(definitions, [model.__name__ for model in STEPS.values()])
    for name in stepwise:
        definitions[name] = _text_of_any_kind(definitions[name])
    for name in definitions.keys() - stepwise - {"JsonValue"}:
        definitions[name] = _with_references(definitions[name])
    schema = _with_references(schema)
    schema["properties"]["steps"]["items"] = {"$ref": "#/$defs/Step"}
    definitions["Step"] = _step(definitions)
    _loosen_tests(definitions)
    return {"$schema": DIALECT, "title": "A pipeline of Reckon", **schema, "$defs": dict(sorted(definitions.items()))}


def _models(model: type[BaseModel], found: dict[str, type[BaseModel]]) -> dict[str, type[BaseModel]]:
    """A model and all that stand in its fields, by name."""
    found[model.__name__] = model
    for field in model.model_fields.values():
        waiting = [field.annotation]
        while waiting:
            kind: Any = waiting.pop()
            waiting += getattr(kind, "__args__", ())
            if inspect.isclass(kind) and issubclass(kind, BaseModel) and kind.__name__ not in found:
                _models(kind, found)
    return found


def _describe(definition: dict[str, Any], model: type[BaseModel]) -> None:
    """Docstrings behind attributes, as the sources have them, become descriptions."""
    for parent in reversed(model.__mro__):
        if not issubclass(parent, BaseModel) or parent.__module__.startswith("pydantic"):
            continue
        [body] = ast.parse(textwrap.dedent(inspect.getsource(parent))).body
        assert isinstance(body, ast.ClassDef)
        for statement, following in zip(body.body, body.body[1:], strict=False):
            if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
                continue
            field = model.model_fields.get(statement.target.id)
            if field is not None and isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                key = field.alias or statement.target.id
                definition["properties"][key]["description"] = " ".join(str(following.value.value).split())


def _without_noise(schema: Any, *, names: bool = False) -> Any:
    """Titles only repeat the keys, and a default of null says that a key can be left out. `names`: keys are fields' names."""
    if isinstance(schema, list):
        return [_without_noise(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_noise(value, names=key in ("properties", "$defs") and not names)
        for key, value in schema.items()
        if names or (key not in ("title", "discriminator") and not (key == "default" and value is None))
    }


def _reachable(definitions: dict[str, Any], names: list[str]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names += _referred(definitions[name])
    return found - {"JsonValue"}


def _referred(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        here = [schema["$ref"].rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
        return here + [name for value in schema.values() for name in _referred(value)]
    return [name for item in schema for name in _referred(item)] if isinstance(schema, list) else []


def _text_of_any_kind(schema: Any) -> Any:
    """Everything in steps is text, so that `set: {a: 1}` and `filter: true` are CEL: an editor sees a number and a boolean."""
    if isinstance(schema, list):
        return [_text_of_any_kind(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _text_of_any_kind(value) for key, value in schema.items()}
    if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
        changed["type"] = _SCALARS
    return changed


def _with_references(schema: Any) -> Any:
    """`${NAME}` may stand for a number, true, false and a choice: then an editor sees text."""
    if isinstance(schema, list):
        return [_with_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("integer", "number", "boolean") or "enum" in schema:
        about = {key: schema[key] for key in ("description", "default") if key in schema}
        rest = {key: value for key, value in schema.items() if key not in about}
        return {**about, "anyOf": [rest, _REFERENCE]}
    return {key: _with_references(value) for key, value in schema.items()}


def _step(definitions: dict[str, Any]) -> dict[str, Any]:
    """One mapping with all steps as keys, of which one stands there: editors complete it better than a union."""
    properties = {}
    for name, model in STEPS.items():
        [content] = definitions.pop(model.__name__)["properties"].values()
        properties[name] = {**content, "description": model.summary}
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }


def _loosen_tests(definitions: dict[str, Any]) -> None:
    """What validators turn into another form before it is checked."""
    letter = definitions["PipelineTest"]["properties"]["dead_letter"]
    letter["anyOf"].insert(0, {"$ref": "#/$defs/ExpectedDeadLetter"})
    for name in ("TestInput", "ExpectedOutput"):
        stamp = definitions[name]["properties"]["timestamp"]
        stamp["anyOf"] = [{"type": "integer", "minimum": 0}, {"type": "string"}, {"type": "null"}]
