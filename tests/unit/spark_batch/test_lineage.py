"""Many lineage texts at once against the form in worker/lineage.py."""

from __future__ import annotations

from random import Random

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from spark_batch.lineage import parse

TOPICS = ("shop", "shop.orders", "a")


def parsed(*texts: bytes, topics: tuple[str, ...] = TOPICS) -> list[tuple[int, int, int, int]]:
    found = parse(pa.array(texts, pa.binary()), topics)
    columns = (found.topic, found.partition, found.offset, found.index)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_every_part_is_read() -> None:
    assert parsed(b"shop.orders/3/4711/0", b"a/0/0/12", b"shop/10/999999999999999999/1") == [
        (1, 3, 4711, 0),
        (2, 0, 0, 12),
        (0, 10, 999_999_999_999_999_999, 1),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"/", b"///", b"a", b"a/1", b"a/1/2", b"a/1/2/", b"a/1/2/3/4", b"/1/2/3", b"a//2/3", b"b/1/2/3", b"aa/1/2/3"),
        *(b"a/x/2/3", b"a/1/-2/3", b"a/1/2/3 ", b"a/1/2.0/3", b"a/1/1234567890123456789/3", b"\xff/1/2/3", b"a/1/2/\x00"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_form_is_none_of_ours_and_leaves_its_neighbours_alone(text: bytes) -> None:
    assert parsed(b"a/7/8/9", text, b"a/4/5/6") == [(2, 7, 8, 9), (-1, 0, 0, 0), (2, 4, 5, 6)]


def test_a_slice_of_a_longer_array_is_read_from_where_it_begins() -> None:
    array = pa.array([b"a/1/2/3", b"a/4/5/6", b"a/7/8/9"], pa.binary()).slice(1, 1)
    assert parse(array, TOPICS).offset.tolist() == [5]


def test_no_texts_and_no_topics() -> None:
    assert parsed() == []
    assert parsed(b"a/1/2/3", topics=()) == [(-1, 0, 0, 0)]


def test_random_texts_are_read_as_split_reads_them() -> None:
    dice = Random(7)
    rows = [(dice.choice(TOPICS), dice.randrange(200), dice.randrange(10**12), dice.randrange(3)) for _ in range(2000)]
    expected = [(TOPICS.index(topic), *rest) for topic, *rest in rows]
    assert parsed(*("/".join(map(str, row)).encode() for row in rows)) == expected
