"""What must hold for every run of records through a pipeline, whatever they are."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import orjson

from tests.fuzz.values import SECRET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fuzz.targets import Target
    from transforms.records import Result
    from transforms.samples import Sample

_SURPRISE = "in a way that it should not"
"""Of the message for an exception that no step should raise."""


def complaints(target: Target, records: Sequence[Sample], result: Result) -> list[tuple[str, Sample | None]]:
    """(what does not hold, the record that it does not hold for)."""
    found: list[tuple[str, Sample | None]] = []
    numbers = {id(record): number for number, record in enumerate(records)}
    indexes: dict[int, list[int]] = defaultdict(list)
    order: list[int] = []
    for output in result.outputs:
        number = numbers[id(output[5])]
        order.append(number)
        indexes[number].append(output[6])
        wrong = _wrong_output(target, output[0], output[1])
        if wrong or not (output[2] is None or isinstance(output[2], bytes)):
            found.append((wrong or "a key that is no bytes", records[number]))
    failed = [numbers[id(failure.record)] for failure in result.failures]
    for number, made in indexes.items():
        if made != list(range(len(made))):
            found.append((f"outputs are numbered {made[:10]}", records[number]))
        if number in failed:
            found.append(("outputs and a dead letter", records[number]))
    for failure in result.failures:
        if _SURPRISE in failure.message:
            found.append((f"{failure.error_class} in {failure.step}", records[numbers[id(failure.record)]]))
        if SECRET in failure.message:
            found.append(
                (f"the message quotes the record: {failure.message[:200]}", records[numbers[id(failure.record)]])
            )
    if order != sorted(order) or failed != sorted(set(failed)):
        found.append(("not in the order of the records", None))
    settled = len(indexes) + len(set(failed) - indexes.keys()) + result.filtered
    if settled != len(records):
        found.append((f"{settled} of {len(records)} records are settled", None))
    return found


def _wrong_output(target: Target, topic: str, value: object) -> str | None:
    if topic not in target.transform.topics:
        return f"an output to {topic}"
    if value is None:
        return None
    if not isinstance(value, bytes):
        return f"a value of type {type(value).__name__}"
    if target.spec.topic_formats[topic] == "json" and target.spec.steps:
        try:
            orjson.loads(value)
        except orjson.JSONDecodeError as error:
            return f"an output that is no JSON: {error}"
    return None
