from __future__ import annotations

from importlib.metadata import version

import pytest

from tests.support.records import Record
from transforms.records import Failure, HeaderList
from worker.dead_letter import DeadLetterLimit, dead_letters
from worker.errors import DeadLetterLimitError

ANY = Failure(Record(b""), "CelError", "no such key: amount", "steps[1] set", 12)


def ours(message: str = "no such key: amount") -> HeaderList:
    return [
        ("reckon.error.class", "CelError"),
        ("reckon.error.message", message),
        ("reckon.step", "steps[1] set"),
        ("reckon.pipeline.line", "12"),
        ("reckon.source.topic", "in"),
        ("reckon.source.partition", "3"),
        ("reckon.source.offset", "4711"),
        ("reckon.worker.version", version("reckon")),
    ]


@pytest.mark.parametrize("headers", [None, [], [("a", b"1"), ("reckon.step", "upstream"), ("a", None)]])
@pytest.mark.parametrize("value", [b"not json", None])
@pytest.mark.parametrize("key", [b"key", None])
def test_a_dead_letter_is_the_original_with_our_headers_behind_its_own(
    headers: HeaderList | None, value: bytes | None, key: bytes | None
) -> None:
    """Key, value, headers and timestamp as they were; the source record itself is not touched."""
    before = None if headers is None else list(headers)
    record = Record(value, key, headers, 1234, "in", 3, 4711)

    (letter,) = dead_letters("dead", [Failure(record, "CelError", "no such key: amount", "steps[1] set", 12)])

    assert letter == ("dead", value, key, -1, None, None, 1234, [*(headers or []), *ours()])
    assert headers == before


def test_a_long_message_is_cut_and_a_missing_timestamp_is_the_brokers_choice() -> None:
    """1000 characters of the message; -1 would be refused by the client, 0 lets it take the time of now."""
    record = Record(b"", b"key", None, -1, "in", 3, 4711)

    (letter,) = dead_letters("dead", [Failure(record, "CelError", "x" * 1001, "steps[1] set", 12)])

    assert letter == ("dead", b"", b"key", -1, None, None, 0, ours("x" * 1000))


def test_absolute_limit_counts_since_the_start() -> None:
    """The last dead letter that fits is allowed, the next one is not."""
    limit = DeadLetterLimit(1.0, 1000, 5)
    limit.check(1000, 3, ANY)
    limit.committed(1000, 3)
    limit.check(1000, 2, ANY)

    with pytest.raises(
        DeadLetterLimitError,
        match=r"^6 dead letters since the start, the limit is 5 \(dead_letters\.limit\.absolute\): nothing of this batch was "
        r"committed; the last one: CelError at steps\[1\] set: no such key: amount$",
    ):
        limit.check(1000, 3, ANY)


def test_share_limit_is_judged_over_the_window() -> None:
    """Exactly the share is allowed, one more is not; the message tells the figures and the setting."""
    limit = DeadLetterLimit(0.1, 10_000, None)
    limit.committed(1000, 50)
    limit.check(1000, 150, ANY)

    with pytest.raises(
        DeadLetterLimitError,
        match=r"^10% of the last 2000 records failed, the limit is 10% \(dead_letters\.limit\.share over a window of 10000\): "
        r"nothing of this batch was committed$",
    ):
        limit.check(1000, 151, None)


def test_share_is_not_judged_below_its_minimum() -> None:
    """99 of 99 bad records are not yet the mark of a bad deploy, 100 of 100 are."""
    limit = DeadLetterLimit(0.1, 10_000, None)
    limit.check(99, 99, ANY)

    with pytest.raises(DeadLetterLimitError, match=r"^100% of the last 100 records failed"):
        limit.check(100, 100, ANY)


def test_what_left_the_window_does_not_count() -> None:
    """Bad records are forgotten once the window is full without them, and not before."""
    limit = DeadLetterLimit(0.1, 1000, None)
    limit.committed(100, 90)
    limit.committed(999, 0)
    with pytest.raises(DeadLetterLimitError, match=r"^17% of the last 1209 records failed"):
        limit.check(110, 110, ANY)

    limit.committed(1, 0)

    limit.check(110, 110, ANY)
    assert limit.total == 90


def test_batches_that_are_not_committed_do_not_count() -> None:
    """A batch that is aborted and replayed ten times is not ten batches."""
    limit = DeadLetterLimit(0.1, 10_000, 100)

    for _ in range(10):
        limit.check(1000, 100, ANY)

    assert limit.total == 0
    limit.committed(1000, 100)
    assert limit.total == 100


def test_a_batch_without_dead_letters_always_passes() -> None:
    """Also where the window stands at its limit: clean records are the way out."""
    limit = DeadLetterLimit(0.1, 10_000, 100)
    limit.committed(1000, 900)

    limit.check(1, 0, None)
