"""key: give a record another key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from transforms.steps.base import Example, Given, Made, Step, Value

if TYPE_CHECKING:
    from transforms.code import Code


def as_bytes(value: Any) -> bytes | None:
    """Text as it is, null as none, everything else as JSON."""
    if value is None:
        return None
    return value.encode() if type(value) is str else orjson.dumps(value)


class KeyStep(Step):
    summary: ClassVar = (
        "Sets the key to the value of an expression: text as it is, null for none, everything else as JSON."
    )
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

    key: Value

    def emit(self, code: Code) -> None:
        code.evaluate([("v", code.compile(self.key, "json"))])
        code.set_key(f"{code.use(as_bytes)}(v)")
