"""The generated function against a naive interpreter of the steps, over generated pipelines and records."""

from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.records import Record
from transforms.compiler import compile_pipeline
from transforms.spec import Pipeline

NAMES = ["a", "b", "c", "d e"]
FIELD = st.sampled_from(NAMES)
SCALAR = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, -1.5, "x", "y"])
RECORD = st.dictionaries(FIELD, SCALAR, max_size=4)


def _value(record: dict[str, Any], text: str) -> Any:
    """The few expressions that the strategies below make, in the plainest way."""
    left, _, right = text.partition(" + ")
    if right:
        one, other = _value(record, left), json.loads(right)
        if type(one) is not int:
            raise TypeError
        return one + other
    return record[json.loads(text[5:-1])] if text.startswith("this[") else json.loads(text)


def _holds(record: dict[str, Any], text: str) -> bool:
    left, sign, right = text.rpartition(" == ") if " == " in text else text.rpartition(" != ")
    one, other = _value(record, left), json.loads(right)
    numbers = all(type(value) in (int, float) for value in (one, other))
    equal = one == other and (numbers or type(one) is type(other))
    return equal if sign == " == " else not equal


def naive(steps: list[Any], value: bytes) -> tuple[str, Any]:
    """("filtered", None), ("failed", step) or (topic, record)."""
    record = json.loads(value)
    for index, step in enumerate(steps):
        [(name, body)] = step.items()
        try:
            if name == "filter" and not _holds(record, body):
                return "filtered", None
            if name == "set":
                values = {field: _value(record, text) for field, text in body.items()}
                record = {**record, **values}
            elif name == "rename":
                taken = [(new, record[old]) for old, new in body.items()]
                record = {field: value for field, value in record.items() if field not in body}
                for new, value_ in taken:
                    record[new] = value_
            elif name == "drop":
                record = {field: value for field, value in record.items() if field not in body}
            elif name == "keep":
                record = {field: value for field, value in record.items() if field in body}
            elif name == "route":
                for route in body:
                    if "when" not in route or _holds(record, route["when"]):
                        return route["to"], record
        except (KeyError, TypeError):
            return "failed", f"steps[{index}] {name}"
    return "out", record


def _literal(value: Any) -> str:
    return json.dumps(value)


READ = FIELD.map(lambda name: f"this[{json.dumps(name)}]")
VALUE = READ | SCALAR.map(_literal) | st.tuples(READ, st.integers(0, 3)).map(lambda pair: f"{pair[0]} + {pair[1]}")
CONDITION = st.tuples(READ, st.sampled_from(["==", "!="]), SCALAR.map(_literal)).map(" ".join)
ROUTE = st.fixed_dictionaries({"when": CONDITION, "to": st.sampled_from(["x", "y"])})
STEP = st.one_of(
    st.fixed_dictionaries({"filter": CONDITION}),
    st.fixed_dictionaries({"set": st.dictionaries(FIELD, VALUE, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"rename": st.dictionaries(FIELD, FIELD, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"drop": st.lists(FIELD, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"keep": st.lists(FIELD, min_size=1, max_size=3)}),
)
ROUTING = st.lists(ROUTE, max_size=2).flatmap(lambda routes: st.sampled_from([routes, [*routes, {"to": "rest"}]]))


@given(st.lists(STEP, max_size=4), ROUTING, st.lists(RECORD, max_size=6))
@settings(max_examples=250, deadline=None)
def test_generated_code_equals_a_naive_interpreter(steps: list[Any], routes: list[Any], inputs: list[Any]) -> None:
    """Same topics, same fields in the same order, same failures in the same steps, for any pipeline and records."""
    steps = [*steps, {"route": routes}] if routes else steps
    spec = Pipeline.model_validate(
        {"name": "p", "source": {"topics": ["in"]}, "sink": {"topic": "out"}, "steps": steps}
    )
    records = [Record(orjson.dumps(value)) for value in inputs]
    result = compile_pipeline(spec).run(records)
    expected = [naive(steps, record.value_ or b"") for record in records]
    made = [(topic, list(record.items())) for topic, record in expected if topic not in ("filtered", "failed")]
    assert made == [(output[0], list(json.loads(output[1] or b"").items())) for output in result.outputs]
    assert [step for kind, step in expected if kind == "failed"] == [failure.step for failure in result.failures]
    assert sum(kind == "filtered" for kind, _ in expected) == result.filtered
