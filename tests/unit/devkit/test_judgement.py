"""The checks that people see: each finding breaks the one that asks for it, and no other."""

from __future__ import annotations

import pytest

from devkit import judgement, oracle
from devkit.verify import DEAD_LETTER, ExpectedRecord, Findings, Identity, StoredRecord

OUTPUT: Identity = ((oracle.SOURCE, 0, 1), 0)
LETTER: Identity = ((oracle.SOURCE, 0, 2), DEAD_LETTER)
PLACE = (oracle.CLEAN, 0, 5)

ONCE = "every valid order exactly once, in its topic"
RIGHT = "values, keys, headers and timestamps are right"
ORDER = "in order per key and partition"
LETTERS = "every bad order once in the dead letters, no other"


@pytest.mark.parametrize(
    ("findings", "broken"),
    [
        (Findings(), []),
        (Findings(missing=[OUTPUT]), [ONCE]),
        (Findings(duplicated=[(OUTPUT, PLACE)]), [ONCE]),
        (Findings(unexpected=[PLACE]), [ONCE]),
        (Findings(misrouted=[(OUTPUT, PLACE)]), [ONCE]),
        (Findings(altered=[(OUTPUT, PLACE, "key")]), [RIGHT]),
        (Findings(reordered=[(OUTPUT, PLACE)]), [ORDER]),
        (Findings(scattered=[(oracle.CLEAN, b"k")]), [ORDER]),
        (Findings(dead_letters_missing=[LETTER]), [LETTERS]),
        (Findings(dead_letters_extra=[PLACE]), [LETTERS]),
        (Findings(duplicated=[(LETTER, PLACE)]), [LETTERS]),
        (Findings(altered=[(LETTER, PLACE, "value")]), [LETTERS]),
        (Findings(duplicated=[(LETTER, PLACE), (OUTPUT, PLACE)]), [ONCE, LETTERS]),
    ],
)
def test_every_finding_breaks_its_check(findings: Findings, broken: list[str]) -> None:
    assert [check.title for check in judgement._checks(findings) if not check.ok] == broken


def records(n: int) -> list[StoredRecord]:
    return [StoredRecord(oracle.SOURCE, 0, at, b"k", b"{", (), at) for at in range(n)]


def due(outputs: int, dead: int) -> list[ExpectedRecord]:
    one = ExpectedRecord((oracle.SOURCE, 0, 0), 0, oracle.CLEAN, b"k", b"{}", (), 0)
    return [one] * outputs + [one._replace(output_index=DEAD_LETTER)] * dead


def test_the_source_is_what_was_generated() -> None:
    """One tombstone counts for both topics."""
    produced = {"ok": 2, "cancelled": 1, "tombstone": 1, "malformed": 1, "rejected": 1}
    assert judgement._source_problems(produced, records(6), due(4, 2)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stored", "outputs", "dead"),
    [(records(2), 2, 0), ([*records(3), *records(1)], 2, 1), (records(3), 3, 0), (records(3), 1, 1)],
    ids=["one was not produced", "one was produced twice", "a bad one reads as good", "a good one reads as cancelled"],
)
def test_a_source_that_is_not_what_was_generated(stored: list[StoredRecord], outputs: int, dead: int) -> None:
    produced = {"ok": 2, "malformed": 1}
    assert len(judgement._source_problems(produced, stored, due(outputs, dead))) == 1  # type: ignore[arg-type]
