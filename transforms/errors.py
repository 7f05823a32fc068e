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


class TimeBudgetExceeded(Exception):  # noqa: N818 - it is raised by a timer, into whatever code is running
    """Raised by the worker, from a signal handler, into a record that takes longer than its time budget (rule E9)."""


class CelSyntaxError(ValueError):
    """An expression that cannot be compiled. `offset` is the place in its text, counted in characters from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
