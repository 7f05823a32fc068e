"""Runs the tests of a pipeline, and says in which way what came out differs from what was expected."""

from __future__ import annotations

import base64
import difflib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transforms.samples import Sample, encoded, printable, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transforms.records import Failure, HeaderList, Output, Result, SourceRecord
    from transforms.spec import Pipeline
    from transforms.test_files import PlacedTest
    from transforms.yaml_tests import ExpectedDeadLetter, ExpectedOutput, Headers, PipelineTest, TestInput, _Content

_NOT_JSON, _JSON_NULL = object(), object()


@dataclass(frozen=True, slots=True)
class Outcome:
    placed: PlacedTest
    differences: tuple[str, ...]
    """What differs, each a text of one line or more; none where the test passed."""
    seconds: float


def run_tests(
    spec: Pipeline, tests: Sequence[PlacedTest], run: Callable[[Sequence[SourceRecord]], Result]
) -> list[Outcome]:
    """`run`: the compiled pipeline, with or without a time budget. Every test is a run of its own."""
    outcomes = []
    for placed in tests:
        start = time.perf_counter()
        result = run(samples(spec, placed.test.records))
        differences = tuple(_differences(spec, placed.test, result))
        outcomes.append(Outcome(placed, differences, time.perf_counter() - start))
    return outcomes


def samples(spec: Pipeline, inputs: Sequence[TestInput]) -> list[Sample]:
    formats, first = spec.source.formats, (spec.source.topics or ["in"])[0]
    return [
        Sample(
            content=_bytes(entry, text_as_is=formats.get(entry.topic or first, formats.get(None)) != "json"),
            key_=encoded(entry.key, text_as_is=True),
            headers_=_headers(entry.headers),
            timestamp_ms=entry.timestamp or 0,
            topic_=entry.topic or first,
            partition_=entry.partition,
            offset_=number if entry.offset is None else entry.offset,
        )
        for number, entry in enumerate(inputs)
    ]


def _bytes(content: _Content, *, text_as_is: bool) -> bytes | None:
    if content.raw is not None:
        return content.raw.encode()
    if content.base64 is not None:
        return base64.b64decode(content.base64)
    return encoded(content.value, text_as_is=text_as_is)


def _headers(headers: Headers | None) -> HeaderList | None:
    pairs = headers.items() if isinstance(headers, dict) else headers or []
    return [(str(name), None if value is None else value.encode()) for name, value in pairs] or None


def _differences(spec: Pipeline, test: PipelineTest, result: Result) -> list[str]:
    found = []
    for number, (expected, output) in enumerate(zip(test.outputs or [], result.outputs, strict=False), 1):
        found += _output(number, expected, output, text=spec.topic_formats.get(output[0], "json") != "json")
    for missing in (test.outputs or [])[len(result.outputs) :]:
        found.append(f"no output to {missing.topic}, expected {_one_line(_bytes(missing, text_as_is=True))}")
    for output in result.outputs[len(test.outputs or []) :]:
        expectation = "the record to be filtered" if test.filtered else "no such output"
        found.append(f"an output to {output[0]}, expected {expectation}: {_one_line(output[1])}")
    letters = test.dead_letter or []
    for letter, failure in zip(letters, result.failures, strict=False):
        found += _dead_letter(letter, failure)
    found += [f"no dead letter, expected one with {_named(letter)}" for letter in letters[len(result.failures) :]]
    found += [f"a dead letter, expected none: {_told(failure)}" for failure in result.failures[len(letters) :]]
    return found


def _output(number: int, expected: ExpectedOutput, output: Output, *, text: bool) -> list[str]:
    """`text`: whether text stands in the topic as it is, not as JSON."""
    topic, value, key, headers, timestamp = output[:5]
    found = []
    if topic != expected.topic:
        found.append(f"output {number} goes to {topic}, expected {expected.topic}")
    wanted = _bytes(expected, text_as_is=text)
    as_json = "value" in expected.model_fields_set and not (text and isinstance(expected.value, str))
    if not (_same(expected.value, _parsed(value)) if as_json else wanted == value):
        found.append(f"output {number} to {topic} has another value:\n{_diff(wanted, value)}")
    if "key" in expected.model_fields_set and not _same_text(expected.key, key):
        wanted = encoded(expected.key, text_as_is=True)
        found.append(f"output {number} to {topic} has the key {_one_line(key)}, expected {_one_line(wanted)}")
    if expected.headers is not None and not _same_headers(expected.headers, headers):
        wanted_headers = _told_headers(_headers(expected.headers))
        found.append(f"output {number} to {topic} has the headers {_told_headers(headers)}, expected {wanted_headers}")
    if expected.timestamp is not None and expected.timestamp != timestamp:
        found.append(f"output {number} to {topic} has the timestamp {timestamp}, expected {expected.timestamp}")
    return found


def _dead_letter(expected: ExpectedDeadLetter, failure: Failure) -> list[str]:
    same = (
        expected.error_class in (None, failure.error_class)
        and (expected.message is None or expected.message in failure.message)
        and expected.step in (None, failure.step, failure.step.rpartition(" ")[2])
    )
    return [] if same else [f"a dead letter with {_told(failure)}, expected {_named(expected)}"]


def _named(letter: ExpectedDeadLetter) -> str:
    stated = letter.model_dump(exclude_none=True)
    return ", ".join(f"{name} {value!r}" for name, value in stated.items()) or "any error"


def _told(failure: Failure) -> str:
    place = f" (line {failure.line})" if failure.line else ""
    return f"{failure.error_class} {failure.message!r} in {failure.step}{place}"


def _same_headers(expected: Headers, found: HeaderList | None) -> bool:
    wanted = _told_headers(_headers(expected))
    told = _told_headers(found)
    return wanted == told if isinstance(expected, list) else sorted(wanted) == sorted(told)


def _told_headers(headers: HeaderList | None) -> list[list[str]]:
    return [[name, shown(value.encode() if isinstance(value, str) else value)] for name, value in headers or []]


def _parsed(data: bytes | None) -> Any:
    """The JSON value; None is a tombstone, never the JSON null, which is an object of its own here."""
    try:
        return None if data is None else _JSON_NULL if data.strip() == b"null" else json.loads(data)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _same_text(expected: Any, data: bytes | None) -> bool:
    return data == encoded(expected, text_as_is=True) or (
        expected is not None and not isinstance(expected, str) and _same(expected, _parsed(data))
    )


def _same(expected: Any, found: Any) -> bool:
    """Equal as JSON is: the order of keys does not matter, the kind of a number does."""
    if type(expected) is not type(found):
        return False
    if isinstance(expected, dict):
        return expected.keys() == found.keys() and all(_same(expected[key], found[key]) for key in expected)
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(_same, expected, found))
    return bool(expected == found)


def _one_line(data: bytes | None, limit: int = 200) -> str:
    text = printable(shown(data))
    return text if len(text) <= limit else text[:limit] + "..."


def _diff(expected: bytes | None, found: bytes | None) -> str:
    """Line by line, what is expected with `-` and what was found with `+`."""
    lines = difflib.ndiff(_lines(expected), _lines(found))
    return "\n".join(f"    {line.rstrip()}" for line in lines if not line.startswith("?"))


def _lines(data: bytes | None) -> list[str]:
    parsed = _parsed(data)
    if parsed in (None, _NOT_JSON, _JSON_NULL):
        return shown(data).splitlines() or [""]
    return json.dumps(parsed, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
