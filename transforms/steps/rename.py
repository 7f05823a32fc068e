"""rename: give fields other names."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from transforms.code import Code
from transforms.steps.base import Example, FieldName, Step


class RenameStep(Step):
    summary: ClassVar = (
        "Renames fields, all at once; a missing one is an error. A renamed field stands last and replaces one of its new name."
    )
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
            code.attempt([f"v{number} = r.pop({ascii(old)})"], [f"v{number} = take(r, {ascii(old)})"])
        code.write(*(f"r[{ascii(new)}] = v{number}" for number, new in enumerate(self.rename.values())))
        code.changed = True
