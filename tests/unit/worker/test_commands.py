"""The commands that need no broker: what they print, and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import typer
from typer.testing import CliRunner

from transforms.editor_schema import schema_text
from transforms.loading import load_pipeline
from worker.commands import register

if TYPE_CHECKING:
    from typer.testing import Result

# `test` and `try` use the timer of the record's time budget, which is pytest-timeout's usual way too.
pytestmark = pytest.mark.timeout(240, method="thread")

GOOD = """\
name: good
source: {topics: [in]}
sink: {topic: out}
steps:
  - filter: a > 1
  - route: [{when: a > 10, to: big}]
tests:
  - name: small
    input: {value: {a: 2}}
    outputs: [{topic: out, value: {a: 2}}]
"""
BAD = "name: bad\nsource: {topics: [in]}\nsink: {topic: out}\nsteps:\n  - drop: [x]\n  - filter: x\n  - set: {a: 1}\n  - drop: [a]\n"


# What CI servers may set; rich would take it for a terminal.
RUNNER = CliRunner(env={"FORCE_COLOR": None, "TTY_COMPATIBLE": None})


def reckon(*arguments: str | Path, stdin: bytes = b"") -> Result:
    app = typer.Typer(pretty_exceptions_enable=False)
    register(app)
    return RUNNER.invoke(app, list(map(str, arguments)), input=stdin, catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a good pipeline and a bad one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "bad.yaml").write_text(BAD)
    return tmp_path


# lint


def test_lint_of_a_directory(folder: Path) -> None:
    """All files under it, errors before their exit code."""
    result = reckon("lint", ".")
    assert result.stdout == (
        'more/bad.yaml:6:13: error: no field "x" here: drop in line 5 removes it [unknown-field]\n'
        'more/bad.yaml:7:11: warning: the value of "a" is never used: drop in line 8 discards it [unused]\n'
    )
    assert (result.stderr, result.exit_code) == ("2 files: 1 error, 1 warning\n", 1)


def test_lint_without_errors(folder: Path) -> None:
    """Warnings do not make it fail."""
    (folder / "good.yaml").write_text(GOOD.replace("a > 1\n", "true\n"))
    result = reckon("lint", "good.yaml")
    assert result.stdout == "good.yaml:5:13: warning: the condition is always true: the step does nothing [constant]\n"
    assert (result.stderr, result.exit_code) == ("1 file: 0 errors, 1 warning\n", 0)


def test_lint_as_json(folder: Path) -> None:
    result = reckon("lint", "--format", "json", "more")
    assert json.loads(result.stdout)[0] == {
        "file": "more/bad.yaml",
        "line": 6,
        "column": 13,
        "severity": "error",
        "rule": "unknown-field",
        "message": 'no field "x" here: drop in line 5 removes it',
    }
    assert result.exit_code == 1
    assert json.loads(reckon("lint", "--format", "json", "good.yaml").stdout) == []


def test_lint_as_annotations(folder: Path) -> None:
    """GitHub's workflow commands, with the escapes of their form."""
    (folder / "a,b%.yaml").write_text("name: p\nsorce: 1\n")
    result = reckon("lint", "--format", "github", "a,b%.yaml")
    assert (
        "::error file=a%2Cb%25.yaml,line=2,col=1,title=reckon invalid::unknown key 'sorce', did you mean 'source'?\n"
        in result.stdout
    )


def test_lint_of_client_settings(folder: Path) -> None:
    """What `run` would refuse is an error."""
    (folder / "good.yaml").write_text(GOOD + "producer: {acks: 0}\n")
    result = reckon("lint", "good.yaml")
    message = "this value of acks would break exactly-once: it is pinned to all; leave it out"
    assert (result.stdout, result.exit_code) == (f"good.yaml:11:12: error: {message} [client-setting]\n", 1)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("none.yaml", "none.yaml: no such file, expected a pipeline file or a directory of them\n"),
        ("empty", "empty: no *.yaml under this directory, expected pipeline files\n"),
    ],
)
@pytest.mark.parametrize("command", ["lint", "test"])
def test_arguments_that_cannot_be_used(command: str, argument: str, message: str, folder: Path) -> None:
    (folder / "empty").mkdir()
    result = reckon(command, argument)
    assert (result.stdout, result.stderr, result.exit_code) == ("", message, 2)


def test_lint_of_a_file_that_cannot_be_read(folder: Path) -> None:
    (folder / "latin.yaml").write_bytes(b"name: \xe4\n")
    result = reckon("lint", "latin.yaml")
    assert result.stdout == (
        "latin.yaml:1:1: error: cannot read the file: not UTF-8, expected a pipeline file [unreadable]\n"
    )
    assert result.exit_code == 2


# test


def test_tests_that_pass(folder: Path) -> None:
    """What no test reached is told, and does not make it fail."""
    result = reckon("test", "good.yaml")
    assert result.stdout == (
        "good.yaml: 1 of 1 passed; reached 4 of 6 steps, branches and routes\n"
        "good.yaml:5: not reached: steps[0] filter rejects\n"
        "good.yaml:6: not reached: steps[1] route[0] to big\n"
        "1 passed, 0 failed\n"
    )
    assert result.exit_code == 0


def test_tests_that_fail(folder: Path) -> None:
    """The place of the test, and what differs; the same in the JUnit file."""
    (folder / "good.tests.yaml").write_text(
        "tests:\n  - {name: 'wrong \x01', input: {value: {a: 2}}, outputs: [{topic: out, value: {a: 3}}]}\n".replace(
            "\x01", "<&"
        )
    )
    result = reckon("test", "good.tests.yaml", "good.yaml", "--junit", "junit.xml")
    assert result.stdout.startswith(
        "good.tests.yaml:2:5: FAILED wrong <&\n"
        "  output 1 to out has another value:\n"
        '        {\n      -   "a": 3\n      +   "a": 2\n        }\n'
        "good.yaml: 1 of 2 passed; "
    )
    assert (result.stdout.splitlines()[-1], result.exit_code) == ("1 passed, 1 failed", 1)
    root = ET.fromstring((folder / "junit.xml").read_bytes())
    [suite] = root
    assert {name: suite.get(name) for name in ("name", "tests", "failures")} == {
        "name": "good.yaml",
        "tests": "2",
        "failures": "1",
    }
    passed, failed = suite
    assert [passed.get("name"), passed.get("file"), passed.get("line"), len(passed)] == ["small", "good.yaml", "8", 0]
    assert [failed.get("name"), failed.get("file"), failed.get("line")] == ["wrong <&", "good.tests.yaml", "2"]
    assert failed[0].get("message") == "output 1 to out has another value:"
    assert '-   "a": 3' in (failed[0].text or "")


def test_a_pipeline_without_tests(folder: Path) -> None:
    (folder / "good.yaml").write_text(GOOD[: GOOD.index("tests:")])
    result = reckon("test", "good.yaml")
    assert (result.stdout, result.exit_code) == ("good.yaml: no tests\n0 passed, 0 failed\n", 0)


def test_a_pipeline_that_does_not_load(folder: Path) -> None:
    (folder / "good.yaml").write_text(GOOD.replace("filter", "filtr"))
    for command in ("test", "try", "compile"):
        result = reckon(command, "good.yaml")
        assert (result.stderr, result.exit_code) == ("good.yaml:5:5: unknown step 'filtr', did you mean 'filter'?\n", 2)


def test_files_that_cannot_be_used(folder: Path) -> None:
    """The tests of the others run; a CI server that reads the JUnit file sees an error for each of the bad ones."""
    (folder / "more" / "bad.yaml").write_text(BAD.replace("filter", "filtr"))
    (folder / "more" / "q.tests.yaml").write_text("tests:\n  - {name: a, input: {raw: x}, filtered: true}\n")
    (folder / "none.yaml").write_text(GOOD.replace("good", "none"))
    (folder / "none.tests.yaml").write_text("test: []\n")
    result = reckon("test", ".", "--junit", "junit.xml")
    assert result.stderr == (
        "more/bad.yaml:6:5: unknown step 'filtr', did you mean 'filter'?\n"
        "more/q.tests.yaml:1:1: tests without a pipeline, expected q.yaml beside them\n"
        "none.tests.yaml:1:1: the key 'tests' is missing, expected it\n"
        "none.tests.yaml:1:1: unknown key 'test', did you mean 'tests'?\n"
    )
    assert (result.stdout.splitlines()[-1], result.exit_code) == ("1 passed, 0 failed, 3 not usable", 2)
    suites = list(ET.fromstring((folder / "junit.xml").read_bytes()))
    assert [(suite.get("name"), suite.get("failures"), suite.get("errors")) for suite in suites] == [
        ("good.yaml", "0", "0"),
        ("more/bad.yaml", "0", "1"),
        ("more/q.tests.yaml", "0", "1"),
        ("none.yaml", "0", "1"),
    ]
    [[error]] = suites[1]
    assert (error.tag, error.get("message")) == ("error", "unknown step 'filtr', did you mean 'filter'?")
    assert [suites[3][0].get(name) for name in ("name", "file", "line")] == [
        "the file can be used",
        "none.tests.yaml",
        "1",
    ]


def test_lint_and_the_files_of_tests(folder: Path) -> None:
    """What is wrong with one is told with its pipeline, and once; one without a pipeline is an error at its own place."""
    (folder / "good.tests.yaml").write_text("tests: []\n")
    (folder / "q.tests.yaml").write_text("# nothing\n")
    (folder / "r.tests.yaml").write_text("tests: []\n")
    (folder / "r.yml").write_text(GOOD)
    nothing = "good.tests.yaml:1:8: error: nothing in it, expected at least 1 entry [invalid]\n"
    assert reckon("lint", "good.yaml").stdout == nothing
    assert reckon("lint", "good.yaml", "good.tests.yaml").stdout == nothing
    result = reckon("lint", "q.tests.yaml", "r.tests.yaml")
    assert result.stdout == (
        "q.tests.yaml:1:1: error: tests without a pipeline, expected q.yaml beside them [invalid]\n"
        "q.tests.yaml:1:1: error: the file is empty, expected tests of a pipeline: a list under `tests` [invalid]\n"
        "r.tests.yaml:1:8: error: nothing in it, expected at least 1 entry [invalid]\n"
    )
    assert result.exit_code == 1


def test_a_junit_file_that_cannot_be_written(folder: Path) -> None:
    result = reckon("test", "good.yaml", "--junit", "nowhere/junit.xml")
    assert (result.stderr, result.exit_code) == (
        "nowhere/junit.xml: cannot write the file: No such file or directory\n",
        2,
    )


def test_a_record_that_hangs_is_a_dead_letter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the worker; the test says so instead of hanging."""
    (folder / "hanging.py").write_text("def hang(value):\n    while True:\n        pass\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr("worker.commands.test.BUDGET_MS", 50)
    (folder / "p.yaml").write_text(
        "name: p\nsource: {topics: [in]}\nsink: {topic: out}\nsteps:\n  - python: hanging:hang\n"
        "tests:\n  - {name: a, input: {value: {}}, dead_letter: {error_class: TimeBudgetExceeded}}\n"
    )
    assert reckon("test", "p.yaml").exit_code == 0


# try


def test_try(folder: Path) -> None:
    """A line for each outcome; lines are values as they stand, so that what is no JSON can be tried too."""
    lines = b'{"a": 2}\n\n{"a": 11}\n{"a": 0}\nx\n{"a": "x"}\nnull\n'
    result = reckon("try", "good.yaml", stdin=lines)
    assert result.stdout == (
        '1 -> out {"a": 2}\n'
        '2 -> big {"a": 11}\n'
        "3 -> filtered\n"
        "4 -> dead letter DecodeError in decode: not JSON: unexpected character, expected a JSON value: line 1 column 1 (char 0)\n"
        "5 -> dead letter CelError in steps[0] filter, line 5: no such overload: string > int\n"
        "6 -> dead letter DecodeError in decode: not a JSON object but null\n"
    )
    assert (result.stderr, result.exit_code) == ("6 records: 2 outputs, 1 filtered, 3 dead letters\n", 0)


def test_try_with_envelopes(folder: Path) -> None:
    (folder / "p.yaml").write_text(
        "name: p\nsource: {topics: [in, in2]}\nsink: {topic: out}\nsteps:\n  - set: {t: topic, at: string(timestamp)}\n  - key: id\n"
    )
    entries: list[dict[str, Any]] = [
        {"value": {"id": 7}, "key": "k", "headers": {"h": "v"}, "topic": "in2", "timestamp": "2026-01-31T09:30:00Z"},
        {"value": None, "key": "k"},
        {"raw": "{"},
    ]
    result = reckon("try", "p.yaml", "--envelope", stdin="\n".join(map(json.dumps, entries)).encode())
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        '1 -> out {"id":7,"t":"in2","at":"2026-01-31T09:30:00Z"} key=7 headers=h:v',
        "2 -> out null key=k",
    ]
    assert lines[2].startswith("3 -> dead letter DecodeError in decode: not JSON: ")


def test_no_record_writes_on_the_terminal(folder: Path) -> None:
    """What would colour it, or break the line, is shown as JSON writes it: of keys, headers, text, and names in errors."""
    (folder / "p.yaml").write_text(
        "name: p\nsource: {topics: [in], format: string}\nsink: {topic: out, format: string}\n"
    )
    red = "\x1b[31m"
    entries: list[dict[str, Any]] = [
        {"value": f"a b{red}\n2 -> filtered\x85\u202e", "key": f"k{red}\r", "headers": {red: "v\n\t\xe9\U0001f600"}},
    ]
    result = reckon("try", "p.yaml", "--envelope", stdin="\n".join(map(json.dumps, entries)).encode())
    assert result.stdout.splitlines() == [
        r"1 -> out a b\u001b[31m\u000a2 -> filtered\u0085\u202e key=k\u001b[31m\u000d headers=\u001b[31m:v\u000a\u0009é😀"
    ]
    (folder / "q.yaml").write_text(
        "name: q\nsource: {topics: [in]}\nsink: {topic: out}\nsteps:\n  - flatten: {}\n"
        'tests:\n  - {name: "a\\e", input: {value: {}, key: "x\\e[31m\\ny"}, outputs: [{topic: out, value: {}, key: "\\e"}]}\n'
    )
    result = reckon("try", "q.yaml", stdin=json.dumps({red: {"a": 1}, red + "_a": 2}).encode())
    assert result.stdout.startswith("1 -> dead letter FlattenError in steps[0] flatten, line 5: ")
    assert r'"\u001b[31m_a"' in result.stdout
    assert "\x1b" not in result.stdout
    assert reckon("test", "q.yaml").stdout.startswith(
        "q.yaml:7:5: FAILED a\\u001b\n  output 1 to out has the key x\\u001b[31m\\u000ay, expected \\u001b\n"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "standard input, line 1: not JSON, expected an envelope: "),
        (b'{"vale": 1}', "standard input, line 1: not an envelope: unknown key 'vale', did you mean 'value'?"),
        (b"[]", "standard input, line 1: not an envelope: found a list, expected a mapping"),
        (b'{"key": 1}', "standard input, line 1: not an envelope: found none, expected one of value, raw, base64"),
    ],
)
def test_try_with_bad_envelopes(line: bytes, message: str, folder: Path) -> None:
    result = reckon("try", "good.yaml", "--envelope", stdin=line)
    assert result.stderr.startswith(message)
    assert (result.stdout, result.exit_code) == ("", 2)


# The others


def test_compile_prints_what_runs(folder: Path) -> None:
    """The generated function, which Python takes."""
    result = reckon("compile", "good.yaml")
    assert result.stdout == load_pipeline(folder / "good.yaml").transform.source
    assert "# steps[0] filter, line 5" in result.stdout
    compile(result.stdout, "good.yaml", "exec")
    assert result.exit_code == 0


def test_schema_and_docs() -> None:
    """What config/schema.json and docs/steps.md hold."""
    assert reckon("schema").stdout == schema_text()
    assert reckon("docs").stdout == Path("docs/steps.md").read_text(encoding="utf-8")


def test_no_command_needs_kafka() -> None:
    """They work where librdkafka does not, and need not wait for it to be loaded."""
    script = (
        "import sys; import worker.commands; print([m for m in sys.modules if m in ('confluent_kafka', 'structlog')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
