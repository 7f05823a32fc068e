"""The benchmark's job, computed by hand for one record."""

from __future__ import annotations

from tests.bench.workload import expected_output, is_kept, kept_count, source_record


def test_expected_output_of_one_record() -> None:
    key, source = source_record(100)
    assert (key, source["id"], source["user"], source["amount"], source["status"]) == ("u900", 100, "u900", 37.0, "ok")
    expected = {
        "id": 100,
        "customer": "u900",
        "amount": 37.0,
        "status": "ok",
        "pad": source["pad"],
        "amount_cents": 3700,
    }
    assert ("u900", expected) == expected_output(100)


def test_cents_are_cut_off_as_the_job_says() -> None:
    """0.29 * 100 is 28.999999999999996 in binary floating point: int() makes 28 of it, and so must every engine."""
    number = next(n for n in range(1_000_003) if n * 37 % 1000003 == 29)
    assert expected_output(number)[1]["amount"] == 0.29
    assert expected_output(number)[1]["amount_cents"] == 28


def test_kept_count_counts_what_is_kept() -> None:
    for records in range(10):
        assert sum(map(is_kept, range(records))) == kept_count(records)
