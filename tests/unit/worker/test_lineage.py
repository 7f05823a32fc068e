from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.records import Record
from worker.lineage import stamped, unstamped

if TYPE_CHECKING:
    from transforms.records import HeaderList, Output

UPSTREAM: tuple[str, str | bytes | None] = ("reckon.source", b"grand/0/1/0")


def output(headers: HeaderList | None, offset: int = 4711, index: int = 0) -> Output:
    return ("out", b"value", b"key", headers, 99, Record(b"", offset_=offset), index)


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (None, []),
        ([], []),
        ([("a", b"1"), ("a", None)], [("a", b"1"), ("a", None)]),
        ([("a", b"1"), UPSTREAM, ("b", b"2"), UPSTREAM], [("a", b"1"), ("b", b"2")]),
    ],
    ids=["none", "empty", "doubled and null", "upstream lineage"],
)
def test_lineage_header_is_added_and_replaces_an_upstream_one(headers: HeaderList | None, kept: HeaderList) -> None:
    """Other headers stay in order before ours, which names topic, partition, offset and output index."""
    before = None if headers is None else list(headers)

    (message,) = stamped("shop.orders", 3, [output(headers, index=2)])

    assert message == ("out", b"value", b"key", -1, None, None, 99, [*kept, ("reckon.source", "shop.orders/3/4711/2")])
    assert headers == before, "the source record's own headers are not touched"


def test_lineage_of_several_outputs() -> None:
    """Each output is stamped with its own record's offset and its own index, in order."""
    messages = stamped("in", 0, [output(None, 5, 0), output(None, 5, 1), output(None, 7, 0)])

    assert [message[7] for message in messages] == [
        [("reckon.source", "in/0/5/0")],
        [("reckon.source", "in/0/5/1")],
        [("reckon.source", "in/0/7/0")],
    ]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [(None, None), ([("a", b"1"), UPSTREAM], [("a", b"1")])],
    ids=["none", "upstream lineage"],
)
def test_without_lineage_an_upstream_header_is_taken_off(
    headers: HeaderList | None, expected: HeaderList | None
) -> None:
    """It would name the record's grandparent, which is a lie."""
    assert unstamped([output(headers)]) == [("out", b"value", b"key", -1, None, None, 99, expected)]
