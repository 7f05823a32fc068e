"""drop: remove fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, FieldName, Step

if TYPE_CHECKING:
    from transforms.code import Code


class DropStep(Step):
    summary: ClassVar = "Removes fields; those that a record does not have are ignored."
    example: ClassVar = Example(
        yaml="drop: [pad, note]",
        inputs=[{"id": 1, "pad": "x"}, {"id": 2}],
        outputs=[("out", {"id": 1}), ("out", {"id": 2})],
    )

    drop: Annotated[list[FieldName], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.write(*(f"r.pop({name!a}, None)" for name in self.drop))
        code.changed = True
