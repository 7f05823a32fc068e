"""value: make something else the whole value."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from transforms.steps.base import Example, Made, Step, Value

if TYPE_CHECKING:
    from transforms.code import Code


class ValueStep(Step):
    summary: ClassVar = (
        "Makes the value of an expression the whole value: an inner object, an object made of text, text made of "
        "an object."
    )
    example: ClassVar = Example(
        yaml="value: after",
        inputs=[{"before": None, "after": {"id": 1}}, {"after": [1, 2]}, {}],
        outputs=[Made({"id": 1}), Made([1, 2])],
        failures=['CelError: no such field: "after"'],
    )
    notes: ClassVar = (
        "`this` is then that value. Steps that need an object make a dead letter (`WrongType`) where it is none. "
        "A null value is a tombstone only by the step `tombstone`; here it is the JSON `null`."
    )

    value: Value

    def emit(self, code: Code) -> None:
        code.evaluate([("r", code.compile(self.value, "any" if code.binary else "json"))])
        code.object = False
        code.change()
