"""A pipeline -> one generated Python function for a run of records.

There is no dispatch per record and step: the steps stand one after the other in the body of one loop, and a record that a
filter rejects pays for nothing behind it. Which step failed is read off the traceback's line number, so that it costs nothing
while nothing fails.
"""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from transforms.cel import FALLBACK
from transforms.cel.namespace import OPERATIONS
from transforms.code import Code
from transforms.errors import TimeBudgetExceeded
from transforms.failures import DECODE, ENCODE, Settler, no_object, take
from transforms.records import Result, Transform
from transforms.steps import step_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transforms.spec import Pipeline

COMPILER_VERSION = 1
"""Part of every digest: raised whenever the same file would give other outputs than before."""

_HEAD = """\
def run(records):
    outputs = []
    failures = []
    filtered = []
    record = None
    append = outputs.append
    skip = filtered.append
    iterator = iter(records)
    while True:
        try:
            for record in iterator:
                try:
"""
# Every record is settled by one operation: its outputs are appended, or itself to `filtered`, or its failure to `failures`.
# A counter of filtered records would be a little cheaper, but "counted" and "marked as settled" would be two operations.
# TimeBudgetExceeded comes from a timer, at any bytecode. Inside the inner `try` it is an error like others, except that the
# record may be settled already. CPython 3.11 also looks for signals at the jump back to `for`, which is outside: then the
# record is settled, or its failure was just being noted; the loop goes on where it was, as the iterator is kept.
_TAIL = """\
                except Exception as error:
                    if not (filtered and filtered[-1] is record):
                        settle(outputs, failures, record, error)
            return Result(outputs, failures, len(filtered))
        except TimeBudgetExceeded as error:
            if not (
                record is None
                or (filtered and filtered[-1] is record)
                or (outputs and outputs[-1][5] is record)
                or (failures and failures[-1].record is record)
            ):
                settle(outputs, failures, record, error.__context__ or error)
"""
_KEPT = "record.key(), record.headers(), record.timestamp()[1], record"


def compile_pipeline(spec: Pipeline, lines: Mapping[int, int] = MappingProxyType({})) -> Transform:
    """Compiles a pipeline.

    `lines`: line in the pipeline file per index of a step, for `Failure.line`; 0 where it is not given.

    The `run` of the result takes any iterable of records and asks for no length: a caller that passes an iterator of a list
    can watch its progress from a signal handler by `__length_hint__()`. That handler may raise `TimeBudgetExceeded`: the
    record at hand becomes a failure (rule E9), the others are not touched.
    """
    code = Code()
    code.begin(DECODE, 0)
    _tombstones(spec, code)
    if spec.steps:
        code.write("r = loads(value)", "if type(r) is not dict:", "    raise no_object(r)")
    for index, step in enumerate(spec.steps):
        code.begin(f"steps[{index}] {step_name(step)}", lines.get(index, 0))
        step.emit(code)
    code.begin(ENCODE, 0)
    topic = "topic" if spec.route else "SINK"
    value = "dumps(r)" if code.changed else "value"
    code.write(f"append(({topic}, {value}, {_KEPT}, 0))")
    source, spans = _assemble(code)
    run = _load(spec, source, code, Settler(spans))
    return Transform(run=run, digest=digest(spec), topics=spec.topics, source=source)


def _tombstones(spec: Pipeline, code: Code) -> None:
    code.write("value = record.value()")
    if not spec.steps and spec.tombstones == "forward":
        return  # a copy forwards null like any value
    code.write("if value is None:")
    if spec.tombstones == "drop":
        code.write("    skip(record)", "    continue")
        return
    # One operation: an exception from a timer finds all of them or none (rule T5).
    copies = (f"({topic!r}, None, {_KEPT}, {index})," for index, topic in enumerate(spec.topics))
    code.write("    outputs.extend((", *(f"        {copy}" for copy in copies), "    ))", "    continue")


def _assemble(code: Code) -> tuple[str, list[tuple[int, str, int]]]:
    head = "\n\n".join([*code.functions, _HEAD])
    before = head.count("\n") + 1
    spans = [(before + start, step, line) for start, step, line in code.spans]
    return head + "\n".join(code.lines) + "\n" + _TAIL, spans


def _load(spec: Pipeline, source: str, code: Code, settler: Settler) -> Any:
    namespace: dict[str, Any] = {
        **OPERATIONS,
        **code.constants.names,
        "FALLBACK": FALLBACK,
        "Result": Result,
        "SINK": spec.sink.topic if spec.sink else None,
        "TimeBudgetExceeded": TimeBudgetExceeded,
        "dumps": orjson.dumps,
        "loads": orjson.loads,
        "no_object": no_object,
        "settle": settler.settle,
        "take": take,
    }
    # The source consists of our own templates and of literals written by ascii(); nothing of the file gets in unquoted.
    exec(compile(source, f"<pipeline {spec.name}>", "exec"), namespace)  # noqa: S102
    return namespace["run"]


def digest(spec: Pipeline) -> str:
    """`sha256:<hex>` of what outputs depend on: steps, sink, tombstones, and this compiler."""
    data = {
        "compiler": COMPILER_VERSION,
        "sink": spec.sink.topic if spec.sink else None,
        "steps": [step.model_dump() for step in spec.steps],
        "tombstones": spec.tombstones,
    }
    # Sorted lists of pairs would keep the order of the fields that `set` adds; JSON objects have none, but our bytes do.
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
