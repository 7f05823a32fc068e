"""Outcomes of tests as JUnit XML, the form that CI servers read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from transforms.loading import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from transforms.test_runner import Outcome


def write_junit(file: Path, outcomes: Mapping[Path, Sequence[Outcome] | PipelineError]) -> None:
    """One suite per pipeline; of one that cannot be used, a case that is an error. Raises OSError."""
    root = ET.Element("testsuites")
    for pipeline, suite in outcomes.items():
        if isinstance(suite, PipelineError):
            _unusable(root, str(pipeline), suite)
            continue
        failures = sum(bool(outcome.differences) for outcome in suite)
        seconds = f"{sum(outcome.seconds for outcome in suite):.3f}"
        attributes = {"name": str(pipeline), "tests": str(len(suite)), "failures": str(failures), "errors": "0"}
        element = ET.SubElement(root, "testsuite", {**attributes, "time": seconds})
        for outcome in suite:
            _case(element, str(pipeline), outcome)
    ET.indent(root)
    ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def _unusable(root: ET.Element, pipeline: str, error: PipelineError) -> None:
    attributes = {"name": pipeline, "tests": "1", "failures": "0", "errors": "1", "time": "0.000"}
    suite = ET.SubElement(root, "testsuite", attributes)
    first = error.problems[0]
    place = {
        "classname": _xml_text(pipeline),
        "name": "the file can be used",
        "file": first.path,
        "line": str(first.line),
    }
    case = ET.SubElement(suite, "testcase", {**place, "time": "0.000"})
    ET.SubElement(case, "error", {"message": _xml_text(first.message)}).text = _xml_text(str(error))


def _case(suite: ET.Element, pipeline: str, outcome: Outcome) -> None:
    placed = outcome.placed
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": _xml_text(pipeline),
            "name": _xml_text(placed.test.name),
            "file": str(placed.path),
            "line": str(placed.line),
            "time": f"{outcome.seconds:.3f}",
        },
    )
    if outcome.differences:
        failure = ET.SubElement(case, "failure", {"message": _xml_text(outcome.differences[0].splitlines()[0])})
        failure.text = _xml_text("\n".join(outcome.differences))


def _xml_text(text: str) -> str:
    """XML 1.0 has no control characters but tab and line ends, and no escapes for the others."""
    return "".join(c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)
