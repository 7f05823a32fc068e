"""parse_json: text that is JSON becomes the value that it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import orjson
from pydantic import Field

from transforms.cel.runtime import type_name
from transforms.errors import ParseError
from transforms.steps.base import Example, Made, Step
from transforms.steps.paths import FieldPath, look, parts, put, quoted, read, write

if TYPE_CHECKING:
    from transforms.code import Code


def parse_json(value: Any, field: str) -> Any:
    if type(value) is not str:
        raise ParseError(f"{field} is of type {type_name(value)}, expected text that is JSON")
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise ParseError(f"{field} is not JSON: {error}") from None


class ParseJsonStep(Step):
    summary: ClassVar = "Replaces text that is JSON by its value."
    example: ClassVar = Example(
        yaml="parse_json: [payload]",
        inputs=[{"payload": '{"id": 1}'}, {"payload": None}, {"payload": "{"}],
        outputs=[Made({"payload": {"id": 1}}), Made({"payload": None})],
        failures=['ParseError: "payload" is not JSON: unexpected end of data: line 1 column 2 (char 1)'],
    )
    notes: ClassVar = "A field that is missing or null is left alone."

    parse_json: Annotated[list[FieldPath], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.need_object("parse_json")
        for helper in (parse_json, look, put):
            code.use(helper)
        for path in self.parse_json:
            code.write(f"v = {read(path)}")
            with code.block("if v is not None:"):
                code.write(write(path, f"parse_json(v, {quoted(parts(path))!a})"))
        code.change(*self.parse_json)
