"""The benchmark's verifier accepts exactly the right output and names what is wrong with any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import orjson
import pytest

from tests.bench.verify import Verdict, Verifier
from tests.bench.workload import USERS, expected_output, is_kept, kept_count, source_record

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = 3 * USERS
"""Every user occurs three times, so that there is an order per key to break."""

Outputs: TypeAlias = "list[tuple[bytes | None, bytes | None]]"


def right_outputs() -> Outputs:
    outputs: Outputs = []
    for number in filter(is_kept, range(RECORDS)):
        key, fields = expected_output(number)
        outputs.append((key.encode(), orjson.dumps(fields)))
    return outputs


def judged(outputs: Outputs) -> Verdict:
    verifier = Verifier(RECORDS)
    for key, value in outputs:
        verifier.add(key, value)
    return verifier.verdict()


def verdict(outputs: int = 2000, lost: int = 0, doubled: int = 0, altered: int = 0, reordered: int = 0) -> Verdict:
    return Verdict(outputs=outputs, expected=2000, lost=lost, doubled=doubled, altered=altered, reordered=reordered)


def test_right_output_is_accepted() -> None:
    """All outputs, once each, in order: nothing is wrong."""
    found = judged(right_outputs())
    assert verdict() == found
    assert found.ok


def test_order_between_keys_is_free() -> None:
    """Partitions are read in any order: only the order of one key's records counts."""
    found = judged(sorted(right_outputs(), key=lambda output: output[0] or b""))
    assert verdict() == found


def test_lost_record_fails() -> None:
    outputs = right_outputs()
    del outputs[1000]
    found = judged(outputs)
    assert verdict(outputs=1999, lost=1) == found
    assert not found.ok


def test_doubled_record_fails() -> None:
    outputs = right_outputs()
    found = judged([*outputs[:1001], *outputs[1000:]])
    assert verdict(outputs=2001, doubled=1) == found
    assert not found.ok


def test_a_loss_does_not_cancel_a_double() -> None:
    """The count is right, the output is not."""
    outputs = right_outputs()
    outputs[1001] = outputs[1000]
    found = judged(outputs)
    assert verdict(lost=1, doubled=1) == found
    assert not found.ok


def test_reordered_records_of_one_key_fail() -> None:
    outputs = right_outputs()
    key = outputs[0][0]
    first, second, *_ = (index for index, output in enumerate(outputs) if output[0] == key)
    outputs[first], outputs[second] = outputs[second], outputs[first]
    found = judged(outputs)
    assert verdict(reordered=1) == found
    assert not found.ok


def _pad(fields: dict[str, object]) -> None:
    fields["pad"] = str(fields["pad"])[:-1] + "!"


def _cents_as_float(fields: dict[str, object]) -> None:
    fields["amount_cents"] = float(str(fields["amount_cents"]))


def _user_kept(fields: dict[str, object]) -> None:
    fields["user"] = fields["customer"]


def _id_as_text(fields: dict[str, object]) -> None:
    fields["id"] = str(fields["id"])


@pytest.mark.parametrize("alter", [_pad, _cents_as_float, _user_kept, _id_as_text])
def test_altered_value_fails(alter: Callable[[dict[str, object]], None]) -> None:
    """One character, one type, one field too many: an output that is not exact is altered, and its record is lost."""
    outputs = right_outputs()
    key, value = outputs[1000]
    fields = orjson.loads(value or b"")
    alter(fields)
    outputs[1000] = (key, orjson.dumps(fields))
    found = judged(outputs)
    assert verdict(lost=1, altered=1) == found
    assert not found.ok


@pytest.mark.parametrize("key", [None, b"", b"u-1"])
def test_altered_key_fails(key: bytes | None) -> None:
    outputs = right_outputs()
    outputs[1000] = (key, outputs[1000][1])
    assert verdict(lost=1, altered=1) == judged(outputs)


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b"{}", b'{"id": -1}', b'{"id": 3000}', b'{"id": true}'])
def test_what_is_no_output_of_the_job_is_altered(value: bytes | None) -> None:
    """Rubbish is counted, never an exception: one bad record must not hide what is wrong with the others."""
    assert verdict(outputs=2001, altered=1) == judged([*right_outputs(), (b"u0", value)])


def test_a_record_that_the_job_drops_must_not_come_out() -> None:
    key, fields = source_record(0)
    assert fields["status"] == "bad"
    assert verdict(outputs=2001, altered=1) == judged([*right_outputs(), (key.encode(), orjson.dumps(fields))])


def test_number_spelling_and_field_order_mean_nothing() -> None:
    """Engines write the same float as 10.0, 10 or 1.0E1 and fields in any order."""
    outputs = right_outputs()
    number = next(n for n in filter(is_kept, range(RECORDS)) if n * 37 % 1000003 % 100 == 0)
    key, fields = expected_output(number)
    amount = fields.pop("amount")
    spelled = orjson.dumps(fields)[:-1] + b',"amount":%d}' % int(amount)
    outputs[kept_count(number)] = (key.encode(), spelled)
    assert verdict() == judged(outputs)
