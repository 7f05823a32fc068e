"""The fuzzer sees what it is there for: each kind of fault, shown on results that have it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from tests.fuzz import configs, records
from tests.fuzz.judge import complaints
from tests.fuzz.shrink import shrunk
from tests.fuzz.targets import targets
from tests.fuzz.values import SECRET
from transforms.editor_schema import editor_schema
from transforms.loading import PipelineError, Problem
from transforms.records import Failure, Result
from transforms.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from transforms.records import SourceRecord

# pytest-timeout's other way uses the timer of the record's time budget.
pytestmark = pytest.mark.timeout(240, method="thread")

A, B, C = (Sample(b'{"a":%d}' % n, offset_=n) for n in range(3))


def _output(record: Sample, index: int = 0, topic: str = "out", value: Any = b"{}") -> Any:
    return (topic, value, None, None, 0, record, index)


def _failure(record: Sample, message: str = "no such field") -> Failure:
    return Failure(record, "CelError", message, "steps[0] drop", 5)


GOOD = Result([_output(A), _output(A, 1)], [_failure(B)], 1)
BROKEN: dict[str, tuple[Result, list[str]]] = {
    "a lost record": (Result([_output(A)], [_failure(B)], 0), ["2 of 3 records are settled"]),
    "a record settled twice": (Result([_output(A), _output(B)], [_failure(B)], 1), ["outputs and a dead letter"]),
    "another order": (Result([_output(B), _output(A)], [], 1), ["not in the order of the records"]),
    "indexes": (Result([_output(A), _output(A)], [_failure(B)], 1), ["outputs are numbered [0, 0]"]),
    "an unknown topic": (replace(GOOD, outputs=[_output(A, topic="else")]), ["an output to else"]),
    "no JSON": (
        replace(GOOD, outputs=[_output(A, value=b"{")]),
        ["an output that is no JSON: unexpected end of data: line 1 column 2 (char 1)"],
    ),
    "no bytes": (replace(GOOD, outputs=[_output(A, value="x")]), ["a value of type str"]),
    "an unforeseen exception": (
        replace(GOOD, failures=[_failure(B, "the step failed in a way that it should not, please report it")]),
        ["CelError in steps[0] drop"],
    ),
    "a message with a value": (
        replace(GOOD, failures=[_failure(B, f"not an int: {SECRET}")]),
        [f"the message quotes the record: not an int: {SECRET}"],
    ),
}


def test_nothing_to_complain() -> None:
    [target] = [target for target in targets() if target.name == "step drop"]
    assert complaints(target, [A, B, C], GOOD) == []


@pytest.mark.parametrize(("result", "expected"), BROKEN.values(), ids=BROKEN)
def test_broken_results(result: Result, expected: list[str]) -> None:
    [target] = [target for target in targets() if target.name == "step drop"]
    assert [message for message, _ in complaints(target, [A, B, C], result)] == expected


def _broken(run: Callable[[Iterable[SourceRecord]], Result]) -> Callable[[Iterable[SourceRecord]], Result]:
    """Loses the records whose value has the letter b."""

    def broken(records_: Iterable[SourceRecord]) -> Result:
        return run(iter([record for record in records_ if b"b" not in (record.value() or b"")]))

    return broken


def test_the_fuzzer_finds_a_broken_pipeline() -> None:
    [target] = [target for target in targets() if target.name == "step drop"]
    broken = replace(target, transform=replace(target.transform, run=_broken(target.transform.run)))
    tally = records.fuzz(500, seed=1, chosen=[broken], say=lambda _: None)
    assert len(tally.failures) >= 1
    assert "records are settled" in tally.failures[0]


def test_failures_are_shrunk() -> None:
    """To the part that matters, of JSON and of other bytes."""
    assert shrunk(b'{"a":{"b":[1,{"x":"bad"},3]},"c":"something else"}', lambda content: b"bad" in content) == b"bad"
    assert shrunk(b"xx\xff\xfeyy", lambda content: b"\xff" in content) == b"\xff"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("x"), "KeyError in "),
        (PipelineError([]), "refused without a problem"),
        (PipelineError([Problem("p.yaml", 99, 1, "m")]), "the place 99:1 is not in the file: m"),
        (PipelineError([Problem("p.yaml", 1, 1, "two\nlines")]), "a message of 9 characters or more than one line"),
    ],
)
def test_the_fuzzer_of_files_finds(
    error: Exception, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object) -> None:
        raise error

    monkeypatch.setattr(configs, "load_pipeline", load)
    _, wrong = configs.judged(tmp_path / "p.yaml", b"name: x\n", jsonschema_rs.Draft202012Validator(editor_schema()))
    assert wrong is not None
    assert wrong.startswith(told)
