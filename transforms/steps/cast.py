"""cast: give fields another type."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from transforms.cel import conversions
from transforms.errors import CastError, CelError
from transforms.steps.base import Example, Made, Step
from transforms.steps.paths import FieldPath, look, parts, put, quoted, read, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from transforms.code import Code

_CASTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "int": ("int", conversions.to_int),
    "double": ("float", conversions.to_double),
    "string": ("str", conversions.to_string),
    "bool": ("bool", conversions.to_bool),
}
"""Per type its name in Python, and CEL's conversion."""

_LONGEST = 400
"""Characters of text: the largest double has 309 digits, and what is longer is not worth a look at each of them."""


def cast(value: Any, kind: str, field: str) -> Any:
    """The value as that type, by the rules of CEL. Raises `CastError`."""
    if type(value) is str and len(value) > _LONGEST:
        raise CastError(f"{field}: text of more than {_LONGEST} characters, expected {kind}")
    try:
        result = _CASTS[kind][1](value)
    except CelError as error:
        raise CastError(f"{field}: {error}, expected {kind}") from None
    if kind == "double" and not math.isfinite(result):
        raise CastError(f"{field}: not a finite number, which JSON cannot hold, expected double")
    return result


class CastStep(Step):
    summary: ClassVar = (
        "Gives fields another type, as CEL's int(), double(), string() and bool() do; what has the type already stays."
    )
    example: ClassVar = Example(
        yaml="cast: {temperature: double, sensor.id: int}",
        inputs=[{"temperature": "21.5", "sensor": {"id": "7"}}, {"temperature": None}, {"temperature": "warm"}],
        outputs=[Made({"temperature": 21.5, "sensor": {"id": 7}}), Made({"temperature": None})],
        failures=['CastError: "temperature": the string is not a double, expected double'],
    )
    notes: ClassVar = (
        "A field that is missing or null is left alone: `assert` or `validate` refuse it, `default` fills it. "
        "`int` cuts off what stands behind the decimal point of a number, and takes text of digits alone; `bool` "
        'takes `"true"`, `"t"`, `"1"` and their opposites.'
    )

    cast: Annotated[dict[FieldPath, Literal["int", "double", "string", "bool"]], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.need_object("cast")
        for helper in (cast, look, put):
            code.use(helper)
        for path, kind in self.cast.items():
            code.write(f"v = {read(path)}")
            with code.block(f"if type(v) is not {_CASTS[kind][0]} and v is not None:"):
                code.write(write(path, f"cast(v, {kind!r}, {quoted(parts(path))!a})"))
        code.change(*self.cast)
