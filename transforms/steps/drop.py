"""drop: remove fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, Made, Step
from transforms.steps.paths import FieldPath, parts, remove

if TYPE_CHECKING:
    from transforms.code import Code


class DropStep(Step):
    summary: ClassVar = "Removes fields; those that a record does not have are ignored."
    example: ClassVar = Example(
        yaml="drop: [pad, customer.email]",
        inputs=[{"id": 1, "pad": "x", "customer": {"id": 7, "email": "a@example.org"}}, {"id": 2}],
        outputs=[Made({"id": 1, "customer": {"id": 7}}), Made({"id": 2})],
    )

    drop: Annotated[list[FieldPath], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.need_object("drop")
        for names in map(parts, self.drop):
            if len(names) == 1:
                code.write(f"r.pop({names[0]!a}, None)")
            else:
                code.write(f"{code.use(remove)}(r, {names!a})")
        code.change(*self.drop)
