"""keep: remove all fields but these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, FieldName, Step

if TYPE_CHECKING:
    from transforms.code import Code


class KeepStep(Step):
    summary: ClassVar = "Keeps only these fields, in the order of the record; those that it does not have are ignored."
    example: ClassVar = Example(
        yaml="keep: [customer, id]",
        inputs=[{"id": 1, "pad": "x", "customer": "u1"}, {"id": 2}],
        outputs=[("out", {"id": 1, "customer": "u1"}), ("out", {"id": 2})],
    )

    keep: Annotated[list[FieldName], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        names = ", ".join(ascii(name) for name in dict.fromkeys(self.keep))
        code.write(f"r = {{name: value for name, value in r.items() if name in {{{names}}}}}")
        code.changed = True
