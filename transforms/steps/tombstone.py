"""tombstone: turn a record into the deletion of its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from transforms.steps.base import Condition, Example, Given, Made, Step

if TYPE_CHECKING:
    from transforms.code import Code


class TombstoneStep(Step):
    summary: ClassVar = (
        "Where the condition is true, sends a null value, which deletes the key in compacted topics, and ends the "
        "record there."
    )
    example: ClassVar = Example(
        yaml='tombstone: op == "d"',
        inputs=[Given({"op": "d", "id": 1}, key="k1"), Given({"op": "u", "id": 2}, key="k2")],
        outputs=[Made(None, key="k1"), Made({"op": "u", "id": 2}, key="k2")],
    )
    notes: ClassVar = (
        "Like a tombstone of the source it goes to *every* topic that an output of the pipeline can go to, "
        "wherever the key went before. Steps that choose the key, or headers, must stand before it."
    )

    tombstone: Condition

    def emit(self, code: Code) -> None:
        code.evaluate([("deleted", code.compile(self.tombstone, "bool"))])
        with code.block("if deleted:"):
            code.tombstones()
