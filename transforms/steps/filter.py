"""filter: keep a record when a condition is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from transforms.steps.base import Condition, Example, Made, Step

if TYPE_CHECKING:
    from transforms.code import Code


class FilterStep(Step):
    summary: ClassVar = (
        "Keeps the records for which the expression is true; the others yield no output, and are counted."
    )
    example: ClassVar = Example(
        yaml='filter: status != "cancelled" && amount > 0.0',
        inputs=[
            {"status": "ok", "amount": 1.5},
            {"status": "ok", "amount": 0},
            {"status": "cancelled"},
            {"status": "ok", "amount": "1.5"},
        ],
        outputs=[Made({"status": "ok", "amount": 1.5})],
        failures=["CelError: no such overload: string > double"],
    )

    filter: Condition

    def emit(self, code: Code) -> None:
        code.unless(self.filter, *code.skip())
