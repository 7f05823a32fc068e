"""The runner of conformance cases, on cases of our own; and cel-spec's cases against the list of those that fail."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from transforms.cel import conformance

OURS = Path(__file__).with_name("cases.json")
PROJECT = Path(__file__).parents[5]
LISTED = PROJECT / "transforms" / "cel" / "known_failures.txt"


def listed() -> dict[str, str]:
    """file/section/name -> reason."""
    lines = [line for line in LISTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def test_our_cases_pass(capsys: pytest.CaptureFixture[str]) -> None:
    """Every kind of value, of name and of error that a file of cases can have."""
    assert (conformance.main([str(OURS)]), capsys.readouterr().out) == (0, "22 passed, 0 failed\n")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"value": {"uint64_value": "2"}}, 1),
        ({"value": {"double_value": 2.0}}, 1),
        ({"value": {"int64_value": "3"}}, 1),
        ({"value": {"bool_value": True}, "expr": "1"}, 1),
        ({"value": None, "error": True}, 1),
        ({"expr": "1 +"}, 1),
        ({"expr": "1 / 0"}, 1),
        ({"expr": "1 / 0", "core": False}, 0),
        (
            {
                "value": {"map_value": {"entries": [{"key": {"uint64_value": "1"}, "value": {"bool_value": True}}]}},
                "expr": "{1: true}",
            },
            1,
        ),
        ({"value": {"double_value": "NaN"}, "expr": "1.0"}, 1),
        ({"value": {"list_value": {}}, "expr": "[1]"}, 1),
    ],
)
def test_a_wrong_answer_is_seen(
    change: dict[str, Any], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another type, another value, no error, an error: each fails its case; the exit code tells of core cases alone."""
    case = {"file": "f", "section": "s", "name": "n", "expr": "1 + 1", "value": {"int64_value": "2"}, "core": True}
    file = tmp_path / "cases.json"
    file.write_text(json.dumps([case | change]), encoding="utf-8")
    found = conformance.main([str(file)])
    lines = capsys.readouterr().out.splitlines()
    assert (code, "0 passed, 1 failed") == (found, lines[-1])
    assert "f/s/n: " in lines[0]


def test_without_a_file_it_says_how_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([]) == 2
    assert capsys.readouterr().err == "usage: python -m transforms.cel.conformance FILE.json\n"


def test_every_known_failure_has_a_reason() -> None:
    """file/section/name: reason; sorted out by the next test where cel-spec's cases are at hand."""
    assert [name for name, reason in listed().items() if name.count("/") != 2 or len(reason) < 10] == []


def test_exactly_the_listed_cases_of_cel_spec_fail() -> None:
    """The cases are not ours: a file of them is named by RECKON_CEL_CASES, or lies beside the project."""
    file = Path(os.environ.get("RECKON_CEL_CASES", PROJECT.parent / "shared" / "cel" / "conformance.json"))
    if not file.exists():
        pytest.skip("no file of cel-spec's conformance cases here")
    cases = json.loads(file.read_text(encoding="utf-8"))
    failing = {conformance.name(case) for case in cases if conformance.check(case) is not None}
    assert set(listed()) & {conformance.name(case) for case in cases} == failing
