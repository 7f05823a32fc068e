"""set: give fields the values of expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, Made, Step, Value
from transforms.steps.paths import FieldPath, put, write

if TYPE_CHECKING:
    from transforms.code import Code


class SetStep(Step):
    summary: ClassVar = "Sets fields to the values of expressions, which all see the record as it was before the step."
    example: ClassVar = Example(
        yaml="set: {amount_cents: int(amount * 100.0), amount: string(amount)}",
        inputs=[{"amount": 12.5}, {"price": 1.0}],
        outputs=[Made({"amount": "12.5", "amount_cents": 1250})],
        failures=['CelError: no such field: "amount"'],
    )
    notes: ClassVar = "Objects on the way to a nested field are made where they are missing or null."

    set: Annotated[dict[FieldPath, Value], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.need_object("set")
        code.use(put)
        values = [(f"v{number}", code.compile(text, "json")) for number, text in enumerate(self.set.values())]
        code.evaluate(values)
        code.write(*(write(name, f"v{number}") for number, name in enumerate(self.set)))
        code.change(*self.set)
        for path, (_, expression) in zip(self.set, values, strict=True):
            code.know(path, expression)
