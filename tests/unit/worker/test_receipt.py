from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from worker.receipt import PartitionReceipt, Receipt

RECEIPT = Receipt(
    pipeline="orders",
    transactional_id="orders-a",
    incarnation="6b0f",
    sequence=7,
    transform="sha256:00",
    worker="0.1.0",
    time_ms=1_700_000_000_000,
    partitions=(
        PartitionReceipt("in", 0, from_=10, to=20, read=9, filtered=2, dead_lettered=1, written={"out": 5, "other": 1}),
        PartitionReceipt("in", 1, from_=0, to=1, read=1, filtered=1, dead_lettered=0, topic_id="wT"),
    ),
)
JSON = (
    b'{"pipeline":"orders","transactional_id":"orders-a","incarnation":"6b0f","sequence":7,"transform":"sha256:00",'
    b'"worker":"0.1.0","time_ms":1700000000000,"partitions":['
    b'{"topic":"in","partition":0,"to":20,"read":9,"filtered":2,"dead_lettered":1,"written":{"out":5,"other":1},"topic_id":null,"from":10},'
    b'{"topic":"in","partition":1,"to":1,"read":1,"filtered":1,"dead_lettered":0,"written":{},"topic_id":"wT","from":0}],"schema":1,"lineage":true}'
)


def test_encode_is_exactly_the_documented_json() -> None:
    """The audit and other people's readers live on these bytes."""
    assert RECEIPT.encode() == JSON


def test_decode_is_the_inverse_of_encode() -> None:
    """What was written comes back equal, also without partitions."""
    assert Receipt.decode(RECEIPT.encode()) == RECEIPT
    empty = replace(RECEIPT, partitions=())
    assert Receipt.decode(empty.encode()) == empty


def test_a_receipt_that_does_not_say_whether_outputs_are_stamped_is_of_stamped_ones() -> None:
    """Workers wrote none of it before they could say so; the schema is the same."""
    assert Receipt.decode(JSON.replace(b',"lineage":true', b"")) == RECEIPT
    bare = replace(RECEIPT, lineage=False)
    assert bare.encode() == JSON.replace(b'"lineage":true', b'"lineage":false')
    assert Receipt.decode(bare.encode()) == bare


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (JSON.replace(b'"schema":1', b'"schema":2'), "receipt of schema 2, 1 was expected"),
        (b"{}", "receipt of schema None, 1 was expected"),
    ],
)
def test_decode_refuses_another_schema(value: bytes, message: str) -> None:
    """A later schema is not guessed at."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        Receipt.decode(value)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", ValueError),
        (b"[]", TypeError),
        (orjson.dumps({"schema": 1}), KeyError),
        (JSON.replace(b'"from":10', b'"start":10'), KeyError),
        (JSON.replace(b'"sequence":7,', b""), TypeError),
        (JSON.replace(b'"read":9', b'"seen":9'), TypeError),
    ],
)
def test_decode_of_something_else_fails_as_documented(value: bytes, error: type[Exception]) -> None:
    """Readers catch ValueError, KeyError and TypeError."""
    with pytest.raises(error):
        Receipt.decode(value)
