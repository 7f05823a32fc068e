"""`tests:` of a pipeline: what goes in, and what must come out. The model is here, the runner in test_runner.py.

A test states everything that its inputs become: an output or a dead letter that it does not name is a failure. Of an output
it compares the topic and the value, and of key, headers and timestamp what it states.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from transforms.steps.base import Model, TopicName

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _json(value: Any) -> Any:
    """JSON has no NaN and no infinity, and UTF-8 no half of a surrogate pair; `raw` takes the text of such a record."""
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("test_value", "not a JSON number, expected a finite one; `raw` takes any text")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("test_value", "half of a surrogate pair, expected text that UTF-8 can hold") from None
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _json(part)
    return value


def _milliseconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise PydanticCustomError(
            "test_timestamp", "not a moment, expected milliseconds since 1970 or text like 2026-01-31T09:30:00Z"
        )
    return (moment - _EPOCH) // dt.timedelta(milliseconds=1)


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise PydanticCustomError("test_base64", "not base64, expected bytes in base64") from None
    return text


def _headers(value: Any) -> Any:
    """A mapping, or a list of [name, value] where a name comes twice or the order counts."""
    pairs = list(value.items()) if isinstance(value, dict) else value if isinstance(value, list) else None
    if pairs is None or not all(_is_header(pair) for pair in pairs):
        raise PydanticCustomError(
            "test_headers",
            "not headers, expected a mapping of names to text or null, or a list of [name, text or null]",
        )
    return value


def _is_header(pair: Any) -> bool:
    return (
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and (pair[1] is None or isinstance(pair[1], str))
    )


Headers: TypeAlias = Annotated[dict[str, str | None] | list[list[str | None]], BeforeValidator(_headers)]
JsonData: TypeAlias = Annotated[JsonValue, AfterValidator(_json)]
Timestamp: TypeAlias = Annotated[int, BeforeValidator(_milliseconds), Field(ge=0)]


class _Content(Model):
    """Exactly one of `value`, `raw` and `base64` says what a record's value is."""

    value: JsonData = None
    """Any YAML value, in the format of its topic; null is a tombstone."""
    raw: str | None = None
    """The value as text, exactly as it is: for what is no JSON, or where the bytes matter."""
    base64: Annotated[str, AfterValidator(_base64)] | None = None
    """The value as bytes that are no text."""
    key: JsonData = None
    """Text as it is, other values as JSON; null for none."""
    headers: Headers | None = None
    """`{name: text}`, or `[[name, text], ...]` where a name comes twice or the order counts."""
    timestamp: Timestamp | None = None
    """Milliseconds since 1970, or text like 2026-01-31T09:30:00Z."""

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        given = [name for name in ("value", "raw", "base64") if name in self.model_fields_set]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise PydanticCustomError(
                "test_content", "found {found}, expected one of value, raw, base64", {"found": found}
            )
        return self


class TestInput(_Content):
    """A record as it is read from a source topic."""

    __test__ = False  # pytest takes every class Test... for one of its own

    topic: TopicName | None = None
    """None stands for the first source topic."""
    partition: Annotated[int, Field(ge=0)] = 0
    offset: Annotated[int, Field(ge=0)] | None = None
    """None stands for the number of the input in its test, from 0."""


class ExpectedOutput(_Content):
    """A record as it is written. `value` is compared as JSON: the order of keys does not matter, 1 and 1.0 differ."""

    topic: TopicName


class ExpectedDeadLetter(Model):
    """Why a record is a dead letter; what is left out is not compared."""

    error_class: str | None = None
    """`DecodeError`, `CelError`, ... in full."""
    message: str | None = None
    """A part of the message."""
    step: str | None = None
    """The step, in full, `steps[2] set`, or its name, `set`."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class PipelineTest(Model):
    """One test: `input` or `inputs`, and one of `outputs`, `filtered`, `dead_letter`."""

    name: Annotated[str, Field(min_length=1)]
    input: TestInput | None = None
    inputs: Annotated[list[TestInput], Field(min_length=1)] | None = None
    """Several records, one after the other, in the place of `input`."""
    outputs: list[ExpectedOutput] | None = None
    """All outputs of all inputs, in their order."""
    filtered: Literal[True] | None = None
    """Nothing comes out of any input: no output, no dead letter."""
    dead_letter: Annotated[list[ExpectedDeadLetter], BeforeValidator(_listed), Field(min_length=1)] | None = None
    """One, or a list of all of them in the order of the inputs. `outputs` may stand beside it."""

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.input is None) == (self.inputs is None):
            raise PydanticCustomError("test_input", "a test needs one of the keys input and inputs")
        if self.filtered and (self.outputs or self.dead_letter):
            raise PydanticCustomError(
                "test_expectation", "a filtered record has no outputs and no dead letter, expected `filtered` alone"
            )
        if self.filtered is None and self.outputs is None and self.dead_letter is None:
            raise PydanticCustomError(
                "test_expectation", "a test without expectation, expected one of outputs, filtered, dead_letter"
            )
        return self

    @property
    def records(self) -> list[TestInput]:
        return self.inputs if self.inputs is not None else [self.input] if self.input is not None else []


MODELS: dict[tuple[str, ...], type[Model]] = {
    ("tests",): PipelineTest,
    ("tests", "input"): TestInput,
    ("tests", "inputs"): TestInput,
    ("tests", "outputs"): ExpectedOutput,
    ("tests", "dead_letter"): ExpectedDeadLetter,
}
"""Which model a mapping of a file is, by the names on its path: for the suggestions of unknown keys."""
