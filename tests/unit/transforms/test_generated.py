"""The generated function against a naive interpreter of the steps, over generated pipelines and records."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.records import Record
from transforms import checks
from transforms.compiler import compile_pipeline
from transforms.spec import Pipeline

NAMES = ["a", "b", "c", "d e"]
FIELD = st.sampled_from(NAMES)
PATH = FIELD | st.tuples(FIELD, FIELD).map(".".join)
SCALAR = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, -1.5, "x", "7", "[1]", "true"])
INNER = st.dictionaries(FIELD, SCALAR, max_size=3) | st.lists(SCALAR, max_size=3)
RECORD = st.dictionaries(FIELD, SCALAR | INNER, max_size=4)
KEY = st.sampled_from([None, b"k", b"key 2"])


class FailedError(Exception):
    """A record that a step cannot process."""


class DeletedError(Exception):
    """A record that has become a tombstone."""


class State:
    """One record, or one element of it."""

    def __init__(self, record: Any, key: bytes | None) -> None:
        self.record = record
        self.key = key
        self.headers: list[tuple[str, bytes | None]] = []


def _value(state: State, text: str) -> Any:
    """The few expressions that the strategies below make, in the plainest way."""
    left, _, right = text.partition(" + ")
    if right:
        one, other = _value(state, left), json.loads(right)
        if type(one) is not int:
            raise FailedError
        return one + other
    if text == "key":
        return None if state.key is None else state.key.decode()
    if text == "this":
        return state.record
    if text.startswith("this["):
        if type(state.record) is not dict or json.loads(text[5:-1]) not in state.record:
            raise FailedError
        return state.record[json.loads(text[5:-1])]
    return json.loads(text)


def _holds(state: State, text: str) -> bool:
    left, sign, right = text.rpartition(" == ") if " == " in text else text.rpartition(" != ")
    one, other = _value(state, left), json.loads(right)
    numbers = all(type(value) in (int, float) for value in (one, other))
    equal = one == other and (numbers or type(one) is type(other))
    return equal if sign == " == " else not equal


def _text(value: Any) -> bytes | None:
    return None if value is None else value.encode() if isinstance(value, str) else orjson.dumps(value)


def _get(record: dict[str, Any], path: str) -> Any:
    value: Any = record
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _put(record: dict[str, Any], path: str, value: Any) -> None:
    *way, last = path.split(".")
    for name in way:
        if record.get(name) is None:
            record[name] = {}
        record = record[name]
        if not isinstance(record, dict):
            raise FailedError
    record[last] = value


def _take(record: dict[str, Any], path: str) -> Any:
    *way, last = path.split(".")
    for name in way:
        record = record.get(name, {}) if isinstance(record, dict) else {}
    if not isinstance(record, dict) or last not in record:
        raise FailedError
    return record.pop(last)


def _cast(value: Any, kind: str) -> Any:
    if kind == "string":
        if isinstance(value, dict | list):
            raise FailedError
        return json.dumps(value) if not isinstance(value, str) else value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FailedError
    try:
        return int(value) if kind == "int" else float(value)
    except ValueError:
        raise FailedError from None


class Steps:
    """A method per step: from one state to those that go on."""

    def filter(self, state: State, body: str) -> list[State]:
        return [state] if _holds(state, body) else []

    def assert_(self, state: State, body: dict[str, str]) -> list[State]:
        if not _holds(state, body["that"]):
            raise FailedError
        return [state]

    def tombstone(self, state: State, body: str) -> list[State]:
        if _holds(state, body):
            raise DeletedError
        return [state]

    def key(self, state: State, body: str) -> list[State]:
        state.key = _text(_value(state, body))
        return [state]

    def headers(self, state: State, body: dict[str, Any]) -> list[State]:
        new = [(name, _text(_value(state, text))) for name, text in body["set"].items()]
        gone = {*body["set"], *body["remove"]}
        state.headers = [header for header in state.headers if header[0] not in gone] + new
        return [state]

    def set(self, state: State, body: dict[str, str]) -> list[State]:
        for path, value in [(path, deepcopy(_value(state, text))) for path, text in body.items()]:
            _put(state.record, path, value)
        return [state]

    def default(self, state: State, body: dict[str, str]) -> list[State]:
        for path, text in body.items():
            if _get(state.record, path) is None:
                _put(state.record, path, deepcopy(_value(state, text)))
        return [state]

    def rename(self, state: State, body: dict[str, str]) -> list[State]:
        taken = [(new, _take(state.record, old)) for old, new in body.items()]
        for new, value in taken:
            _put(state.record, new, value)
        return [state]

    def drop(self, state: State, body: list[str]) -> list[State]:
        for path in body:
            with suppress(FailedError):
                _take(state.record, path)
        return [state]

    def keep(self, state: State, body: list[str]) -> list[State]:
        def project(record: dict[str, Any], before: str) -> dict[str, Any]:
            result = {}
            for name, value in record.items():
                path = before + name
                if path in body:
                    result[name] = value
                elif isinstance(value, dict) and any(wanted.startswith(path + ".") for wanted in body):
                    result[name] = project(value, path + ".")
            return result

        state.record = project(state.record, "")
        return [state]

    def cast(self, state: State, body: dict[str, str]) -> list[State]:
        for path, kind in body.items():
            value = _get(state.record, path)
            if value is not None:
                _put(state.record, path, _cast(value, kind))
        return [state]

    def mask(self, state: State, body: dict[str, Any]) -> list[State]:
        for path in body["fields"]:
            value = _get(state.record, path)
            if value is not None:
                _put(state.record, path, self._masked(_text(value) or b"", body))
        return [state]

    @staticmethod
    def _masked(text: bytes, body: dict[str, Any]) -> str:
        if "sha256" in body:
            return hashlib.sha256(body["sha256"]["salt"].encode() + text).hexdigest()
        count, word = body["keep_last"], text.decode()
        return "*" * len(word) if len(word) <= count else "*" * (len(word) - count) + word[len(word) - count :]

    def parse_json(self, state: State, body: list[str]) -> list[State]:
        for path in body:
            value = _get(state.record, path)
            if value is not None:
                if not isinstance(value, str):
                    raise FailedError
                try:
                    _put(state.record, path, json.loads(value))
                except ValueError:
                    raise FailedError from None
        return [state]

    def flatten(self, state: State, body: dict[str, Any]) -> list[State]:
        pairs: list[tuple[str, Any]] = []
        for name, value in state.record.items():
            inner = value.items() if isinstance(value, dict) else None
            pairs += [(name, value)] if inner is None else [(f"{name}_{key}", item) for key, item in inner]
        if len(dict(pairs)) < len(pairs):
            raise FailedError
        state.record = dict(pairs)
        return [state]

    def value(self, state: State, body: str) -> list[State]:
        state.record = deepcopy(_value(state, body))
        return [state]

    def explode(self, state: State, body: dict[str, str]) -> list[State]:
        values = _get(state.record, body["field"])
        if values is None:
            return []
        if not isinstance(values, list):
            raise FailedError
        states = []
        for number, value in enumerate(values):
            new = deepcopy(state)
            if "into" in body and body["into"] != body["field"]:
                _take(new.record, body["field"])
            _put(new.record, body.get("into", body["field"]), value)
            if "index" in body:
                _put(new.record, body["index"], number)
            states.append(new)
        return states


NEED_OBJECT = {"set", "default", "rename", "drop", "keep", "cast", "mask", "parse_json", "flatten", "explode"}


def _topics(state: State, step: dict[str, Any]) -> list[str]:
    [(name, routes)] = step.items()
    taken = []
    for route in routes:
        if "when" not in route or _holds(state, route["when"]):
            taken.append(route["to"])
            if name == "route":
                break
    return taken or ["out"]


class Naive:
    """Runs one record: `outputs` as (topic, value, key, headers), or the step in which it `failed`."""

    def __init__(self, steps: list[Any], record: Record, topics: list[str]) -> None:
        self.outputs: list[tuple[str, Any, bytes | None, list[Any]]] = []
        self.failed: str | None = None
        self._steps, self._topics, self._at = steps, topics, 0
        try:
            self._run(State(json.loads(record.content or b""), record.key_), 0)
        except FailedError:
            step = next(iter(steps[self._at]))
            self.failed, self.outputs = f"steps[{self._at}] {step}", []

    def _run(self, state: State, at: int) -> None:
        self._at = at
        if at == len(self._steps) or next(iter(self._steps[at])).startswith("route"):
            routing = self._steps[at] if at < len(self._steps) else {"route": []}
            for topic in _topics(state, routing):
                self.outputs.append((topic, state.record, state.key, state.headers))
            return
        [(name, body)] = self._steps[at].items()
        if name in NEED_OBJECT and not isinstance(state.record, dict):
            raise FailedError
        try:
            states = getattr(Steps(), "assert_" if name == "assert" else name)(state, body)
        except DeletedError:
            self.outputs += [(topic, None, state.key, state.headers) for topic in self._topics]
            return
        for each in states:
            self._run(each, at + 1)


def _literal(value: Any) -> str:
    return json.dumps(value)


READ = FIELD.map(lambda name: f"this[{json.dumps(name)}]")
SUM = st.tuples(READ, st.integers(0, 3)).map(lambda pair: f"{pair[0]} + {pair[1]}")
VALUE = READ | SCALAR.map(_literal) | SUM | st.sampled_from(["key", "this"])
CONDITION = st.tuples(READ | st.just("key"), st.sampled_from(["==", "!="]), SCALAR.map(_literal)).map(" ".join)
SALT = {"sha256": {"salt": "s"}}
ENDS: dict[str, Any] = {"name": "p", "source": {"topics": ["in"]}, "sink": {"topic": "out"}}
STEP = st.one_of(
    st.fixed_dictionaries({"filter": CONDITION}),
    st.fixed_dictionaries({"assert": st.fixed_dictionaries({"that": CONDITION})}),
    st.fixed_dictionaries({"tombstone": CONDITION}),
    st.fixed_dictionaries({"key": READ | st.sampled_from(["key", "this", "null"])}),
    st.fixed_dictionaries(
        {
            "headers": st.fixed_dictionaries(
                {"set": st.dictionaries(FIELD, VALUE, min_size=1, max_size=2), "remove": st.lists(FIELD, max_size=1)}
            )
        }
    ),
    st.fixed_dictionaries({"set": st.dictionaries(PATH, VALUE, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"default": st.dictionaries(PATH, VALUE, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"rename": st.dictionaries(PATH, PATH, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"drop": st.lists(PATH, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"keep": st.lists(PATH, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"cast": st.dictionaries(PATH, st.sampled_from(["int", "double", "string"]), min_size=1)}),
    st.fixed_dictionaries({"parse_json": st.lists(PATH, min_size=1, max_size=2)}),
    st.fixed_dictionaries(
        {
            "mask": st.lists(PATH, min_size=1).flatmap(
                lambda p: st.sampled_from([{"fields": p, **SALT}, {"fields": p, "keep_last": 1}])
            )
        }
    ),
    st.just({"flatten": {}}),
    st.fixed_dictionaries({"value": READ | st.just("this")}),
    st.fixed_dictionaries(
        {"explode": st.fixed_dictionaries({"field": PATH}, optional={"into": FIELD, "index": FIELD})}
    ),
).filter(lambda step: checks.whole_file({**ENDS, "steps": [step]}) == [])
"""Without those that overwrite what they have just written, which are refused."""
ROUTE = st.fixed_dictionaries({"when": CONDITION, "to": st.sampled_from(["x", "y"])})
ROUTES = st.lists(ROUTE, max_size=2, unique_by=lambda route: str(route["to"]))
ROUTING = st.tuples(
    st.sampled_from(["route", "route_all"]),
    ROUTES.flatmap(lambda routes: st.sampled_from([routes, [*routes, {"to": "rest"}]])),
)


def _ordered(value: Any) -> Any:
    """The same with the order of fields in it."""
    if isinstance(value, dict):
        return [(name, _ordered(item)) for name, item in value.items()]
    return [_ordered(item) for item in value] if isinstance(value, list) else value


@given(st.lists(STEP, max_size=5), ROUTING, st.lists(st.tuples(RECORD, KEY), max_size=5))
@settings(max_examples=300, deadline=None)
def test_generated_code_equals_a_naive_interpreter(steps: list[Any], routing: Any, inputs: list[Any]) -> None:
    """Same topics, keys, headers, same fields in the same order, same failures in the same steps, for any pipeline and records."""
    kind, routes = routing
    steps = [*steps, {kind: routes}] if routes else steps
    spec = Pipeline.model_validate({**ENDS, "steps": steps})
    records = [Record(orjson.dumps(value), key_=key) for value, key in inputs]
    result = compile_pipeline(spec).run(records)
    expected = [Naive(steps, record, list(spec.topics)) for record in records]
    made = [
        (record, index, topic, _ordered(value), key, headers or None)
        for record, naive in zip(records, expected, strict=True)
        for index, (topic, value, key, headers) in enumerate(naive.outputs)
    ]
    found = [
        (record, index, topic, None if value is None else _ordered(json.loads(value)), key, headers)
        for topic, value, key, headers, _, record, index in result.outputs
    ]
    assert [(*output[:-1], output[-1] or None) for output in found] == made
    assert [naive.failed for naive in expected if naive.failed] == [failure.step for failure in result.failures]
    assert sum(not naive.failed and not naive.outputs for naive in expected) == result.filtered
