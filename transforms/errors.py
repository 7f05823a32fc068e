"""What can go wrong with one record, and with one expression. Files of problems are in `transforms.loading`."""

from __future__ import annotations


class TransformError(Exception):
    """A record that a pipeline cannot process. The class name becomes `Failure.error_class`, the text its message.

    The text names fields and reasons, never values of the record: it ends in logs and in headers of dead letters.
    """


class CelError(TransformError):
    """An expression failed while it was evaluated: no such field, no such overload, overflow, ..."""


class DecodeError(TransformError):
    """The value of a record is not a JSON object."""


class EncodeError(TransformError):
    """What the steps made has no JSON form, for example because it is nested too deeply."""


class MissingField(TransformError):  # noqa: N818 - the name is what an operator reads in a dead letter
    """A step needs a field that the record does not have."""


class WrongType(TransformError):  # noqa: N818
    """A step found a value of a type that it cannot work on."""


class CastError(TransformError):
    """A value that cannot be turned into the type that `cast` asks for."""


class ParseError(TransformError):
    """Text that is not JSON, or not a time, as `parse_json` or `parse_time` expect it."""


class FlattenError(TransformError):
    """Two fields would get the same name."""


class TooMuchOutput(TransformError):  # noqa: N818
    """One record would become too many records, or too large ones."""


class ValidationFailed(TransformError):  # noqa: N818
    """The record does not match its JSON Schema."""


class AssertionFailed(TransformError):  # noqa: N818
    """The condition of an `assert` is false."""


class PythonError(TransformError):
    """A `python` step's function raised an exception, or returned what JSON cannot hold."""


class TimeBudgetExceeded(Exception):  # noqa: N818 - it is raised by a timer, into whatever code is running
    """Raised by the worker, from a signal handler, into a record that takes longer than its time budget (rule E9)."""


class CelSyntaxError(ValueError):
    """An expression that cannot be compiled. `offset` is the place in its text, counted in characters from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
