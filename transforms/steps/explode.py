"""explode: one record per element of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from transforms.cel.runtime import type_name
from transforms.errors import TooMuchOutput, WrongType
from transforms.steps.base import Example, Made, Model, Step
from transforms.steps.paths import FieldPath, look, parts, put, quoted, read, remove, write

if TYPE_CHECKING:
    from transforms.code import Code


def elements(value: Any, field: str, limit: int) -> list[Any]:
    """The list; an empty one for null. Raises `WrongType`, `TooMuchOutput`."""
    if value is None:
        return []
    if type(value) is not list:
        raise WrongType(f"{field} is of type {type_name(value)}, expected a list")
    if len(value) > limit:
        raise TooMuchOutput(f"{field} has {len(value)} elements, expected at most {limit}")
    return value


class Explosion(Model):
    field: FieldPath
    into: FieldPath | None = None
    """The field that holds the element; without it, that of the list."""
    index: FieldPath | None = None
    """A field for the element's place in the list, from 0."""
    limit: Annotated[int, Field(ge=1, le=1_000_000, strict=False)] = 10_000
    """Longer lists are an error."""


class ExplodeStep(Step):
    summary: ClassVar = (
        "Makes a record of each element of a list, with all other fields of the record; the steps behind it run "
        "for each."
    )
    example: ClassVar = Example(
        yaml="explode: {field: readings, into: reading, index: nr}",
        inputs=[
            {"device": "d1", "readings": [{"t": 20.5}, {"t": 21}]},
            {"device": "d2", "readings": []},
            {"readings": 5},
        ],
        outputs=[
            Made({"device": "d1", "reading": {"t": 20.5}, "nr": 0}),
            Made({"device": "d1", "reading": {"t": 21}, "nr": 1}),
        ],
        failures=['WrongType: "readings" is of type int, expected a list'],
    )
    notes: ClassVar = (
        "A list that is missing, null or empty yields no output. The outputs of one record are numbered from 0 in "
        "the header `reckon.source`, over all topics, in the order in which they are made; an error in one "
        "element makes one dead letter of the whole record, and none of its outputs. `limit`, and 64 MiB for the "
        "outputs' values together, keep one record from filling the memory."
    )

    explode: Explosion

    def emit(self, code: Code) -> None:
        code.need_object("explode")
        of = self.explode
        for helper in (look, put, remove):
            code.use(helper)
        names = parts(of.field)
        base, item, number = code.version("base"), code.version("item"), code.version("number")
        code.write(f"items = {code.use(elements)}({read(of.field)}, {quoted(names)!a}, {of.limit})", f"{base} = r")
        if of.into not in (None, of.field):
            code.write(f"remove({base}, {names!a})" if len(names) > 1 else f"{base}.pop({names[0]!a}, None)")
        code.loop(f"for {number}, {item} in enumerate(items):" if of.index else f"for {item} in items:")
        code.write(f"r = {base}.copy()", write(of.into or of.field, item))
        if of.index:
            code.write(write(of.index, number))
        code.change()
