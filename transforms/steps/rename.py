"""rename: give fields other names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, FieldName, Step

if TYPE_CHECKING:
    from transforms.code import Code


class RenameStep(Step):
    summary: ClassVar = "Renames fields, all at once; a missing one is an error. Renamed fields stand last, and replace those of the name."
    example: ClassVar = Example(
        yaml="rename: {user: customer}",
        inputs=[{"user": "u1", "id": 1}, {"id": 2}],
        outputs=[("out", {"id": 1, "customer": "u1"})],
        failures=['no such field: "user"'],
    )

    rename: Annotated[dict[FieldName, FieldName], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        # All values are taken before one is put back, so that {a: b, b: a} swaps.
        for number, old in enumerate(self.rename):
            code.attempt([f"v{number} = r.pop({old!a})"], [f"v{number} = take(r, {old!a})"])
        code.write(*(f"r[{new!a}] = v{number}" for number, new in enumerate(self.rename.values())))
        code.changed = True
