"""`tests:` of a pipeline: what they may say, how they are run, what a failure looks like, what they cover."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from transforms.coverage import coverage
from transforms.loading import LoadedPipeline, PipelineError, load_pipeline
from transforms.test_files import beside, load_test_file, load_tests
from transforms.test_runner import run_tests, samples

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
name: p
source: {topics: [in, other]}
sink: {topic: out}
steps:
  - filter: status != "cancelled"
  - set: {cents: int(amount * 100.0)}
  - route:
      - {when: cents > 10000, to: large}
tests:
"""


def loaded(tmp_path: Path, tests: str, head: str = HEAD) -> LoadedPipeline:
    file = tmp_path / "p.yaml"
    file.write_text(head + tests, encoding="utf-8")
    return load_pipeline(file, {})


def differences(tmp_path: Path, test: str, head: str = HEAD) -> list[str]:
    """Of one test."""
    pipeline = loaded(tmp_path, f"  - {{name: a, {test}}}\n", head)
    [outcome] = run_tests(
        pipeline.spec, load_tests(pipeline, {}), lambda records: pipeline.transform.run(iter(records))
    )
    return list(outcome.differences)


OK = "{status: ok, amount: 1.5}"
MADE = "{status: ok, amount: 1.5, cents: 150}"

OTHER = "output 1 to out has another value:\n"

PASSES = {
    "an output": f"input: {{value: {OK}}}, outputs: [{{topic: out, value: {MADE}}}]",
    "keys in another order": f"input: {{value: {OK}}}, outputs: [{{topic: out, value: {{cents: 150, amount: 1.5, status: ok}}}}]",
    "the very bytes": f"""input: {{value: {OK}}}, outputs: [{{topic: out, raw: '{{"status":"ok","amount":1.5,"cents":150}}'}}]""",
    "another topic": (
        "input: {value: {status: s, amount: 101.0}}, "
        "outputs: [{topic: large, value: {status: s, amount: 101.0, cents: 10100}}]"
    ),
    "filtered": "input: {value: {status: cancelled}}, filtered: true",
    "no outputs": "input: {value: {status: cancelled}}, outputs: []",
    "a dead letter": "input: {value: {status: ok}}, dead_letter: {error_class: CelError, message: no such field, step: set}",
    "the step in full": "input: {value: {status: ok}}, dead_letter: {step: 'steps[1] set'}",
    "any dead letter": "input: {raw: nonsense}, dead_letter: {}",
    "bytes": "input: {base64: /w==}, dead_letter: {error_class: DecodeError}",
    "a tombstone goes everywhere": "input: {value: null}, outputs: [{topic: large, value: null}, {topic: out, value: null}]",
    "key, headers, timestamp": (
        f"input: {{value: {OK}, key: k, headers: {{a: x, b: null}}, timestamp: 2026-01-31T09:30:00Z}}, "
        f"outputs: [{{topic: out, value: {MADE}, key: k, headers: {{b: null, a: x}}, timestamp: 1769851800000}}]"
    ),
    "a key of JSON": f"input: {{value: {OK}, key: {{b: 1, a: 2}}}}, outputs: [{{topic: out, value: {MADE}, key: {{a: 2, b: 1}}}}]",
    "no key, no headers": f"input: {{value: {OK}}}, outputs: [{{topic: out, value: {MADE}, key: null, headers: {{}}}}]",
    "headers twice": (
        f"input: {{value: {OK}, headers: [[a, x], [a, y]]}}, outputs: [{{topic: out, value: {MADE}, headers: [[a, x], [a, y]]}}]"
    ),
    "several": (
        f"inputs: [{{value: {OK}}}, {{raw: x}}, {{value: {{status: cancelled}}}}, {{value: {OK}}}], "
        f"outputs: [{{topic: out, value: {MADE}}}, {{topic: out, value: {MADE}}}], dead_letter: [{{step: decode}}]"
    ),
    "a number of any size": 'input: {raw: \'{"status": "cancelled", "n": 123456789012345678901234567890}\'}, filtered: true',
}


@pytest.mark.parametrize("test", PASSES.values(), ids=PASSES)
def test_passes(test: str, tmp_path: Path) -> None:
    assert differences(tmp_path, test) == []


NO_JSON = "not JSON: unexpected character, expected a JSON value: line 1 column 1 (char 0)"
KEYED = f"outputs: [{{topic: out, value: {MADE}, key: l, headers: [[b, y], [a, x]], timestamp: 6}}]"

FAILS = {
    "another value": (
        f"input: {{value: {OK}}}, outputs: [{{topic: out, value: {{status: ok, amount: 1.5, cents: 151}}}}]",
        [
            OTHER
            + '      {\n        "amount": 1.5,\n    -   "cents": 151,\n    +   "cents": 150,\n        "status": "ok"\n      }'
        ],
    ),
    "a whole number is no fraction": (
        f"input: {{value: {OK}}}, outputs: [{{topic: out, value: {{status: ok, amount: 1.5, cents: 150.0}}}}]",
        [
            OTHER
            + '      {\n        "amount": 1.5,\n    -   "cents": 150.0,\n    +   "cents": 150,\n        "status": "ok"\n      }'
        ],
    ),
    "other bytes": (
        f"input: {{value: {OK}}}, outputs: [{{topic: out, raw: nonsense}}]",
        [
            OTHER
            + '    - nonsense\n    + {\n    +   "amount": 1.5,\n    +   "cents": 150,\n    +   "status": "ok"\n    + }'
        ],
    ),
    "another topic": (
        f"input: {{value: {OK}}}, outputs: [{{topic: large, value: {MADE}}}]",
        ["output 1 goes to out, expected large"],
    ),
    "another key, other headers, another timestamp": (
        f"input: {{value: {OK}, key: k, headers: [[a, x], [b, y]], timestamp: 5}}, {KEYED}",
        [
            "output 1 to out has the key k, expected l",
            "output 1 to out has the headers [['a', 'x'], ['b', 'y']], expected [['b', 'y'], ['a', 'x']]",
            "output 1 to out has the timestamp 5, expected 6",
        ],
    ),
    "too few outputs": (
        f"input: {{value: {OK}}}, outputs: [{{topic: out, value: {MADE}}}, {{topic: large, value: {{a: 1}}}}]",
        ['no output to large, expected {"a":1}'],
    ),
    "too many outputs": (
        f"input: {{value: {OK}}}, outputs: []",
        ['an output to out, expected no such output: {"status":"ok","amount":1.5,"cents":150}'],
    ),
    "not filtered": (
        f"input: {{value: {OK}}}, filtered: true",
        ['an output to out, expected the record to be filtered: {"status":"ok","amount":1.5,"cents":150}'],
    ),
    "a dead letter": (
        "input: {value: {status: ok}}, filtered: true",
        ["a dead letter, expected none: CelError 'no such field: \"amount\"' in steps[1] set (line 6)"],
    ),
    "no dead letter": (
        "input: {value: {status: cancelled}}, dead_letter: {step: decode}",
        ["no dead letter, expected one with step 'decode'"],
    ),
    "another dead letter": (
        "input: {raw: x}, dead_letter: {error_class: CelError, message: no such}",
        [f"a dead letter with DecodeError {NO_JSON!r} in decode, expected error_class 'CelError', message 'no such'"],
    ),
    "null is no tombstone": (
        f"input: {{value: {OK}}}, outputs: [{{topic: out, value: null}}]",
        [OTHER + '    - null\n    + {\n    +   "amount": 1.5,\n    +   "cents": 150,\n    +   "status": "ok"\n    + }'],
    ),
}


@pytest.mark.parametrize(("test", "expected"), FAILS.values(), ids=FAILS)
def test_fails(test: str, expected: list[str], tmp_path: Path) -> None:
    """What differs, readable; nothing else."""
    assert differences(tmp_path, test) == expected


def test_text_and_bytes(tmp_path: Path) -> None:
    """A value of a topic of strings is its text; a topic without the format has JSON."""
    head = "name: p\nsource: {topics: [in], format: string}\nsink: {topic: out, format: string}\nsteps:\n  - value: this + '!'\ntests:\n"
    assert differences(tmp_path, "input: {value: hi}, outputs: [{topic: out, value: hi!}]", head) == []
    assert differences(tmp_path, "input: {value: hi}, outputs: [{topic: out, raw: hi!}]", head) == []
    assert differences(tmp_path, "input: {value: hi}, outputs: [{topic: out, value: ho}]", head) == [
        "output 1 to out has another value:\n    - ho\n    + hi!"
    ]


def test_a_topic_by_pattern(tmp_path: Path) -> None:
    """An input names its topic; expressions see it."""
    head = "name: p\nsource: {pattern: '^in'}\nsink: {topic: out}\nsteps:\n  - set: {t: topic, p: partition, o: offset}\ntests:\n"
    test = "input: {value: {}, topic: in.7, partition: 2, offset: 9}, outputs: [{topic: out, value: {t: in.7, p: 2, o: 9}}]"
    assert differences(tmp_path, test, head) == []


BAD = {
    "nothing to expect": (
        "{name: a, input: {raw: x}}",
        "a test without expectation, expected one of outputs, filtered, dead_letter",
    ),
    "filtered and more": (
        "{name: a, input: {raw: x}, filtered: true, dead_letter: {}}",
        "a filtered record has no outputs and no dead letter, expected `filtered` alone",
    ),
    "not filtered": ("{name: a, input: {raw: x}, filtered: false}", "not a choice here, expected true"),
    "no input": ("{name: a, filtered: true}", "a test needs one of the keys input and inputs"),
    "no value": ("{name: a, input: {key: k}, filtered: true}", "found none, expected one of value, raw, base64"),
    "two values": (
        "{name: a, input: {value: 1, raw: x}, filtered: true}",
        "found value and raw, expected one of value, raw, base64",
    ),
    "not base64": ("{name: a, input: {base64: '!'}, filtered: true}", "not base64, expected bytes in base64"),
    "NaN": (
        "{name: a, input: {value: [.nan]}, filtered: true}",
        "not a JSON number, expected a finite one; `raw` takes any text",
    ),
    "a moment without a zone": (
        "{name: a, input: {value: 1, timestamp: '2026-01-31T09:30:00'}, filtered: true}",
        "not a moment, expected milliseconds since 1970 or text like 2026-01-31T09:30:00Z",
    ),
    "headers": (
        "{name: a, input: {value: 1, headers: [a]}, filtered: true}",
        "not headers, expected a mapping of names to text or null, or a list of [name, text or null]",
    ),
    "unknown key": ("{name: a, input: {vale: 1}, filtered: true}", "unknown key 'vale', did you mean 'value'?"),
    "unknown key of an output": (
        "{name: a, input: {raw: x}, outputs: [{topi: x, topic: y, raw: z}]}",
        "unknown key 'topi', did you mean 'topic'?",
    ),
}


@pytest.mark.parametrize(("test", "message"), BAD.values(), ids=BAD)
def test_bad(test: str, message: str, tmp_path: Path) -> None:
    """Said with its place, in the pipeline's file and in the one beside it."""
    with pytest.raises(PipelineError) as caught:
        loaded(tmp_path, f"  - {test}\n")
    assert [(10, message)] == [(problem.line, problem.message) for problem in caught.value.problems]
    file = tmp_path / "p.tests.yaml"
    file.write_text(f"tests:\n  - {test}\n")
    with pytest.raises(PipelineError) as caught:
        load_test_file(file, {})
    assert [(2, message)] == [(problem.line, problem.message) for problem in caught.value.problems]


def test_tests_beside_a_pipeline(tmp_path: Path) -> None:
    """They come after those of the file itself, each with its place."""
    pipeline = loaded(tmp_path, "  - {name: a, input: {raw: x}, dead_letter: {}}\n")
    assert beside(pipeline.path) == tmp_path / "p.tests.yaml"
    beside(pipeline.path).write_text("# more\ntests:\n  - name: b\n    input: {raw: x}\n    dead_letter: {}\n")
    assert [
        (placed.test.name, placed.path.name, placed.line, placed.column) for placed in load_tests(pipeline, {})
    ] == [("a", "p.yaml", 10, 5), ("b", "p.tests.yaml", 3, 5)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty, expected tests of a pipeline: a list under `tests`"),
        (b"~", "the file has nothing in it but null, expected tests of a pipeline: a list under `tests`"),
        (b"\xff", "cannot read the file: not UTF-8, expected a file of tests"),
        (b"tests: []", "nothing in it, expected at least 1 entry"),
        (b"test: []", "unknown key 'test', did you mean 'tests'?"),
    ],
)
def test_a_bad_file_of_tests(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "p.tests.yaml"
    file.write_bytes(content)
    with pytest.raises(PipelineError) as caught:
        load_test_file(file, {})
    assert message in [problem.message for problem in caught.value.problems]


def reached(tmp_path: Path, steps: str, tests: str) -> dict[str, bool]:
    pipeline = loaded(
        tmp_path, tests, f"name: p\nsource: {{topics: [in]}}\nsink: {{topic: out}}\nsteps:\n{steps}tests:\n"
    )
    records = [record for test in pipeline.spec.tests for record in samples(pipeline.spec, test.records)]
    return {
        point.what: point.reached
        for point in coverage(pipeline.spec, records, lambda transform, r: transform.run(iter(r)))
    }


def test_coverage(tmp_path: Path) -> None:
    """Steps, both ways of conditions, and routes: an error in a filter is neither of its ways, and reaches nothing behind it."""
    steps = (
        "  - filter: a > 1\n  - assert: {that: b}\n  - tombstone: c\n  - drop: [x]\n"
        "  - route: [{when: d == 1, to: t1}, {when: d == 2, to: t1}]\n"
    )
    none = reached(tmp_path, steps, "  - {name: a, input: {value: {a: x}}, dead_letter: {}}\n")
    assert [what for what, found in none.items() if found] == ["steps[0] filter"]
    some = (
        "  - {name: a, input: {value: {a: 0}}, filtered: true}\n"
        "  - {name: b, input: {value: {a: 2, b: true, c: false, d: 2}}, outputs: []}\n"
    )
    assert reached(tmp_path, steps, some) == {
        "steps[0] filter": True,
        "steps[0] filter rejects": True,
        "steps[0] filter passes": True,
        "steps[1] assert": True,
        "steps[1] assert fails": False,
        "steps[1] assert passes": True,
        "steps[2] tombstone": True,
        "steps[2] tombstone deletes": False,
        "steps[2] tombstone passes": True,
        "steps[3] drop": True,
        "steps[4] route": True,
        "steps[4] route[0] to t1": False,
        "steps[4] route[1] to t1": True,
        "steps[4] route, none matches": False,
    }
    rest = some + (
        "  - {name: c, input: {value: {a: 2, b: false}}, dead_letter: {}}\n"
        "  - {name: d, input: {value: {a: 2, b: true, c: true}}, outputs: []}\n"
        "  - {name: e, inputs: [{value: {a: 2, b: true, c: false, d: 1}}, {value: {a: 2, b: true, c: false, d: 3}}], outputs: []}\n"
    )
    assert set(reached(tmp_path, steps, rest).values()) == {True}


def test_coverage_of_elements(tmp_path: Path) -> None:
    """A filter behind explode rejects one element of a record, while the others pass."""
    steps = "  - explode: {field: a}\n  - filter: a > 1\n"
    found = reached(tmp_path, steps, "  - {name: a, input: {value: {a: [1, 2]}}, outputs: []}\n")
    assert set(found.values()) == {True}
    found = reached(tmp_path, steps, "  - {name: a, input: {value: {a: [2, 3]}}, outputs: []}\n")
    assert [what for what, hit in found.items() if not hit] == ["steps[1] filter rejects"]
