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
from transforms.failures import DECODE, ENCODE, MAX_OUTPUT_BYTES, Settler, no_object, too_many_bytes
from transforms.formats import decode_string, encode_bytes, encode_string
from transforms.records import Result, Transform
from transforms.steps import RouteAllStep, step_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transforms.formats import Format
    from transforms.spec import Pipeline

COMPILER_VERSION = 2
"""Part of every digest: raised whenever the same file would give other outputs than before."""

_WRITERS = {"json": "dumps(r)", "string": "encode_string(r)", "bytes": "encode_bytes(r)"}
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


def compile_pipeline(spec: Pipeline, lines: Mapping[int, int] = MappingProxyType({})) -> Transform:
    """Compiles a pipeline.

    `lines`: line in the pipeline file per index of a step, for `Failure.line`; 0 where it is not given.

    The `run` of the result takes any iterable of records and asks for no length: a caller that passes an iterator of a list
    can watch its progress from a signal handler by `__length_hint__()`. That handler may raise `TimeBudgetExceeded`: the
    record at hand becomes a failure (rule E9), the others are not touched.
    """
    code = Code(spec)
    code.begin(DECODE, 0)
    _decode(spec, code)
    for index, step in enumerate(spec.steps):
        code.begin(f"steps[{index}] {step_name(step)}", lines.get(index, 0))
        step.emit(code)
    code.begin(ENCODE, 0)
    _encode(spec, code, changed=code.changed or not _copies(spec))
    if code.several:
        code.end_loops()
        code.write("if made:", "    outputs.extend(made)", "else:", "    skip(record)")
    source, spans = _assemble(code)
    run = _load(spec, source, code, Settler(spans))
    return Transform(run=run, digest=digest(spec), topics=spec.topics, source=source)


def _decode(spec: Pipeline, code: Code) -> None:
    """Lines for tombstones, and for `r` where something needs it."""
    code.write("value = record.value()")
    decodes = bool(spec.steps) or not _copies(spec)
    if decodes or spec.tombstones == "drop":  # a copy forwards null like any value
        with code.block("if value is None:"):
            if spec.tombstones == "drop":
                code.write(*code.skip())
            else:
                code.tombstones()
    if code.several:
        code.write("made = []", *(["size = 0"] if code.explodes else []))
    if not decodes:
        return
    formats = spec.source.formats
    code.object = set(formats.values()) == {"json"}
    rest = formats.get(None, "json")
    word = "if"
    for kind in sorted(set(formats.values()) - {rest}):
        topics = tuple(topic for topic, of in formats.items() if of == kind)
        with code.block(f"{word} record.topic() in {topics!r}:"):
            _decode_as(code, kind)
        word = "elif"
    if word == "if":
        _decode_as(code, rest)
    else:
        with code.block("else:"):
            _decode_as(code, rest)


def _decode_as(code: Code, kind: Format) -> None:
    if kind == "json":
        code.write("r = loads(value)", "if type(r) is not dict:", "    raise no_object(r)")
    else:
        code.write("r = value" if kind == "bytes" else "r = decode_string(value)")


def _encode(spec: Pipeline, code: Code, *, changed: bool) -> None:
    """The outputs of a record, or of one element of it."""
    formats = sorted(set(spec.topic_formats.values()))
    value = _WRITERS[formats[0]] if changed else "value"
    if changed and code.several:
        # Several outputs may share one value; what differs by topic is made per topic.
        if len(formats) == 1:
            code.write(f"out = {value}")
        value = "out"
    if isinstance(spec.route, RouteAllStep):
        code.loop("for topic in topics:")
    if changed and len(formats) > 1:
        _encode_by_topic(spec, code, formats)
        value = "out"
    if code.explodes:
        code.write(f"size += len({value})", f"if size > {MAX_OUTPUT_BYTES}:", "    raise too_many_bytes()")
    code.append("topic" if spec.route else "SINK", value)


def _encode_by_topic(spec: Pipeline, code: Code, formats: list[Format]) -> None:
    word = "if"
    for kind in formats[1:]:
        topics = tuple(topic for topic, of in spec.topic_formats.items() if of == kind)
        code.write(f"{word} topic in {topics!r}:", f"    out = {_WRITERS[kind]}")
        word = "elif"
    code.write("else:", f"    out = {_WRITERS[formats[0]]}")


def _copies(spec: Pipeline) -> bool:
    """Whether values go out as they come in, as far as formats are concerned."""
    formats = {*spec.source.formats.values(), *spec.topic_formats.values()}
    return len(formats) == 1


def _assemble(code: Code) -> tuple[str, list[tuple[int, str, int]]]:
    head = "\n\n".join([*code.functions, _HEAD])
    before = head.count("\n") + 1
    spans = [(before + start, step, line) for start, step, line in code.spans]
    return head + "\n".join(code.lines) + "\n" + _TAIL, spans


def _load(spec: Pipeline, source: str, code: Code, settler: Settler) -> Any:
    namespace: dict[str, Any] = {
        **OPERATIONS,
        **code.constants.names,
        **code.helpers,
        "FALLBACK": FALLBACK,
        "Result": Result,
        "SINK": spec.sink.topic if spec.sink else None,
        "TimeBudgetExceeded": TimeBudgetExceeded,
        "decode_string": decode_string,
        "dumps": orjson.dumps,
        "encode_bytes": encode_bytes,
        "encode_string": encode_string,
        "loads": orjson.loads,
        "no_object": no_object,
        "settle": settler.settle,
        "too_many_bytes": too_many_bytes,
    }
    # The source consists of our own templates and of literals written by ascii(); nothing of the file gets in unquoted.
    exec(compile(source, f"<pipeline {spec.name}>", "exec"), namespace)  # noqa: S102
    return namespace["run"]


def digest(spec: Pipeline) -> str:
    """`sha256:<hex>` of what outputs depend on: steps, sink, tombstones, formats, what steps read from files, and this compiler.

    Of code in Python it knows the module that a step names, and what that imports from its own package (`python_sources`). A salt is
    in it by its hash.
    """
    data = {
        "compiler": COMPILER_VERSION,
        "sink": spec.sink.topic if spec.sink else None,
        "source": [spec.source.key_format, *spec.source.formats.items()],
        "formats": spec.topic_formats,
        "steps": [step.fingerprint() for step in spec.steps],
        "tombstones": spec.tombstones,
    }
    # Sorted lists of pairs would keep the order of the fields that `set` adds; JSON objects have none, but our bytes do.
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
