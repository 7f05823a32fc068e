"""default: values for fields that are missing or null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, Made, Step, Value
from transforms.steps.paths import FieldPath, look, put, read, write

if TYPE_CHECKING:
    from transforms.code import Code


class DefaultStep(Step):
    summary: ClassVar = (
        "Sets fields that are missing or null to the values of expressions, one after the other: each sees those "
        "before it."
    )
    example: ClassVar = Example(
        yaml="default: {currency: '\"EUR\"', total: price * quantity}",
        inputs=[{"price": 2, "quantity": 3, "currency": None}, {"total": 5, "currency": "SEK"}, {"price": 2}],
        outputs=[
            Made({"price": 2, "quantity": 3, "currency": "EUR", "total": 6}),
            Made({"total": 5, "currency": "SEK"}),
        ],
        failures=['CelError: no such field: "quantity"'],
    )
    notes: ClassVar = "An expression is evaluated only where its value is needed."

    default: Annotated[dict[FieldPath, Value], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.need_object("default")
        for helper in (look, put):
            code.use(helper)
        expressions = [code.compile(text, "json") for text in self.default.values()]
        code.prepare(*expressions)
        for path, expression in zip(self.default, expressions, strict=True):
            with code.block(f"if {read(path)} is None:"):
                code.evaluate([("v", expression)])
                code.write(write(path, "v"))
        code.change(*self.default)
