"""key: give a record another key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from transforms.cel.containers import storable
from transforms.formats import json_bytes
from transforms.steps.base import AnyValue, Example, Given, Made, Step

if TYPE_CHECKING:
    from transforms.code import Code


def as_bytes(value: Any) -> bytes | None:
    """Text and bytes as they are, null as none, everything else as JSON. CelError for what has no JSON."""
    if value is None or type(value) is bytes:
        return value
    value = value if type(value) is str else storable(value)
    return value.encode() if type(value) is str else json_bytes(value)


class KeyStep(Step):
    summary: ClassVar = "Sets the key to the value of an expression: text and bytes as they are, null for none, everything else as JSON."
    example: ClassVar = Example(
        yaml="key: customer.id",
        inputs=[
            Given({"customer": {"id": 7}}, key="order-1"),
            Given({"customer": {"id": "a"}}),
            Given({}, key="order-2"),
        ],
        outputs=[Made({"customer": {"id": 7}}, key="7"), Made({"customer": {"id": "a"}}, key="a")],
        failures=['CelError: no such field: "customer"'],
    )
    notes: ClassVar = (
        "Records with the same key stand in one partition of the output, in the order of the *source's* "
        "partitions: after a change of key, records of one new key may come from several source partitions. "
        "Source records with a null value (tombstones) do not pass the steps: they keep their key, so say "
        "`tombstones: drop` where a new key makes them useless."
    )

    key: AnyValue

    def emit(self, code: Code) -> None:
        code.evaluate([("v", code.compile(self.key, "any"))])
        code.set_key(f"{code.use(as_bytes)}(v)")
