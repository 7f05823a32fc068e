"""The judge is shown to fail on every kind of fault before it is believed when it finds none."""

from __future__ import annotations

import json

import pytest

from devkit.verify import (
    DEAD_LETTER,
    DEAD_LETTER_HEADERS,
    ExpectedRecord,
    Findings,
    Headers,
    Identify,
    StoredRecord,
    by_content,
    by_lineage,
    compare,
)

SOURCE, SINK, LARGE, DEAD = "orders", "orders.clean", "orders.large", "orders.dead"


def source(offset: int, user: str) -> StoredRecord:
    value = json.dumps({"id": 100 + offset, "user": user}).encode()
    return StoredRecord(SOURCE, 0, offset, user.encode(), value, (("trace", b"t"),), 1_000 + offset)


SOURCES = [source(0, "ann"), source(1, "bob"), source(2, "ann"), source(3, "ann"), source(4, "bob")]
"""0, 2, 3 and 1 have outputs; 4 is a dead letter."""


def output(offset: int) -> bytes:
    return json.dumps({"id": 100 + offset, "customer": "x"}).encode()


EXPECTED = [
    ExpectedRecord((SOURCE, 0, n), 0, SINK, SOURCES[n].key, output(n), (("trace", b"t"),), 1_000 + n) for n in range(4)
]
EXPECTED.append(
    ExpectedRecord((SOURCE, 0, 4), DEAD_LETTER, DEAD, b"bob", SOURCES[4].value, (("trace", b"t"),), 1_004),
)


def lineage(offset: int) -> Headers:
    return (("trace", b"t"), ("reckon.source", f"{SOURCE}/0/{offset}/0".encode()))


def stored(at: int, offset: int, topic: str = SINK) -> StoredRecord:
    """The right output of the source record `offset`, at offset `at` of the sink."""
    return StoredRecord(topic, 0, at, SOURCES[offset].key, output(offset), lineage(offset), 1_000 + offset)


def dead(at: int, offset: int) -> StoredRecord:
    own = dict.fromkeys(DEAD_LETTER_HEADERS, b"?") | {
        "reckon.source.topic": SOURCE.encode(),
        "reckon.source.partition": b"0",
        "reckon.source.offset": str(offset).encode(),
    }
    record = SOURCES[offset]
    return StoredRecord(DEAD, 0, at, record.key, record.value, (("trace", b"t"), *own.items()), record.timestamp_ms)


GOOD = [stored(10, 0), stored(11, 1), stored(12, 2), stored(14, 3), dead(7, 4)]
"""Offset 13 is a commit marker's."""

IDENTIFY = [
    pytest.param(by_lineage(DEAD), id="lineage"),
    pytest.param(by_content(SOURCES, EXPECTED, DEAD), id="content"),
]


def judge(actual: list[StoredRecord], identify: Identify) -> Findings:
    return compare(EXPECTED, actual, identify)


def found(**lists: list[object]) -> Findings:
    findings = Findings()
    for name, entries in lists.items():
        assert name in Findings.__slots__
        setattr(findings, name, entries)
    return findings


@pytest.mark.parametrize("identify", IDENTIFY)
class TestByLineageAndByContent:
    def test_a_good_run_has_no_findings(self, identify: Identify) -> None:
        """Whatever order the partitions were read in."""
        assert found() == judge(GOOD[::-1], identify)
        assert found().ok
        assert found().lines() == []

    def test_a_lost_record(self, identify: Identify) -> None:
        assert found(missing=[((SOURCE, 0, 2), 0)]) == judge([r for r in GOOD if r.offset != 12], identify)

    def test_a_doubled_record(self, identify: Identify) -> None:
        """The copy is the finding, and it is not taken for a disorder too."""
        expected = found(duplicated=[(((SOURCE, 0, 0), 0), (SINK, 0, 20))])
        assert expected == judge([*GOOD, stored(20, 0)], identify)

    def test_a_loss_and_a_duplicate_do_not_cancel(self, identify: Identify) -> None:
        expected = found(missing=[((SOURCE, 0, 3), 0)], duplicated=[(((SOURCE, 0, 1), 0), (SINK, 0, 14))])
        assert expected == judge([*GOOD[:3], stored(14, 1), GOOD[4]], identify)

    def test_reordered_records(self, identify: Identify) -> None:
        """Records of one key behind a later one: all of them, not only the first."""
        actual = [stored(10, 3), stored(11, 0), stored(12, 2), stored(13, 1), dead(7, 4)]
        expected = found(reordered=[(((SOURCE, 0, 0), 0), (SINK, 0, 11)), (((SOURCE, 0, 2), 0), (SINK, 0, 12))])
        assert expected == judge(actual, identify)

    def test_an_order_among_keys_is_not_demanded(self, identify: Identify) -> None:
        assert found() == judge([stored(10, 1), stored(11, 0), stored(12, 2), stored(13, 3), dead(7, 4)], identify)

    def test_a_key_in_two_partitions(self, identify: Identify) -> None:
        actual = [*GOOD[:2], GOOD[2]._replace(partition=1), *GOOD[3:]]
        assert found(scattered=[(SINK, b"ann")]) == judge(actual, identify)

    @pytest.mark.parametrize(
        ("change", "what"),
        [
            ({"value": json.dumps({"id": 102, "customer": "y"}).encode()}, "value"),
            ({"headers": lineage(2)[1:]}, "headers"),
            ({"headers": (("trace", None), lineage(2)[1])}, "headers"),
            ({"headers": (*lineage(2), ("trace", b"t"))}, "headers"),
        ],
    )
    def test_an_altered_record(self, identify: Identify, change: dict[str, object], what: str) -> None:
        altered = GOOD[2]._replace(**change)  # type: ignore[arg-type]
        expected = found(altered=[(((SOURCE, 0, 2), 0), (SINK, 0, 12), what)])
        assert expected == judge([*GOOD[:2], altered, *GOOD[3:]], identify)

    def test_an_altered_key_and_timestamp(self, identify: Identify) -> None:
        altered = GOOD[1]._replace(key=b"eve", timestamp_ms=0)
        expected = found(altered=[(((SOURCE, 0, 1), 0), (SINK, 0, 11), "key, timestamp")])
        assert expected == judge([GOOD[0], altered, *GOOD[2:]], identify)

    def test_another_layout_of_the_same_json_is_no_alteration(self, identify: Identify) -> None:
        same = GOOD[2]._replace(value=b'{"customer":"x","id":102}')
        assert found() == judge([*GOOD[:2], same, *GOOD[3:]], identify)

    def test_an_orphan(self, identify: Identify) -> None:
        """A record that comes from no source record."""
        orphan = StoredRecord(SINK, 0, 20, b"eve", b'{"id":999}', (), 5)
        assert found(unexpected=[(SINK, 0, 20)]) == judge([*GOOD, orphan], identify)

    def test_the_output_of_a_record_that_must_have_none(self, identify: Identify) -> None:
        assert found(unexpected=[(SINK, 0, 20)]) == judge([*GOOD, stored(20, 4)], identify)

    def test_a_record_in_the_wrong_topic(self, identify: Identify) -> None:
        expected = found(misrouted=[(((SOURCE, 0, 3), 0), (LARGE, 0, 3))])
        assert expected == judge([*GOOD[:3], stored(3, 3, LARGE), GOOD[4]], identify)

    def test_a_missing_dead_letter(self, identify: Identify) -> None:
        assert found(dead_letters_missing=[((SOURCE, 0, 4), DEAD_LETTER)]) == judge(GOOD[:4], identify)

    def test_a_dead_letter_of_a_good_record(self, identify: Identify) -> None:
        assert found(dead_letters_extra=[(DEAD, 0, 8)]) == judge([*GOOD, dead(8, 0)], identify)

    def test_a_doubled_dead_letter(self, identify: Identify) -> None:
        expected = found(duplicated=[(((SOURCE, 0, 4), DEAD_LETTER), (DEAD, 0, 8))])
        assert expected == judge([*GOOD, dead(8, 4)], identify)

    def test_an_altered_dead_letter(self, identify: Identify) -> None:
        """Its bytes must be the source's: equal JSON will not do, and every header of ours must be there."""
        record = dead(7, 4)
        altered = record._replace(value=(record.value or b"").replace(b" ", b""), headers=record.headers[:-1])
        expected = found(altered=[(((SOURCE, 0, 4), DEAD_LETTER), (DEAD, 0, 7), "value, dead-letter headers")])
        by_content_only = by_content(SOURCES, EXPECTED, DEAD)
        assert expected == judge([*GOOD[:4], altered], by_content_only)


@pytest.mark.parametrize("pair", [("1", "1.0"), ("1", "true"), ("null", '""'), ("[1,2]", "[2,1]")])
def test_json_values_of_another_type_are_another_value(pair: tuple[str, str]) -> None:
    """Python's 1 == 1.0 == True must not hide an alteration."""
    want = EXPECTED[0]._replace(value=f'{{"id":100,"x":{pair[0]}}}'.encode())
    got = GOOD[0]._replace(value=f'{{"id":100,"x":{pair[1]}}}'.encode())
    expected = found(altered=[(((SOURCE, 0, 0), 0), (SINK, 0, 10), "value")])
    assert expected == compare([want], [got], by_lineage(DEAD))


def test_a_tombstone_is_not_an_empty_value() -> None:
    want = EXPECTED[0]._replace(value=None)
    assert compare([want], [GOOD[0]._replace(value=None)], by_lineage(DEAD)).ok
    expected = found(altered=[(((SOURCE, 0, 0), 0), (SINK, 0, 10), "value")])
    assert expected == compare([want], [GOOD[0]._replace(value=b"")], by_lineage(DEAD))


@pytest.mark.parametrize("value", [b"orders/0/1", b"orders/0/x/0", b"", None, b"\xff/0/1/0"])
def test_a_lineage_header_that_cannot_be_read_names_nobody(value: bytes | None) -> None:
    assert by_lineage(DEAD)(GOOD[0]._replace(headers=(("reckon.source", value),))) is None


def test_tombstones_are_recognised_by_key_and_timestamp() -> None:
    tombstone = StoredRecord(SOURCE, 2, 9, b"ann", None, (), 77)
    copy = StoredRecord(SINK, 0, 0, b"ann", None, (), 77)
    assert by_content([tombstone], [], DEAD)(copy) == ((SOURCE, 2, 9), 0)


def test_outputs_of_one_record_in_several_topics_are_recognised_by_content() -> None:
    """A tombstone goes to every topic where its key may be."""
    tombstone = StoredRecord(SOURCE, 2, 9, b"ann", None, (), 77)
    expected = [
        ExpectedRecord(tombstone.position, index, topic, b"ann", None, (), 77)
        for index, topic in enumerate((SINK, LARGE))
    ]
    copies = [tombstone._replace(topic=SINK, partition=0), tombstone._replace(topic=LARGE, partition=0)]
    identify = by_content([tombstone], expected, DEAD)
    assert compare(expected, copies, identify).ok
    assert compare(expected, copies[:1], identify) == found(missing=[((SOURCE, 2, 9), 1)])


def test_two_outputs_of_one_record_are_told_apart() -> None:
    """By their index: the second is no duplicate of the first, and their order counts."""
    expected = [EXPECTED[0], EXPECTED[0]._replace(output_index=1)]
    first = GOOD[0]
    second = first._replace(offset=11, headers=(("trace", b"t"), ("reckon.source", b"orders/0/0/1")))
    assert compare(expected, [first, second], by_lineage(DEAD)).ok
    swapped = [first._replace(offset=12), second]
    assert found(reordered=[(((SOURCE, 0, 0), 0), (SINK, 0, 12))]) == compare(expected, swapped, by_lineage(DEAD))


def test_lines_name_the_kind_the_count_and_the_first_few() -> None:
    findings = found(missing=[((SOURCE, 0, n), 0) for n in range(5)])
    assert findings.lines(examples=2) == ["missing: 5, e.g. (('orders', 0, 0), 0); (('orders', 0, 1), 0)"]
