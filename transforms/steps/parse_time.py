"""parse_time: points in time from one form into another."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from transforms.cel.conversions import to_int
from transforms.cel.library.time_text import parse_timestamp, timestamp_text
from transforms.cel.library.times import SECOND, timestamp_of
from transforms.cel.literals import INT_MAX, INT_MIN
from transforms.cel.runtime import type_name
from transforms.errors import CelError, ParseError
from transforms.steps.base import Example, Kind, Made, Model, Step
from transforms.steps.paths import FieldPath, look, parts, put, quoted, read, write
from transforms.wording import meant

if TYPE_CHECKING:
    from transforms.code import Code

_UNITS = {"unix": SECOND, "unix_ms": 1_000_000, "unix_us": 1_000, "unix_ns": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_DIRECTIVES = "YmdHMSfzjybBpI%"


def _check(form: str) -> str:
    if form == "rfc3339" or form in _UNITS:
        return form
    unknown = [f"%{sign}" for sign in _DIRECTIVE.findall(form) if sign == "" or sign not in _DIRECTIVES]
    if unknown or "%" not in form:
        known = ", ".join(f"%{sign}" for sign in _DIRECTIVES)
        hint = meant(form, ["rfc3339", *_UNITS])
        text = f"not a form of time, expected rfc3339, {', '.join(_UNITS)}, or a pattern of {known}{hint}"
        raise PydanticCustomError("time_form", "{text}", {"text": text})
    return form


Form: TypeAlias = Annotated[str, Kind("form"), AfterValidator(_check)]


def parse_time(value: Any, field: str, form: str, to: str) -> str | int:
    """One form to another. Raises `ParseError`."""
    try:
        moment = timestamp_of(_read(value, form))
        return timestamp_text(moment) if to == "rfc3339" else _integer(moment.nanoseconds // _UNITS[to])
    except CelError as error:
        raise ParseError(f"{field}: {error}") from None
    except (ValueError, OverflowError):
        raise ParseError(f"{field} is not a time of the form {form}") from None


def _integer(number: int) -> int:
    """An int of CEL: years beyond 2262 have no nanoseconds."""
    if not INT_MIN <= number <= INT_MAX:
        raise CelError("integer overflow")
    return number


def _read(value: Any, form: str) -> int:
    """Nanoseconds since 1970."""
    if form in _UNITS:
        if type(value) is float:
            return round(value * _UNITS[form])
        if type(value) not in (int, str):
            raise CelError(f"a value of type {type_name(value)}, expected a number")
        return to_int(value) * _UNITS[form]
    if type(value) is not str:
        raise CelError(f"a value of type {type_name(value)}, expected text")
    if form == "rfc3339":
        return parse_timestamp(value).nanoseconds
    moment = datetime.strptime(value, form)  # noqa: DTZ007 - the line below
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000


class TimeForm(Model):
    from_: Annotated[Form, Field(alias="from")] = "rfc3339"
    to: Literal["rfc3339", "unix", "unix_ms", "unix_us", "unix_ns"] = "rfc3339"


class ParseTimeStep(Step):
    summary: ClassVar = (
        "Rewrites points in time: from seconds, or text in any usual pattern, to RFC 3339 in UTC or to whole numbers."
    )
    example: ClassVar = Example(
        yaml="parse_time: {ts: {from: unix_ms}, day: {from: '%d.%m.%Y %H:%M %z', to: unix}}",
        inputs=[{"ts": 1769851800123, "day": "31.01.2026 09:30 +0100"}, {"ts": None}, {"ts": "noon"}],
        outputs=[Made({"ts": "2026-01-31T09:30:00.123Z", "day": 1769848200}), Made({"ts": None})],
        failures=['ParseError: "ts": the string is not an int'],
    )
    notes: ClassVar = (
        "Forms: `rfc3339` (`2026-01-31T09:30:00.5+01:00`), `unix` (seconds since 1970), `unix_ms`, `unix_us`, "
        "`unix_ns`, and for `from` a pattern of Python's `strptime` of `%Y %m %d %H %M %S %f %z %j %y %b %B %p "
        "%I`, with English names. Without `%z` it is UTC. A field that is missing or null is left alone."
    )

    parse_time: Annotated[dict[FieldPath, TimeForm], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.need_object("parse_time")
        for helper in (parse_time, look, put):
            code.use(helper)
        for path, form in self.parse_time.items():
            code.write(f"v = {read(path)}")
            with code.block("if v is not None:"):
                code.write(write(path, f"parse_time(v, {quoted(parts(path))!a}, {form.from_!a}, {form.to!r})"))
        code.change(*self.parse_time)
