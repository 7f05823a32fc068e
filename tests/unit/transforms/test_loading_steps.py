"""What can be wrong with steps, sources and formats in a pipeline file: what is said, at which line and column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.transforms.test_loading import GOOD, problems
from transforms.loading import load_pipeline
from transforms.steps import STEPS as ALL_STEPS

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "name: p\n"
IN = "source: {topics: [in]}\n"
OUT = "sink: {topic: out}\n"
NO_FIELD = "not a field, expected a name, names with dots between them, or `a.name` in backticks for one with dots"
NO_FORM = "not a form of time, expected rfc3339, unix, unix_ms, unix_us, unix_ns, or a pattern of"
NO_TIME = "not a choice here, expected 'rfc3339', 'unix', 'unix_ms', 'unix_us' or 'unix_ns'"
NO_FORMAT = "not a format, expected json, string or bytes, or a mapping of topics to formats"
JUST_WRITTEN = "which this step has just written, expected another field"
AN_OBJECT = "expected a step `value` before it, as in value: '{\"text\": this}'"

STEPS: dict[str, tuple[str, list[str]]] = {
    "paths": (
        "  - drop: [a..b, 'a.', '`a', ok]\n  - set: {a.: 1}\n  - rename: {a: .b}\n  - cast: {'': int}\n",
        [
            f"5:12: {NO_FIELD}",
            f"5:18: {NO_FIELD}",
            f"5:24: {NO_FIELD}",
            f"6:11: {NO_FIELD}",
            f"7:17: {NO_FIELD}",
            "8:12: empty text, expected at least 1 character",
        ],
    ),
    "choices": (
        "  - cast: {a: integer}\n  - parse_time: {t: {to: iso}}\n  - parse_time: {t: {to: unix_s}, u: {from: unix_s}, v: {to: UNIX_MS}}\n",
        [
            "5:15: not a choice here, expected 'int', 'double', 'string' or 'bool', did you mean 'int'?",
            f"6:26: {NO_TIME}",
            f"7:26: {NO_TIME}, did you mean 'unix'?",
            f"7:45: {NO_FORM} %Y, %m, %d, %H, %M, %S, %f, %z, %j, %y, %b, %B, %p, %I, %%, did you mean 'unix'?",
            f"7:62: {NO_TIME}, did you mean 'unix_ms'?",
        ],
    ),
    "unknown keys": (
        (
            "  - mask: {fields: [a], keeplast: 4}\n  - explode: {fild: a}\n  - validate: {scheme: {}}\n  - parse_time: {t: {form: unix}}\n"
            "  - headers: {sett: {}}\n  - assert: {this: a, that: a}\n"
        ),
        [
            "5:25: unknown key 'keeplast', did you mean 'keep_last'?",
            "6:14: the key 'field' of 'explode' is missing, expected it",
            "6:15: unknown key 'fild', did you mean 'field'?",
            "7:16: unknown key 'scheme', did you mean 'schema'?",
            "8:22: unknown key 'form', did you mean 'from'?",
            "9:15: unknown key 'sett', did you mean 'set'?",
            "10:14: unknown key 'this', expected one of that, message",
        ],
    ),
    "fields that a step overwrites": (
        (
            "  - rename: {a: b, c: b}\n  - rename: {a: b.x, c: b, d: e, f: e.g}\n  - set: {a.b: '1', '`a`': '2'}\n"
            "  - explode: {field: l, into: e, index: e}\n  - explode: {field: l.x, index: l}\n"
        ),
        [
            f"5:23: the field 'b' takes the place of 'b', {JUST_WRITTEN}",
            f"6:25: the field 'b' takes the place of 'b.x', {JUST_WRITTEN}",
            f"7:21: the field '`a`' takes the place of 'a.b', {JUST_WRITTEN}",
            f"8:41: the field 'e' takes the place of 'e', {JUST_WRITTEN}",
            f"9:34: the field 'l' takes the place of 'l.x', {JUST_WRITTEN}",
        ],
    ),
    "numbers": (
        "  - explode: {field: a, limit: 0}\n  - explode: {field: a, limit: many}\n  - mask: {fields: [a], keep_last: -1}\n",
        [
            "5:32: the number is too small, expected at least 1",
            "6:32: found text, expected a whole number",
            "7:36: the number is too small, expected at least 0",
        ],
    ),
    "the salt in the file": (
        "  - mask: {fields: [a], sha256: {salt: hunter2}}\n",
        ["5:40: the salt stands in the file, where everybody reads it, expected ${NAME} or ${file:/path}"],
    ),
    "a salt that is not set": (
        "  - mask:\n      fields: [a]\n      sha256: {salt: '${NO_SALT}'}\n",
        ["7:23: the environment variable NO_SALT is not set, expected it, or a default: ${NO_SALT:-...}"],
    ),
    "two ways of masking": (
        "  - mask: {fields: [a], keep_last: 1, sha256: {salt: '${S:-s}'}}\n",
        ["5:11: a mask needs one of the keys sha256 and keep_last"],
    ),
    "headers of the worker": (
        "  - headers: {remove: [reckon.source], set: {reckon.x: '1'}}\n",
        [
            "5:24: headers that begin with 'reckon.' are the worker's own, expected another name",
            "5:46: headers that begin with 'reckon.' are the worker's own, expected another name",
        ],
    ),
    "python": (
        "  - python: nothing\n  - python: no_such_module:f\n",
        [
            "5:13: not a function, expected package.module:function",
            "6:13: no module 'no_such_module', expected it to be installed, or its folder to be in PYTHONPATH",
        ],
    ),
    "schemas": (
        (
            "  - validate: {schema: {type: objekt}}\n  - validate: {schema: {properties: {a: {pattern: '(?=x)'}}}}\n"
            "  - validate: {schema: {$ref: 'file:///etc/hosts'}}\n  - validate: {file: missing.json}\n  - validate: {file: bad.json}\n"
            "  - validate: {file: type.json}\n  - validate: {schema: {items: {type: [string, nul]}}}\n"
            "  - validate: {schema: {properties: {type: {type: [string, string]}}}}\n"
            "  - validate:\n      schema:\n        required: id\n  - validate: {schema: {type: word}}\n"
        ),
        [
            "5:31: not a JSON Schema: no type 'objekt', did you mean 'object'?",
            '6:51: not a JSON Schema: the value is not a "regex"',
            (
                "7:24: not a JSON Schema: Resource 'file:///etc/hosts' is not present in a registry and retrieving it failed: "
                "Retrieval is disabled, cannot fetch file:///etc/hosts"
            ),
            "8:15: cannot read the schema 'missing.json': No such file or directory",
            "9:15: cannot read the schema 'bad.json': not JSON",
            "10:15: not a JSON Schema at properties/a/type: no type 'boolena', did you mean 'boolean'?",
            "11:48: not a JSON Schema: no type 'nul', did you mean 'null'?",
            "12:51: not a JSON Schema: not a type, or a list of different ones",
            '15:19: not a JSON Schema: the value is not of type "array"',
            "16:31: not a JSON Schema: no type 'word', expected one of array, boolean, integer, null, number, object, string",
        ],
    ),
    "expressions in steps": (
        "  - assert: {that: a &&, message: m}\n  - default: {a: 1 +}\n  - headers: {set: {h: (}}\n  - key: ')'\n",
        [
            "5:24: the expression ends too early, expected a value (a name, a literal or parentheses)",
            "6:21: the expression ends too early, expected a value (a name, a literal or parentheses)",
            "7:25: the expression ends too early, expected a value (a name, a literal or parentheses)",
            "8:11: unexpected ')' in the expression, expected a value (a name, a literal or parentheses)",
        ],
    ),
    "routes to all": (
        "  - route_all: [{to: x}, {when: a == 1, to: x}]\n  - drop: [a]\n  - route: [{to: y}]\n",
        [
            "5:45: the topic stands in this step already, expected it once: join the conditions with ||",
            "7:12: a second route step, expected at most one",
        ],
    ),
    "too many explodes": (
        "  - explode: {field: a}\n" * 9,
        ["13:14: one explode too many, expected at most 8"],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps(tmp_path: Path, name: str) -> None:
    """All problems of the steps at once, each at its place."""
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "type.json").write_text('{"properties": {"a": {"type": "boolena"}}}')
    text, expected = STEPS[name]
    assert expected == problems(tmp_path, HEAD + IN + OUT + "steps:\n" + text)


FILES: dict[str, tuple[str, list[str]]] = {
    "topics and a pattern": (
        HEAD + "source: {topics: [in], pattern: ^a}\n" + OUT,
        ["2:33: a pattern beside a list of topics, expected one of them"],
    ),
    "bad pattern": (
        HEAD + "source: {pattern: shop.*}\n" + OUT,
        ["2:19: not a pattern, expected one that begins with '^', which librdkafka knows patterns by"],
    ),
    "loops by pattern": (
        HEAD + "source: {pattern: ^p}\nsink: {topic: p.out}\nsteps:\n  - route: [{when: a == 1, to: p.x}]\n",
        [
            "1:1: the dead-letter topic matches the source's pattern, a loop, expected another topic or a narrower pattern",
            "1:1: the receipts topic matches the source's pattern, a loop, expected another topic or a narrower pattern",
            "3:15: the sink matches the source's pattern, a loop, expected another topic or a narrower pattern",
            "5:32: a route's topic matches the source's pattern, a loop, expected another topic or a narrower pattern",
        ],
    ),
    "formats that are none": (
        HEAD + "source: {topics: [in], format: xml, key_format: text}\nsink: {topic: out, format: avro}\n",
        [
            f"2:32: {NO_FORMAT}",
            "2:49: not a choice here, expected 'json', 'string' or 'bytes'",
            "3:28: not a choice here, expected 'json', 'string' or 'bytes'",
        ],
    ),
    "formats that are nearly one": (
        HEAD + "source: {topics: [in], format: jsn, key_format: str}\nsink: {topic: out, format: byte}\n",
        [
            f"2:32: {NO_FORMAT}, did you mean 'json'?",
            "2:49: not a choice here, expected 'json', 'string' or 'bytes', did you mean 'string'?",
            "3:28: not a choice here, expected 'json', 'string' or 'bytes', did you mean 'bytes'?",
        ],
    ),
    "formats and steps of wrong types": (
        HEAD + "source: {topics: [in], format: []}\n" + OUT + "steps:\n  - 5\n  - route_all: [{}, {}]\n",
        [
            f"2:32: {NO_FORMAT}",
            "5:5: not a step, expected a mapping with one of " + ", ".join(ALL_STEPS),
            "6:17: the key 'to' of 'route_all' is missing, expected it",
            "6:21: the key 'to' of 'route_all' is missing, expected it",
        ],
    ),
    "formats of wrong types by topic": (
        HEAD + "source: {topics: [in], format: {in: []}}\n" + OUT,
        [f"2:32: {NO_FORMAT}"],
    ),
    "a format of no topic": (
        HEAD + "source: {topics: [in], format: {inn: string}}\nsink: {topic: out, format: string}\n",
        ["2:33: not one of the source's topics, expected one of them"],
    ),
    "steps that need an object": (
        HEAD + "source: {topics: [in], format: string}\n" + OUT + "steps:\n  - filter: size(this) > 1\n  - drop: [a]\n",
        [f"6:11: drop needs an object, but the format of the source is string, {AN_OBJECT}"],
    ),
    "a schema for bytes": (
        HEAD
        + "source: {topics: [in], format: bytes}\nsink: {topic: out, format: bytes}\nsteps:\n  - validate: {schema: {}}\n",
        [f"5:15: validate needs an object, but the format of the source is bytes, {AN_OBJECT}"],
    ),
    "bytes as JSON": (
        HEAD + "source: {topics: [in], format: bytes}\n" + OUT,
        ["3:15: the sink has the format json, which cannot hold the bytes of the source, expected the format bytes"],
    ),
    "an object as text": (
        HEAD + IN + "sink: {topic: out, format: string}\nsteps:\n  - drop: [a]\n",
        ["3:15: the sink has the format string, but the value is an object, expected a step `value` that makes text"],
    ),
    "two formats of one topic": (
        HEAD + IN + OUT + "steps:\n  - value: a\n  - route: [{when: this == 1, to: out, format: string}]\n",
        ["6:35: a route's topic has another format elsewhere in the file, expected one format per topic"],
    ),
    "tests": (
        HEAD
        + IN
        + OUT
        + "tests:\n  - {name: t, inputt: {value: 1}, filtered: true}\n  - {name: u, input: {vallue: 1}, filtered: true}\n",
        [
            "5:15: unknown key 'inputt', did you mean 'input'?",
            "6:23: unknown key 'vallue', did you mean 'value'?",
        ],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path: Path, name: str) -> None:
    """Sources, formats, tests."""
    text, expected = FILES[name]
    assert expected == problems(tmp_path, text)


def test_pattern(tmp_path: Path) -> None:
    """A source by pattern has no list of topics."""
    file = tmp_path / "p.yaml"
    file.write_text(HEAD + 'source: {pattern: "^shop[.]a"}\n' + OUT)
    source = load_pipeline(file, {}).spec.source
    assert (source.topics, source.pattern) == ([], "^shop[.]a")


def test_numbers_from_the_environment_in_flow_style(tmp_path: Path) -> None:
    """YAML wants quotes around a reference in {...}; where a number is wanted it is one, and text where text will do."""
    file = tmp_path / "p.yaml"
    file.write_text(GOOD + 'transaction: {records: "${N}", bytes: \'${N}0\'}\nlineage: "${T}"\nkafka: {a: "${N}"}\n')
    spec = load_pipeline(file, {"N": "007", "T": "false"}).spec
    assert (spec.transaction.records, spec.transaction.bytes, spec.lineage) == (7, 56, False)
    assert spec.kafka == {"a": "007"}


def test_text_from_the_environment_where_a_number_is_wanted(tmp_path: Path) -> None:
    """Then it is an error, together with the others of the file; quotes without a reference mean text."""
    text = GOOD + 'transaction: {records: "${N}", bytes: "5", interval_ms: "${M}"}\nlineage: 5\n'
    assert problems(tmp_path, text, {"N": "many", "M": "-1"}) == [
        "4:24: found text, expected a whole number",
        "4:39: found text, expected a whole number",
        "4:57: the number is too small, expected more than 0",
        "5:10: found a whole number, expected true or false",
    ]


def test_schemas_are_typed(tmp_path: Path) -> None:
    """In a schema numbers are numbers, unlike in the rest of the steps; a file of one is found beside the pipeline."""
    (tmp_path / "s.json").write_text('{"minProperties": 1}')
    file = tmp_path / "p.yaml"
    file.write_text(
        GOOD + "steps:\n  - validate: {schema: {maxProperties: 5, required: ['1']}}\n  - validate: {file: s.json}\n"
    )
    steps = load_pipeline(file, {}).spec.steps
    assert [step.fingerprint() for step in steps] == [
        {"validate": {"maxProperties": 5, "required": ["1"]}},
        {"validate": {"minProperties": 1}},
    ]


def test_salts_are_not_in_messages(tmp_path: Path) -> None:
    """Whatever else is wrong."""
    text = (
        HEAD
        + IN
        + OUT
        + "steps:\n  - mask: {fields: [], sha256: {salt: '${S}', x: 1}}\n  - mask: {fields: [a], sha256: '${S}'}\n"
    )
    found = problems(tmp_path, text, {"S": "hunter2"})
    assert len(found) >= 3
    assert "hunter2" not in str(found)
