"""rename: give fields other names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from transforms.steps.base import Example, Made, Step
from transforms.steps.paths import FieldPath, parts, put, take, write

if TYPE_CHECKING:
    from transforms.code import Code


class RenameStep(Step):
    summary: ClassVar = (
        "Renames fields, all at once; a missing one is an error. Renamed fields stand last, and replace those of "
        "the name."
    )
    example: ClassVar = Example(
        yaml="rename: {user: customer.name}",
        inputs=[{"user": "u1", "id": 1}, {"id": 2}],
        outputs=[Made({"id": 1, "customer": {"name": "u1"}})],
        failures=['MissingField: no such field: "user"'],
    )

    rename: Annotated[dict[FieldPath, FieldPath], Field(min_length=1)]

    def emit(self, code: Code) -> None:
        code.need_object("rename")
        code.use(take)
        code.use(put)
        # All values are taken before one is put back, so that {a: b, b: a} swaps.
        for number, names in enumerate(map(parts, self.rename)):
            if len(names) == 1:
                code.attempt([f"v{number} = r.pop({names[0]!a})"], [f"v{number} = take(r, {names!a})"])
            else:
                code.write(f"v{number} = take(r, {names!a})")
        code.write(*(write(new, f"v{number}") for number, new in enumerate(self.rename.values())))
        code.change(*self.rename, *self.rename.values())
