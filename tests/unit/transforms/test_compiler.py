"""One function per pipeline: what becomes of records, of failures, of tombstones; what timers cannot break."""

from __future__ import annotations

import dis
import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.support.records import Record
from transforms import compiler
from transforms.compiler import compile_pipeline, digest
from transforms.errors import TimeBudgetExceeded
from transforms.spec import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from transforms.records import Result, Transform

ORDERS: list[Any] = [
    {"filter": 'status != "bad"'},
    {"set": {"amount_cents": "int(amount * 100.0)"}},
    {"rename": {"user": "customer"}},
    {"route": [{"when": "amount_cents > 100000", "to": "large"}]},
]


def pipeline(steps: list[Any], **more: Any) -> Pipeline:
    return Pipeline.model_validate(
        {"name": "p", "source": {"topics": ["in"]}, "sink": {"topic": "out"}, "steps": steps, **more}
    )


def records(*values: object) -> list[Record]:
    return [
        Record(value if isinstance(value, bytes) else orjson.dumps(value), offset_=index)
        for index, value in enumerate(values)
    ]


GOOD = {"status": "ok", "amount": 1.5, "user": "u"}


def test_output_keeps_key_headers_timestamp() -> None:
    """An output is (topic, value, key, headers, timestamp, source record, index), all but the value as they came."""
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("a", None)]
    record = Record(b'{"a": 1}', key_=None, headers_=headers, timestamp_ms=42)
    result = compile_pipeline(pipeline([{"set": {"b": "a"}}])).run([record])
    assert [("out", b'{"a":1,"b":1}', None, headers, 42, record, 0)] == result.outputs


def test_every_input_is_accounted_for_in_order() -> None:
    """Outputs and failures come in the order of the inputs; the rest is counted as filtered."""
    given = records(GOOD, {"status": "bad"}, {"status": "ok"}, {**GOOD, "amount": 2000.0}, b"{", GOOD)
    result = compile_pipeline(pipeline(ORDERS)).run(given)
    assert [(output[0], output[5].offset()) for output in result.outputs] == [("out", 0), ("large", 3), ("out", 5)]
    assert [failure.record.offset() for failure in result.failures] == [2, 4]
    assert result.filtered == 1


FAILURES: list[tuple[object, tuple[str, str, str, int]]] = [
    (b"{", ("DecodeError", "not JSON: unexpected end of data: line 1 column 2 (char 1)", "decode", 0)),
    (b"", ("DecodeError", "not JSON: Input is a zero-length, empty document: line 1 column 1 (char 0)", "decode", 0)),
    (b"[]", ("DecodeError", "not a JSON object but an array", "decode", 0)),
    (b"null", ("DecodeError", "not a JSON object but null", "decode", 0)),
    (b"1", ("DecodeError", "not a JSON object but a number", "decode", 0)),
    (b'"x"', ("DecodeError", "not a JSON object but a string", "decode", 0)),
    (b"true", ("DecodeError", "not a JSON object but a boolean", "decode", 0)),
    ({}, ("CelError", 'no such field: "status"', "steps[0] filter", 7)),
    ({"status": "ok"}, ("CelError", 'no such field: "amount"', "steps[1] set", 8)),
    ({"status": "ok", "amount": "1.5"}, ("CelError", "no such overload: string * double", "steps[1] set", 8)),
    ({"status": "ok", "amount": 1.5}, ("MissingField", 'no such field: "user"', "steps[2] rename", 0)),
]


@pytest.mark.parametrize(("value", "expected"), FAILURES)
def test_failure_names_step_and_line(value: object, expected: tuple[str, str, str, int]) -> None:
    """A failure has a class, a message without data of the record, the step, and the step's line where it is known."""
    transform = compile_pipeline(pipeline(ORDERS), {0: 7, 1: 8, 3: 12})
    [failure] = transform.run(records(value)).failures
    assert expected == (failure.error_class, failure.message, failure.step, failure.line)


def test_failure_in_route_and_encode() -> None:
    """A route fails as a step of its own; what cannot be written as JSON fails in the step "encode"."""
    transform = compile_pipeline(pipeline([{"drop": ["x"]}, {"route": [{"when": "n > 1", "to": "many"}]}]))
    deep = b'{"n": 1, "deep": ' + b"[" * 500 + b"]" * 500 + b"}"
    found = [(failure.error_class, failure.step) for failure in transform.run(records({"n": "x"}, deep)).failures]
    assert found == [("CelError", "steps[1] route"), ("EncodeError", "encode")]


def test_recursion_is_a_failure() -> None:
    """A record nested deeper than Python's stack fails alone."""
    deep = b'{"a": ' + b"[" * 1000 + b"]" * 1000 + b', "b": ' + b"[" * 1000 + b"]" * 1000 + b"}"
    result = compile_pipeline(pipeline([{"filter": "a == b || true && a != b"}])).run(records(deep, {"a": 1, "b": 1}))
    assert [(f.error_class, f.message) for f in result.failures] == [
        ("RecursionError", "the record is nested too deeply")
    ]
    assert len(result.outputs) == 1


def test_unexpected_errors_do_not_quote_the_record() -> None:
    """Even where something is broken outside, the failure has the class, and no data."""

    class Broken(Record):
        def key(self) -> bytes | None:
            raise KeyError("secret of the record")

    [failure] = compile_pipeline(pipeline(ORDERS)).run([Broken(orjson.dumps(GOOD))]).failures
    assert (
        failure.error_class,
        failure.message,
        failure.step,
    ) == ("KeyError", "the step failed in a way that it should not, please report it", "encode")


def test_messages_are_bounded() -> None:
    """Also where names of the record's fields are in them."""
    transform = compile_pipeline(
        pipeline([{"validate": {"schema": {"properties": {"a": {}}, "additionalProperties": False}}}])
    )
    [failure] = transform.run(records({"x" * 100_000: 1})).failures
    assert len(failure.message) == 1003


def test_tombstones_go_everywhere() -> None:
    """A delete reaches every topic that the key may have gone to, whatever the steps would say, in the order of the topics."""
    record = Record(None, headers_=[("h", b"1")])
    result = compile_pipeline(pipeline(ORDERS)).run([record])
    expected = [
        (topic, None, b"key", [("h", b"1")], record.timestamp_ms, record, index)
        for index, topic in enumerate(["large", "out"])
    ]
    assert expected == result.outputs
    assert result.filtered == 0


def test_tombstones_dropped() -> None:
    """`tombstones: drop` filters them, with steps and without."""
    for steps in (ORDERS, []):
        result = compile_pipeline(pipeline(steps, tombstones="drop")).run([Record(None)])
        assert (result.outputs, result.failures, result.filtered) == ([], [], 1)


@pytest.mark.parametrize("value", [b"17", b"not json", b'{"a" :  1.0e0}', None])
def test_copy_does_not_look_at_values(value: bytes | None) -> None:
    """Without steps, bytes go through untouched, whatever they are."""
    result = compile_pipeline(pipeline([])).run([Record(value)])
    assert [("out", value)] == [output[:2] for output in result.outputs]


def test_value_is_untouched_where_no_step_changes_it() -> None:
    """Filters and routes alone do not rewrite a value: its spaces and its numbers stay as they were."""
    value = b'{"a" :  1.0e0}'
    [output] = compile_pipeline(pipeline([{"filter": "a == 1"}, {"route": [{"to": "x"}]}])).run([Record(value)]).outputs
    assert ("x", value) == output[:2]


def test_any_iterable_will_do() -> None:
    """The worker passes an iterator of a list and watches how far it is; nothing asks for a length."""
    iterator: Iterator[Record] = iter(records(GOOD, GOOD))
    assert len(compile_pipeline(pipeline(ORDERS)).run(iterator).outputs) == 2
    assert iterator.__length_hint__() == 0  # type: ignore[attr-defined]
    assert compile_pipeline(pipeline(ORDERS)).run([]).outputs == []


class Interrupt:
    """Raises TimeBudgetExceeded before the n-th bytecode of the generated function and of what settles a failure.

    That is finer than CPython, which looks for signals at calls, jumps back and the start of functions only; so one place is
    left out: between taking the next record and storing it, where no signal can strike and no code could know the record. NOP and
    RETURN_VALUE cannot raise at all, and no exception handler covers them.
    """

    FILES = ("<pipeline p>", "failures.py")

    def __init__(self, at: int) -> None:
        self.left = at
        self.raised = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Interrupt | None:
        if not frame.f_code.co_filename.endswith(self.FILES):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not self.raised:
            self.left -= 1
            if self.left < 0 and self.possible(frame):
                self.raised = True
                raise TimeBudgetExceeded
        return self

    @staticmethod
    def possible(frame: FrameType) -> bool:
        """Not before the loop: nothing is at hand yet that could have exceeded a budget."""
        if frame.f_code.co_name != "run":
            return True
        for_line = frame.f_code.co_firstlineno + 10
        name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        line = frame.f_lineno or for_line + 1  # what the compiler adds behind an `except ... as` has no line
        return (
            line >= for_line and name not in ("NOP", "RETURN_VALUE") and not (line == for_line and name == "STORE_FAST")
        )


def interrupted(transform: Transform, given: list[Record], at: int) -> tuple[Result, bool]:
    """In a thread of its own: what a trace function raises inside an `except` leaves CPython's exc_info of the thread set (3.11), and
    every failure after it would print a chain of exceptions that have nothing to do with it.
    """
    interrupt = Interrupt(at)

    def run() -> Result:
        sys.settrace(interrupt)  # this thread's
        return transform.run(given)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result(), interrupt.raised


MANY: list[Any] = [
    {"tombstone": 'status == "gone"'},
    {"explode": {"field": "items"}},
    {"filter": "items != 0"},
    {"set": {"cents": "int(items * 100)"}},
    {"key": "string(items)"},
    {"headers": {"set": {"k": "key"}}},
    {"route_all": [{"when": "items > 1", "to": "large"}, {"to": "all"}]},
]
GIVEN: dict[str, tuple[list[Any], list[object]]] = {
    "one": (ORDERS, [GOOD, {"status": "bad"}, {"status": "ok"}, GOOD, None, b"{"]),
    "several": (
        MANY,
        [{"status": "", "items": [1, 0, 2]}, {"status": "gone"}, {"status": "", "items": [1, "x"]}, None],
    ),
    "no outputs": (MANY, [{"status": "", "items": [0]}, {"status": "", "items": []}, {"status": "", "items": [2]}]),
}


@pytest.mark.parametrize("name", GIVEN)
def test_time_budget_at_every_bytecode(name: str) -> None:
    """Rules T5 and E9: wherever a timer strikes, every record is settled once: all its outputs, filtered, or one failure."""
    steps, values = GIVEN[name]
    transform = compile_pipeline(pipeline(steps))
    given = [
        Record(value if isinstance(value, bytes) else None if value is None else orjson.dumps(value), offset_=index)
        for index, value in enumerate(values)
    ]
    clean = transform.run(given)
    outputs_of = {id(record): [o for o in clean.outputs if o[5] is record] for record in given}
    raised, at = True, 0
    struck = set()
    while raised:
        result, raised = interrupted(transform, given, at)
        failed = [failure.record for failure in result.failures]
        with_outputs = list(dict.fromkeys(id(output[5]) for output in result.outputs))
        assert len(given) == len(failed) + len(with_outputs) + result.filtered, at
        assert not {id(record) for record in failed} & set(with_outputs), at
        assert result.outputs == [
            o for record in given if id(record) in with_outputs for o in outputs_of[id(record)]
        ], at
        struck |= {given.index(f.record) for f in result.failures if f.error_class == "TimeBudgetExceeded"}  # type: ignore[arg-type]
        at += 1
    assert at > 150
    assert set(range(len(given))) == struck


def test_time_budget_message() -> None:
    """The failure says what happened, not where the timer happened to strike."""
    transform = compile_pipeline(pipeline([{"filter": "a.matches(b)"}]))

    class Slow(Record):
        def value(self) -> bytes | None:
            raise TimeBudgetExceeded

    [failure] = transform.run([Slow(b"{}")]).failures
    assert (
        failure.error_class,
        failure.message,
    ) == ("TimeBudgetExceeded", "the record took longer than its time budget")


def test_digest_depends_on_what_outputs_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps, sink, tombstones and the compiler's version change the digest; clients, limits, names and sources do not."""
    base = digest(pipeline(ORDERS))
    assert base.startswith("sha256:")
    assert len(base.removeprefix("sha256:")) == 64
    same: list[dict[str, Any]] = [
        {"name": "other"},
        {"source": {"topics": ["elsewhere"]}},
        {"lineage": False},
        {"transaction": {"records": 1}},
        {"kafka": {"client.id": "x"}},
        {"dead_letters": {"topic": "dead"}},
    ]
    assert {base} == {digest(pipeline(ORDERS, **more)) for more in same}
    different = [
        digest(pipeline(ORDERS[1:])),
        digest(pipeline([*ORDERS[:2], {"drop": ["x"]}, *ORDERS[2:]])),
        digest(pipeline(ORDERS, sink={"topic": "other"})),
        digest(pipeline(ORDERS, tombstones="drop")),
        digest(pipeline([{"set": {"a": "1", "b": "2"}}])),
        digest(pipeline([{"set": {"b": "2", "a": "1"}}])),
    ]
    monkeypatch.setattr(compiler, "COMPILER_VERSION", compiler.COMPILER_VERSION + 1)
    different.append(digest(pipeline(ORDERS)))
    assert len({base, *different}) == len(different) + 1


def test_digest_and_source_are_the_same_in_another_process() -> None:
    """No order of a set or a dict of this process gets into the digest or the generated source."""
    code = (
        "import json, sys; from transforms.compiler import compile_pipeline; from transforms.spec import Pipeline;"
        "t = compile_pipeline(Pipeline.model_validate(json.loads(sys.argv[1]))); print(json.dumps([t.digest, t.source, t.topics]))"
    )
    spec = pipeline([{"keep": ["status", "amount", "user", "a", "b"]}, *ORDERS])
    text = spec.model_dump_json()
    root = Path(__file__).parents[3]
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code, text],
                capture_output=True,
                check=True,
                cwd=root,
                env={"PYTHONHASHSEED": seed},
            ).stdout
        )
        for seed in ("1", "2")
    ]
    transform = compile_pipeline(spec)
    assert [[transform.digest, transform.source, list(transform.topics)]] * 2 == found


def test_topics() -> None:
    """Every topic that outputs can reach, sorted; a sink that a default route leaves nothing for is none of them."""
    assert compile_pipeline(pipeline(ORDERS)).topics == ("large", "out")
    assert compile_pipeline(pipeline([{"route": [{"to": "x"}]}])).topics == ("x",)
    assert compile_pipeline(pipeline([])).topics == ("out",)


def body(steps: list[Any], **more: Any) -> str:
    """The generated lines of one record's work."""
    source = compile_pipeline(pipeline(steps, **more)).source
    return source[source.index("# decode") : source.index("except Exception")]


def test_metadata_is_read_once_and_only_where_it_is_used() -> None:
    """A name is given its value before its first use; what no expression reads costs nothing."""
    code = body([{"filter": 'topic == "in"'}, {"set": {"a": "topic", "p": "partition"}}, {"filter": "this.offset > 0"}])
    assert [line.strip() for line in code.splitlines() if "m_" in line and "= record" in line] == [
        "m_topic = record.topic()",
        "m_partition = record.partition()",
    ]
    assert "m_" not in body(ORDERS)


def test_metadata_values() -> None:
    """What expressions see of a record: text, map of last headers, numbers, a timestamp; a field of the name is this.name."""
    names = {name: name for name in ("key", "headers", "topic", "partition", "offset", "timestamp")}
    record = Record(
        b'{"timestamp": 5}',
        key_=b"k",
        headers_=[("a", b"1"), ("a", b"2"), ("b", None), ("c", "text"), ("d", b"\xff")],
        timestamp_ms=1_769_851_800_123,
        topic_="in",
        partition_=3,
        offset_=17,
    )
    [output] = compile_pipeline(pipeline([{"set": {**names, "field": "this.timestamp"}}])).run([record]).outputs
    assert json.loads(output[1] or b"") == {
        "timestamp": "2026-01-31T09:30:00.123Z",
        "key": "k",
        "headers": {"a": "2", "b": None, "c": "text", "d": "/w=="},
        "topic": "in",
        "partition": 3,
        "offset": 17,
        "field": 5,
    }


def source(**more: Any) -> dict[str, Any]:
    return {"source": {"topics": ["in"], **more}}


@pytest.mark.parametrize(
    ("form", "key", "expected"),
    [
        ("string", b"k", '"k"'),
        ("string", None, "null"),
        ("json", b'{"id": 1}', '{"id":1}'),
        ("json", None, "null"),
        ("bytes", b"\xff", '"/w=="'),
        ("string", b"\xff", "the key is not UTF-8 text, which `source.key_format: string` expects"),
        ("json", b"{", "the key is not JSON, which `source.key_format: json` expects"),
    ],
)
def test_key_formats(form: str, key: bytes | None, expected: str) -> None:
    """Expressions see the key as its format says; a key that is something else is a dead letter of the step that reads it."""
    transform = compile_pipeline(pipeline([{"filter": "true"}, {"value": "key"}], **source(key_format=form)))
    result = transform.run([Record(b"{}", key_=key)])
    found = [(output[1] or b"").decode() for output in result.outputs]
    found += [failure.message for failure in result.failures]
    assert [expected] == found
    assert all((f.error_class, f.step) == ("DecodeError", "steps[1] value") for f in result.failures)


def test_a_key_that_no_expression_reads_may_be_anything() -> None:
    """The key goes on as it is."""
    result = compile_pipeline(pipeline([{"set": {"a": "1"}}])).run([Record(b"{}", key_=b"\xff")])
    assert [output[2] for output in result.outputs] == [b"\xff"]


FORMATS: list[tuple[str, str, list[Any], bytes, list[object]]] = [
    ("string", "string", [{"filter": 'this.startsWith("a")'}], b"abc", [b"abc"]),
    ("string", "string", [], b"\xff", [b"\xff"]),
    ("string", "string", [{"filter": "true"}], b"\xff", ["DecodeError: not UTF-8 text"]),
    ("string", "json", [], b'a"b', [b'"a\\"b"']),
    ("string", "json", [{"value": "{'line': this}"}, {"set": {"n": "size(line)"}}], b"abc", [b'{"line":"abc","n":3}']),
    ("string", "bytes", [], b"abc", [b"abc"]),
    ("string", "string", [{"validate": {"schema": {"maxLength": 3}}}], b"abc", [b"abc"]),
    ("bytes", "bytes", [{"filter": "size(this) == 2"}], b"\xff\x00", [b"\xff\x00"]),
    ("bytes", "string", [{"filter": "true"}], b"abc", [b"abc"]),
    ("bytes", "string", [{"filter": "true"}], b"\xff", ["DecodeError: not UTF-8 text"]),
    ("bytes", "json", [{"value": "{'b': this}"}], b"\xff", [b'{"b":"/w=="}']),
    ("json", "string", [{"value": "this.a"}], b'{"a": "x"}', [b"x"]),
    (
        "json",
        "string",
        [{"value": "a"}],
        b'{"a": 5}',
        ["EncodeError: the value is of type int, expected a string: the topic's format is string"],
    ),
    ("json", "bytes", [{"value": "base64.decode(a)"}], b'{"a": "/w=="}', [b"\xff"]),
    (
        "json",
        "bytes",
        [{"value": "a"}],
        b'{"a": {}}',
        ["EncodeError: the value is of type map, expected a string or bytes: the topic's format is bytes"],
    ),
    (
        "string",
        "string",
        [{"filter": 'has(this.a) || "a" in this'}],
        b"abc",
        ['CelError: no such overload: has("a") of string'],
    ),
]


@pytest.mark.parametrize(("read", "written", "steps", "value", "expected"), FORMATS)
def test_formats(read: str, written: str, steps: list[Any], value: bytes, expected: list[object]) -> None:
    """Values as text and as bytes, in and out; `this` is the text, or the bytes."""
    spec = pipeline(steps, **source(format=read), sink={"topic": "out", "format": written})
    result = compile_pipeline(spec).run([Record(value)])
    found = [output[1] for output in result.outputs]
    assert expected == [*found, *(f"{failure.error_class}: {failure.message}" for failure in result.failures)]


def test_formats_by_topic() -> None:
    """Each source topic, and each topic of outputs, may have its own."""
    spec = pipeline(
        [
            {
                "route": [
                    {"when": 'topic == "text"', "to": "t", "format": "string"},
                    {"when": 'topic == "raw"', "to": "b", "format": "bytes"},
                ]
            }
        ],
        source={"topics": ["text", "raw", "in"], "format": {"text": "string", "raw": "bytes"}},
    )
    transform = compile_pipeline(spec)
    given = [Record(b"a b", topic_="text"), Record(b"\xff", topic_="raw"), Record(b'{"a": 1}'), Record(b"a b")]
    result = transform.run(given)
    assert [output[:2] for output in result.outputs] == [("t", b"a b"), ("b", b"\xff"), ("out", b'{"a":1}')]
    assert [failure.record for failure in result.failures] == [given[3]]


def test_route_all_with_formats() -> None:
    """One record, one value per format."""
    routes = [{"to": "text", "format": "string"}, {"to": "json"}]
    spec = pipeline([{"value": "a"}, {"route_all": routes}])
    result = compile_pipeline(spec).run([Record(b'{"a": "x"}')])
    assert [(output[0], output[1], output[6]) for output in result.outputs] == [("text", b"x", 0), ("json", b'"x"', 1)]


def test_types_that_are_known_spare_checks() -> None:
    """Behind a step that makes a type certain, expressions do not ask for it again; a step that may change the field ends that."""
    assert "if (r['n'] > 5) else" in body([{"set": {"n": "int(a)"}}, {"route": [{"when": "n > 5", "to": "x"}]}])
    for between in (
        {"cast": {"n": "string"}},
        {"drop": ["n"]},
        {"rename": {"n": "m"}},
        {"set": {"n.x": "1"}},
        {"value": "this"},
    ):
        assert "(r['n'] > 5)" not in body([{"set": {"n": "int(a)"}}, between, {"filter": "n > 5"}])
    schema = {"required": ["b", "i"], "properties": {"b": {"type": "boolean"}, "i": {"type": "integer"}}}
    code = body([{"validate": {"schema": schema}}, {"filter": "b && i < 5"}])
    assert "(r['b'] and" in code
    assert "(r['i'] < 5)" not in code
    for void in ({**schema, "$ref": "#"}, {**schema, "properties": {"b": {"type": "boolean", "$ref": "#/x"}}, "x": {}}):
        assert "(r['b'] and" not in body([{"validate": {"schema": void}}, {"filter": "b && i < 5"}])


def test_a_type_that_is_certainly_wrong_fails_each_record() -> None:
    """A condition on a field that is certain to be no bool compiles, and makes dead letters."""
    result = compile_pipeline(pipeline([{"set": {"n": "1"}}, {"filter": "n"}])).run([Record(b"{}")])
    assert [failure.message for failure in result.failures] == ["no such overload: expected a bool, found int"]


def test_digest_depends_on_what_steps_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of a schema's file, the source of a function's module, a salt by its hash; formats; but not the tests."""
    (tmp_path / "s.json").write_text('{"type": "object"}')
    (tmp_path / "some_module.py").write_text("def f(r):\n    return r\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    steps: list[Any] = [
        {"validate": {"file": "s.json"}},
        {"python": "some_module:f"},
        {"mask": {"fields": ["a"], "sha256": {"salt": "one"}}},
    ]

    def made(change: dict[int, Any] = {}, **more: Any) -> str:  # noqa: B006 - never changed
        data = {"name": "p", "source": {"topics": ["in"]}, "sink": {"topic": "out"}, **more}
        data["steps"] = [change.get(index, step) for index, step in enumerate(steps)]
        return digest(Pipeline.model_validate(data, context={"folder": tmp_path}))

    base = made()
    test = {"name": "t", "input": {"value": 1}, "filtered": True}
    assert base == made(tests=[test])
    assert base == made({0: {"validate": {"schema": {"type": "object"}}}})
    different = [
        made({2: {"mask": {"fields": ["a"], "sha256": {"salt": "two"}}}}),
        made({2: {"mask": {"fields": ["a"], "keep_last": 1}}}),
        made(source={"topics": ["in"], "key_format": "json"}),
        made(source={"topics": ["in"], "format": {"in": "json"}}),
    ]
    (tmp_path / "s.json").write_text('{"type": "object", "required": ["a"]}')
    different.append(made())
    (tmp_path / "some_module.py").write_text("def f(r):\n    return {}\n")
    different.append(made())
    assert len({base, *different}) == len(different) + 1


def test_salts_are_shown_nowhere() -> None:
    """Not in the generated source, not in the model's repr or dump, not in what the digest is made of."""
    spec = pipeline([{"mask": {"fields": ["a"], "sha256": {"salt": "hunter2"}}}])
    transform = compile_pipeline(spec)
    shown = [
        repr(spec),
        str(spec.model_dump()),
        spec.model_dump_json(),
        transform.source,
        str(spec.steps[0].fingerprint()),
    ]
    assert not [text for text in shown if "hunter2" in text]
    [output] = transform.run([Record(b'{"a": "x"}')]).outputs
    assert json.loads(output[1] or b"") == {"a": hashlib.sha256(b"hunter2x").hexdigest()}
