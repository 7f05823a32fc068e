"""set: give fields the values of expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, FieldName, Step, Value

if TYPE_CHECKING:
    from transforms.code import Code


class SetStep(Step):
    summary: ClassVar = "Sets fields to the values of expressions, which all see the record as it was before the step."
    example: ClassVar = Example(
        yaml="set: {amount_cents: int(amount * 100.0), amount: string(amount)}",
        inputs=[{"amount": 12.5}, {"price": 1.0}],
        outputs=[("out", {"amount": "12.5", "amount_cents": 1250})],
        failures=['no such field: "amount"'],
    )

    set: Annotated[dict[FieldName, Value], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        values = [(f"v{number}", code.compile(text, "json")) for number, text in enumerate(self.set.values())]
        code.evaluate(values)
        code.write(*(f"r[{name!a}] = v{number}" for number, name in enumerate(self.set)))
        code.changed = True
