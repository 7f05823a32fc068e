"""Every way in which a pipeline file can be wrong: what is said, at which line and column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.records import Record
from transforms.loading import PipelineError, load_pipeline
from transforms.spec import Pipeline
from transforms.steps import STEPS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GOOD = """\
name: orders
source: {topics: [in]}
sink: {topic: out}
"""


def problems(tmp_path: Path, text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """`line:column: message` of every problem, in the order in which they are reported."""
    file = tmp_path / "p.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PipelineError) as caught:
        load_pipeline(file, env or {})
    found = [str(problem) for problem in caught.value.problems]
    assert "\n".join(found) == str(caught.value)
    assert all(problem.startswith(f"{file}:") for problem in found)
    return [problem.removeprefix(f"{file}:") for problem in found]


def test_good(tmp_path: Path) -> None:
    """A good file gives its model, its compiled transform, and the lines of its steps."""
    file = tmp_path / "p.yaml"
    file.write_text(GOOD + "steps:\n  - drop: [x]\n\n  - filter: a > 1\n")
    loaded = load_pipeline(file, {})
    assert file == loaded.path
    assert loaded.spec.name == "orders"
    assert loaded.step_lines == {0: 5, 1: 7}
    [failure] = loaded.transform.run([Record(b"{}")]).failures
    assert (failure.step, failure.line) == ("steps[1] filter", 7)


NEEDS_QUOTES = "inside {...} and [...] a ${...} reference needs quotes"
NOTHING = "1:1: the file has nothing in it but null, expected a pipeline: name, source, sink, steps"
ROUTE_STEPS = "steps:\n  - route: [{when: a == 1, to: x}, {to: y}]\n"
ALL_STEPS = ", ".join(STEPS)
CASES: dict[str, tuple[str, list[str]]] = {
    "empty": ("", ["1:1: the file is empty, expected a pipeline: name, source, sink, steps"]),
    "comment only": ("# nothing\n", ["1:1: the file is empty, expected a pipeline: name, source, sink, steps"]),
    "a null document": ("~\n", [NOTHING]),
    "null in words": ("null # nothing\n", [NOTHING]),
    "a document of nothing": ("---\n", [NOTHING]),
    "not a mapping": ("- a\n", ["1:1: the file is not a mapping, expected a pipeline: name, source, sink, steps"]),
    "yaml syntax": (
        "name: orders\nsource: [a\nsink: b\n",
        ["3:5: not YAML: expected ',' or ']', but got ':' while parsing a flow sequence"],
    ),
    "tab": (
        "name: a\n\tb: c\n",
        ["2:1: not YAML: found character '\\t' that cannot start any token while scanning for the next token"],
    ),
    "control character": ("name: a\nx: b\x07\n", ["2:5: not YAML: the character U+0007 is not allowed"]),
    "undefined alias": ("name: *x\n", ["1:7: not YAML: found undefined alias 'x'"]),
    "two documents": (
        GOOD + "---\na: 1\n",
        ["4:1: not YAML: but found another document expected a single document in the stream"],
    ),
    "alias to itself": (
        GOOD + "consumer: &x {a: *x}\n",
        [
            "4:11: an alias to a value that contains it, expected a value of its own",
            "4:11: not a client setting, expected text, a number, true or false",
        ],
    ),
    "reference in a flow mapping": (
        "name: a\ntransaction: {records: ${N}}\n",
        [f"2:25: not YAML: expected ',' or '}}', but got '{{' while parsing a flow mapping; {NEEDS_QUOTES}"],
    ),
    "merge": (GOOD + "kafka:\n  <<: {a: b}\n", ["5:3: merge keys are not supported, expected the keys themselves"]),
    "key that is a list": (GOOD + "? [a]\n: b\n", ["4:3: a key that is a list or a mapping, expected a name"]),
    "duplicate key": (
        GOOD + "name: again\n",
        ["4:1: duplicate key 'name', expected it once: it stands in line 1 already"],
    ),
    "duplicate nested key": (
        GOOD + "kafka:\n  a: 1\n  b: 2\n  a: 3\n",
        ["7:3: duplicate key 'a', expected it once: it stands in line 5 already"],
    ),
    "missing keys": (
        "receipts: r\n",
        [
            "1:1: sink is missing, expected a sink or a route step whose last entry has no `when`",
            "1:1: the key 'name' is missing, expected it",
            "1:1: the key 'source' is missing, expected it",
        ],
    ),
    "missing nested key": (
        "name: a\nsource: {}\nsink:\n  {}\n",
        [
            "2:9: the key 'topics' of 'source' is missing, expected it, or the key 'pattern'",
            "4:3: the key 'topic' of 'sink' is missing, expected it",
        ],
    ),
    "unknown key": (GOOD + "lineag: true\n", ["4:1: unknown key 'lineag', did you mean 'lineage'?"]),
    "unknown key, nothing close": (
        "name: a\nsource: {topics: [in], zzz: 1}\nsink: {topic: out}\n",
        ["2:24: unknown key 'zzz', expected one of topics, pattern, start, format, key_format"],
    ),
    "unknown deep key": (
        GOOD + "dead_letters:\n  limit: {windw: 5}\n",
        ["5:11: unknown key 'windw', did you mean 'window'?"],
    ),
    "unknown key of a route": (
        "name: a\nsource: {topics: [in]}\nsteps:\n  - route:\n      - {wen: a, to: x}\n",
        ["5:10: unknown key 'wen', did you mean 'when'?"],
    ),
    "wrong types": (
        "name: 5\nsource: {topics: in}\nsink: {topic: [out]}\nlineage: maybe\ntransaction: {records: 1.5, bytes: x}\nsteps: {}\n",
        [
            "1:7: found a whole number, expected text",
            "2:18: found text, expected a list",
            "3:15: found a list, expected text",
            "4:10: found text, expected true or false",
            "5:24: found a number, expected a whole number",
            "5:36: found text, expected a whole number",
            "6:8: found a mapping, expected a list",
        ],
    ),
    "section that is no mapping": (GOOD + "transaction: 5\n", ["4:14: found a whole number, expected a mapping"]),
    "null in the place of a mapping": (GOOD + "kafka:\n", ["4:7: found nothing, expected a mapping"]),
    "client settings": (
        GOOD + "kafka: {a: [1], b: null, c: 1, d: 1.5, e: true, f: x}\n",
        [
            "4:12: not a client setting, expected text, a number, true or false",
            "4:20: not a client setting, expected text, a number, true or false",
        ],
    ),
    "numbers out of range": (
        GOOD + "dead_letters:\n  limit: {share: 1.5, window: 0, absolute: -1}\n",
        [
            "5:18: the number is too large, expected at most 1.0",
            "5:31: the number is too small, expected more than 0",
            "5:44: the number is too small, expected more than 0",
        ],
    ),
    "share of zero": (
        GOOD + "dead_letters: {limit: {share: 0}}\n",
        ["4:31: the number is too small, expected more than 0.0"],
    ),
    "not a number": (
        GOOD + "dead_letters: {limit: {share: .nan}}\n",
        ["4:31: not a finite number, expected one"],
    ),
    "choice": (GOOD + "tombstones: keep\n", ["4:13: not a choice here, expected 'forward' or 'drop'"]),
    "names": (
        "name: Orders\nsource: {topics: ['a b', .., '']}\nsink: {topic: é}\n",
        [
            "1:7: not a name, expected lower-case letters, digits, '.', '_' or '-', the first one a letter or digit",
            "2:19: not a topic name, expected 1 to 249 letters, digits, '.', '_' or '-'",
            "2:26: not a topic name, expected 1 to 249 letters, digits, '.', '_' or '-'",
            "2:30: not a topic name, expected 1 to 249 letters, digits, '.', '_' or '-'",
            "3:15: not a topic name, expected 1 to 249 letters, digits, '.', '_' or '-'",
        ],
    ),
    "no source topics": (
        "name: a\nsource: {topics: []}\nsink: {topic: x}\n",
        ["2:18: nothing in it, expected at least 1 entry"],
    ),
    "loops": (
        (
            "name: a\nsource: {topics: [x, y, a.receipts]}\nsink: {topic: x}\n"
            "steps:\n  - route: [{when: a == 1, to: y}]\ndead_letters: {topic: y}\n"
        ),
        [
            "1:1: the receipts topic is also a source topic, a loop, expected another topic",
            "3:15: the sink is also a source topic, a loop, expected another topic",
            "5:32: a route's topic is also a source topic, a loop, expected another topic",
            "6:23: the dead-letter topic is also a source topic, a loop, expected another topic",
            "6:23: the dead-letter topic is also a topic of outputs, expected a topic of its own",
        ],
    ),
    "receipts into the sink": (
        GOOD + "receipts: out\ndead_letters: {topic: out}\n",
        [
            "4:11: the receipts topic is also a topic of outputs, expected a topic of its own",
            "4:11: the receipts topic is also the dead-letter topic, expected a topic of its own",
            "5:23: the dead-letter topic is also a topic of outputs, expected a topic of its own",
        ],
    ),
    "sink missing": (
        "name: a\nsource: {topics: [in]}\nsteps:\n  - route: [{when: a == 1, to: x}]\n",
        ["1:1: sink is missing, expected a sink or a route step whose last entry has no `when`"],
    ),
    "routes": (
        GOOD + "steps:\n  - route: [{to: x}, {when: a == 1, to: y}]\n  - drop: [a]\n",
        [
            "5:12: a route step before other steps, expected it to be the last step",
            "5:13: a route without `when` takes every record, expected it to be the last entry",
        ],
    ),
    "two routes": (GOOD + ROUTE_STEPS + "  - route: [{to: z}]\n", ["6:12: a second route step, expected at most one"]),
    "route without topic": (
        GOOD + "steps:\n  - route: [{when: a == 1}]\n",
        ["5:13: the key 'to' of 'route' is missing, expected it"],
    ),
    "steps that are none": (
        GOOD + "steps:\n  - fliter: a\n  - text\n  - {}\n  - unheard: 1\n  -\n",
        [
            "5:5: unknown step 'fliter', did you mean 'filter'?",
            "6:5: not a step, expected a mapping with one of " + ALL_STEPS,
            "7:5: not a step, expected a mapping with one of " + ALL_STEPS,
            "8:5: unknown step 'unheard', expected one of " + ALL_STEPS,
            "9:4: not a step, expected a mapping with one of " + ALL_STEPS,
        ],
    ),
    "two steps in one": (
        GOOD + "steps:\n  - rename: {a: b}\n    drop: [c]\n",
        ["6:5: a second key 'drop' in one step, expected a step of its own: start the line with '- '"],
    ),
    "step bodies": (
        GOOD
        + "steps:\n  - set: {}\n  - set: a\n  - drop: a\n  - keep: [[a]]\n  - rename: {a: {}}\n  - rename: {'': b}\n  - filter: [a]\n",
        [
            "5:10: nothing in it, expected at least 1 entry",
            "6:10: found text, expected a mapping",
            "7:11: found text, expected a list",
            "8:12: found a list, expected text",
            "9:17: found a mapping, expected text",
            "10:14: empty text, expected at least 1 character",
            "11:13: found a list, expected text",
        ],
    ),
    "many at once": (
        "nam: x\nsource: {topics: [in]}\nsink: {topic: in}\nsteps:\n  - filter: a &&\n  - drop: []\n",
        [
            "1:1: the key 'name' is missing, expected it",
            "1:1: unknown key 'nam', did you mean 'name'?",
            "3:15: the sink is also a source topic, a loop, expected another topic",
            "5:17: the expression ends too early, expected a value (a name, a literal or parentheses)",
            "6:11: nothing in it, expected at least 1 entry",
        ],
    ),
}
CASES["tag"] = (
    GOOD + "group_id: !!python/name:os.system x\n",
    ["4:11: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported, expected a plain value"],
)


@pytest.mark.parametrize("name", CASES)
def test_problems(tmp_path: Path, name: str) -> None:
    """All problems of a file at once, each at its line and column, with what was expected."""
    text, expected = CASES[name]
    assert expected == problems(tmp_path, text)


# `?` is where the error is: an operator where a value should be. The first step stands in line 5.
PLACES = [
    ("plain", "  - filter: a && ?\n", "5:18"),
    ("single quotes", "  - filter: 'a == ''x'' && ?'\n", "5:28"),
    ("double quotes", '  - filter: "a == \\"x\\" && ?"\n', "5:28"),
    ("unicode escape", "  - filter: \"a == '\\u00e9' && ?\"\n", "5:31"),
    ("non-ASCII", "  - filter: a == 'é😀' && ?\n", "5:26"),
    ("plain over two lines", "  - filter: a &&\n      b && ?\n", "6:12"),
    ("quoted over lines", '  - filter: "a &&\n\n      b && \\\n      ?"\n', "8:7"),
    ("literal block", "  - filter: |\n      a &&\n        b &&\n      ?\n", "8:7"),
    ("literal block with a header", "  - filter: |2-\n      a &&\n       ?\n", "7:8"),
    ("folded block", "  - filter: >-\n      a &&\n      b && ?\n", "7:12"),
    ("in a set", "  - set:\n      a: 1\n      b: 1 + ?\n", "7:14"),
    ("in a route", "  - route:\n      - when: a || ?\n        to: x\n", "6:20"),
]


@pytest.mark.parametrize(("name", "step", "place"), PLACES, ids=[name for name, _, _ in PLACES])
def test_place_inside_an_expression(tmp_path: Path, name: str, step: str, place: str) -> None:
    """The place of an error in CEL is the place in the file, however YAML quotes or folds the expression."""
    [problem] = problems(tmp_path, GOOD + "steps:\n" + step)
    assert problem.startswith(f"{place}: unexpected '?' in the expression")


def test_expression_that_ends_too_early(tmp_path: Path) -> None:
    """The place is behind its last character."""
    expected = "the expression ends too early, expected a value (a name, a literal or parentheses)"
    assert [f"6:11: {expected}"] == problems(tmp_path, GOOD + "steps:\n  - filter: |\n      a && \n\n")


def test_steps_are_text(tmp_path: Path) -> None:
    """In steps nothing is a boolean, a number or a reference: names like `on` and CEL like `1` are meant as they stand."""
    file = tmp_path / "p.yaml"
    file.write_text(GOOD + "steps:\n  - set: {a: 1, b: true, c: 1.50, on: '\"${X}\"'}\n  - keep: [on, 5, null, a]\n")
    dumped = [step.model_dump() for step in load_pipeline(file, {}).spec.steps]
    assert dumped == [{"set": {"a": "1", "b": "true", "c": "1.50", "on": '"${X}"'}}, {"keep": ["on", "5", "null", "a"]}]


def test_references(tmp_path: Path) -> None:
    """References are replaced in values; an unquoted one has the type of what it stands for, a quoted one is text."""
    secret = tmp_path / "secret"
    secret.write_text("pass\n")
    text = GOOD.replace("[in]", "['${PREFIX}.in']") + (
        "transaction:\n  records: ${N}\n"
        f"kafka:\n  a: ${{N}}\n  b: '${{N}}'\n  c: ${{file:{secret}}}\n  d: $${{N}}\n  e: ${{NO:-x}}:${{N}}\n  f: ${{T}}\n"
    )
    file = tmp_path / "p.yaml"
    file.write_text(text)
    loaded = load_pipeline(file, {"N": "7", "PREFIX": "shop", "T": "true"})
    assert loaded.spec.source.topics == ["shop.in"]
    assert loaded.spec.transaction.records == 7
    assert loaded.spec.kafka == {"a": 7, "b": "7", "c": "pass", "d": "${N}", "e": "x:7", "f": True}
    paths = {("source", "topics", 0), ("transaction", "records"), *(("kafka", key) for key in "abcdef")}
    assert paths == loaded.referenced


def test_bad_references(tmp_path: Path) -> None:
    """A reference that leads nowhere is reported at its place; other errors are not hidden, and none follows from it."""
    text = (
        GOOD.replace("[in]", "['${TOPIC}']")
        + "transaction:\n  records: 1${N}\nkafka:\n  a: x${A-B}\n  b: ${open\n  c: ${file:/no/such}\nlineage: 5\n"
    )
    assert problems(tmp_path, text) == [
        "2:20: the environment variable TOPIC is not set, expected it, or a default: ${TOPIC:-...}",
        "5:13: the environment variable N is not set, expected it, or a default: ${N:-...}",
        "7:7: 'A-B' is not a reference, expected ${NAME}, ${NAME:-default} or ${file:/path}; write $${ for a literal ${",
        "8:6: a reference without its end, expected '}'",
        "9:6: cannot read the file '/no/such' of a reference: No such file or directory",
        "10:10: found a whole number, expected true or false",
    ]


def test_secrets_are_in_no_message(tmp_path: Path) -> None:
    """Whatever is wrong with a value that came by reference, the value itself is not shown."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2 ${x}")
    reference = f"${{file:{secret}}}"
    places = [
        "name: R",
        "group_id: ['R']",
        "tombstones: R",
        "lineage: R",
        "receipts: R",
        "consumer: R",
        "transaction: {records: 'R'}",
    ]
    text = "source: {topics: ['R', 'R'], start: 'R'}\nsink: {topic: 'R'}\n" + "\n".join(places)
    found = problems(tmp_path, text.replace("R", reference))
    assert len(found) == 14
    assert not [problem for problem in found if "hunter2" in problem]


def test_secrets_are_not_in_the_repr(tmp_path: Path) -> None:
    """Client settings stay out of what is printed when a model gets into a log."""
    file = tmp_path / "p.yaml"
    file.write_text(GOOD + "kafka: {sasl.password: hunter2}\nconsumer: {a: hunter2}\nproducer: {a: hunter2}\n")
    assert "hunter2" not in repr(load_pipeline(file, {}))


def test_unreadable(tmp_path: Path) -> None:
    """No file, a directory, and bytes that are no text are problems like others."""
    (tmp_path / "bytes").write_bytes(b"name: \xff")
    found = {}
    for name in ("none", ".", "bytes"):
        with pytest.raises(PipelineError) as caught:
            load_pipeline(tmp_path / name, {})
        [problem] = caught.value.problems
        found[name] = (problem.line, problem.column, problem.message)
    assert found == {
        "none": (1, 1, "cannot read the file: No such file or directory, expected a pipeline file"),
        ".": (1, 1, "cannot read the file: Is a directory, expected a pipeline file"),
        "bytes": (1, 1, "cannot read the file: not UTF-8, expected a pipeline file"),
    }


def test_endless_aliases(tmp_path: Path) -> None:
    """Ten lines of aliases that stand for billions of values end in one problem, at once."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    found = problems(tmp_path, "\n".join(lines))
    assert sum("the file has too many values, expected at most 100000" in problem for problem in found) == 1


def test_deep_nesting(tmp_path: Path) -> None:
    """A file that is nested beyond reason is a problem, not a crash."""
    assert problems(tmp_path, "[" * 5000) == ["1:1: the file is nested too deeply, expected a few levels"]


def test_model_alone_checks_the_whole() -> None:
    """A model that is made in Python is held to the same rules."""
    with pytest.raises(ValueError, match="the sink is also a source topic"):
        Pipeline.model_validate({"name": "a", "source": {"topics": ["x"]}, "sink": {"topic": "x"}})


def test_defaults() -> None:
    """What a short file leaves out."""
    spec = Pipeline.model_validate({"name": "a", "source": {"topics": ["x"]}, "sink": {"topic": "y"}})
    assert (
        spec.dead_letter_topic,
        spec.receipts_topic,
        spec.group,
        spec.source.start,
    ) == ("a.dead-letters", "a.receipts", "a", "earliest")
    assert (spec.transaction.records, spec.transaction.bytes, spec.transaction.interval_ms) == (
        120_000,
        33_554_432,
        100,
    )
    limit = spec.dead_letters.limit
    assert (
        limit.share,
        limit.window,
        limit.absolute,
        spec.tombstones,
        spec.lineage,
    ) == (0.5, 10_000, None, "forward", True)
