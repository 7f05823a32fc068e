"""assert: what must hold for a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.errors import AssertionFailed
from transforms.steps.base import Condition, Example, Made, Model, Step

if TYPE_CHECKING:
    from transforms.code import Code


class Assertion(Model):
    that: Condition
    message: Annotated[str, Field(min_length=1, max_length=500)] = "the condition of the assertion is false"
    """Of the dead letter."""


class AssertStep(Step):
    summary: ClassVar = "Makes a dead letter, with a message, of each record for which the condition is false."
    example: ClassVar = Example(
        yaml="assert: {that: amount > 0.0, message: an order has a positive amount}",
        inputs=[{"amount": 1.5}, {"amount": -1}],
        outputs=[Made({"amount": 1.5})],
        failures=["AssertionFailed: an order has a positive amount"],
    )

    assert_: Annotated[Assertion, Field(alias="assert")]

    def emit(self, code: Code) -> None:
        code.evaluate([("holds", code.compile(self.assert_.that, "bool"))])
        with code.block("if not holds:"):
            code.write(f"raise {code.use(AssertionFailed)}({self.assert_.message!a})")
