"""Exceptions of generated code -> `Failure`. Only reached when a record fails, so nothing here is in a hurry."""

from __future__ import annotations

from bisect import bisect_right

import orjson

from transforms.cel.runtime import type_name
from transforms.errors import (
    DecodeError,
    EncodeError,
    TimeBudgetExceeded,
    TooMuchOutput,
    TransformError,
    WrongType,
)
from transforms.records import Failure, Output, SourceRecord

DECODE, ENCODE = "decode", "encode"
CLASSES = frozenset(
    [
        *(kind.__name__ for kind in TransformError.__subclasses__()),
        *("TimeBudgetExceeded", "RecursionError", "MemoryError"),
    ]
)
"""Of failures that are no mistake of ours: the others have the names of Python's exceptions."""
MAX_OUTPUT_BYTES = 64 * 2**20
"""Of the values that `explode` makes of one record: what it copies beside each element could multiply without bounds."""

MAX_MESSAGE = 1000
"""Characters. Names of fields may come from the record, and be of any length."""


def no_object(data: object) -> DecodeError:
    """The error for a value that is JSON, but not an object."""
    kinds = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return DecodeError(f"not a JSON object but {kinds.get(type(data), 'a number')}")


def wrong_type(step: str, value: object) -> WrongType:
    return WrongType(f"{step} needs an object, found a value of type {type_name(value)}")


def too_many_bytes() -> TooMuchOutput:
    return TooMuchOutput(f"the outputs of the record have more than {MAX_OUTPUT_BYTES} bytes together")


class Settler:
    """Makes failures of one compiled pipeline: it knows which line of the generated source belongs to which step."""

    def __init__(self, spans: list[tuple[int, str, int]]) -> None:
        """`spans`: (first line in the generated source, step, line in the pipeline file), ascending."""
        self._starts = [start for start, _, _ in spans]
        self._spans = spans

    def settle(self, outputs: list[Output], failures: list[Failure], record: SourceRecord, error: Exception) -> None:
        """Removes the outputs that a record has already and notes why it failed.

        An exception that a timer raises can come after a record's outputs were appended, and even in here. So the outputs
        go in one operation, and the failure is the last thing to be noted: a record has all of its outputs, or none.
        """
        count = len(outputs)
        while count and outputs[count - 1][5] is record:
            count -= 1
        failure = self._failure(record, error)
        del outputs[count:]
        failures.append(failure)

    def _failure(self, record: SourceRecord, error: Exception) -> Failure:
        trace = error.__traceback__
        # The instructions that end an `except ... as` have no line: 0, and with it the first step, stands for None.
        found = bisect_right(self._starts, trace.tb_lineno or 0) - 1 if trace is not None else 0
        _, step, line = self._spans[max(found, 0)]
        error_class, message = _describe(error, step)
        if len(message) > MAX_MESSAGE:
            message = message[:MAX_MESSAGE] + "..."
        return Failure(record, error_class, message, step, line)


def _describe(error: Exception, step: str) -> tuple[str, str]:  # noqa: PLR0911 - one per class
    """(error class, message), the same in every process."""
    if isinstance(error, TransformError):
        return type(error).__name__, str(error)
    if isinstance(error, TimeBudgetExceeded):
        return "TimeBudgetExceeded", "the record took longer than its time budget"
    if isinstance(error, RecursionError):
        return "RecursionError", "the record is nested too deeply"
    if isinstance(error, MemoryError):
        return "MemoryError", "the record needs more memory than there is"
    if step == DECODE and isinstance(error, orjson.JSONDecodeError):
        return DecodeError.__name__, f"not JSON: {error}"
    if step == ENCODE and isinstance(error, orjson.JSONEncodeError):
        return EncodeError.__name__, f"no JSON form: {error}"
    # Not str(error): it may quote the record.
    return type(error).__name__, "the step failed in a way that it should not, please report it"
