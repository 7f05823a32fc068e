"""The generated function while it is being written: lines of one record's work, and which step each line belongs to."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transforms.cel import Constants, Expression, compile_expression
from transforms.errors import CelSyntaxError
from transforms.failures import wrong_type
from transforms.metadata import METADATA
from transforms.steps import step_name
from transforms.steps.paths import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from transforms.cel.compile import Wanted
    from transforms.spec import Pipeline

INDENT = " " * 20
"""Of a record's work inside the generated function: see the template in compiler.py."""
_TYPES = frozenset({"bool", "int", "double", "string", "list", "map"})
"""Those of CEL that a stored value keeps."""


class Code:
    """What steps write into. Variables that they can use: `r`, what `this` is in expressions; `record`, its source.

    A step must leave `r` something that JSON can hold. It may change `r`, but no object inside of it in place: two fields, or two
    elements of `explode`, may hold the same one. Raising anything makes the record a dead letter.
    """

    def __init__(self, spec: Pipeline) -> None:
        steps = {step_name(step) for step in spec.steps}
        self.explodes = "explode" in steps
        """A record may have any number of outputs."""
        self.several = self.explodes or "route_all" in steps
        """Steps may make more than one output of a record."""
        self.binary = "bytes" in spec.topic_formats.values()
        """An output may be bytes."""
        self.lines: list[str] = []
        self.spans: list[tuple[int, str, int]] = []
        """(index of the first line, step, line in the pipeline file) in the order of the lines."""
        self.functions: list[str] = []
        """The exact forms of the expressions, `exact_0`, `exact_1`, ..."""
        self.constants = Constants()
        self.helpers: dict[str, Any] = {}
        self.changed = False
        """Whether a step so far has changed the record; if none has, the value is forwarded as it came."""
        self.types: dict[str, str] = {}
        """CEL types of fields that are certain to be there with that type: no expression has to check them."""
        self.object = False
        """Whether `r` is known to be a dict."""
        self.key, self.headers = "record.key()", "record.headers()"
        """What goes to the outputs: source of the bytes, and of the header list, as the steps so far have left them."""
        self.loops = 0
        self._topics = spec.topics
        self._key_format = spec.source.key_format
        self._known: set[str] = set()
        self._indent = INDENT
        self._versions = 0

    def begin(self, step: str, line: int) -> None:
        self.spans.append((len(self.lines), step, line))
        self.write(f"# {step}" + (f", line {line}" if line else ""))

    def write(self, *lines: str) -> None:
        self.lines.extend(self._indent + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A statement with a body, `if ...:`. Metadata that the body reads must be known before: see `prepare`."""
        self.write(head)
        outer, self._indent = self._indent, self._indent + "    "
        yield
        self._indent = outer

    def loop(self, head: str) -> None:
        """What follows, up to the output, is done for each turn of a `for ...:`."""
        self.write(head)
        self._indent += "    "
        self.loops += 1
        # A step inside may give them new values, which the next turn must not see.
        self._known -= {"key", "headers"}

    def end_loops(self) -> None:
        self._indent = INDENT
        self.loops = 0

    def use(self, helper: Callable[..., Any]) -> str:
        """Makes a function callable from the generated code. Returns its name there, which is its own."""
        name = helper.__name__
        assert self.helpers.setdefault(name, helper) is helper, f"two helpers of the name {name}"
        return name

    def version(self, name: str) -> str:
        """A new variable: a value of an outer loop is not overwritten by that of an inner one."""
        self._versions += 1
        return f"{name}_{self._versions}"

    def change(self, *paths: str) -> None:
        """Says which fields of `r` have, or may have, other values now; without any, that all may."""
        self.changed = True
        for name in [parts(path)[0] for path in paths] or list(self.types):
            self.types.pop(name, None)

    def know(self, path: str, expression: Expression) -> None:
        """A field has the value of an expression."""
        names = parts(path)
        if len(names) == 1 and expression.type in _TYPES:
            self.types[names[0]] = expression.type

    # Expressions

    def compile(self, text: str, wanted: Wanted) -> Expression:
        if not self.object:
            # In line, expressions take it that `r` is a dict of JSON. Where it may be text or bytes, only the exact operations ask.
            expression = compile_expression(text, "any" if wanted == "json" else wanted, self.constants)
            exact = f"storable({expression.exact})" if wanted == "json" else expression.exact
            return replace(expression, fast=exact, exact=exact)
        try:
            return compile_expression(text, wanted, self.constants, types=self.types)
        except CelSyntaxError:
            # Only what types tell can be wrong: the text was checked with the file. Then it is wrong for every record, and each
            # has its dead letter; the place in the file is for the linter to know.
            return compile_expression(text, wanted, self.constants)

    def need_object(self, step: str) -> None:
        """Lines that make sure that `r` is a dict, where it is not known yet."""
        if not self.object:
            self.write("if type(r) is not dict:", f"    raise {self.use(wrong_type)}({step!a}, r)")
            self.object = True

    def prepare(self, *expressions: Expression) -> None:
        """Lines that give the metadata which expressions read their variables: once per record, and only those."""
        wanted = frozenset[str]().union(*(expression.metadata for expression in expressions))
        for name in sorted(wanted - self._known):
            self._known.add(name)
            source = {"key": self.key, "headers": self.headers}.get(name, f"record.{name}()")
            helper = METADATA[f"key_{self._key_format}" if name == "key" else name]
            self.write(f"m_{name} = {self.use(helper)}({source})" if helper else f"m_{name} = {source}")

    def exact_call(self, expression: Expression) -> str:
        name = f"exact_{len(self.functions)}"
        arguments = ", ".join(["r", *(f"m_{name}" for name in sorted(expression.metadata))])
        self.functions.append(f"def {name}({arguments}):\n    return {expression.exact}\n")
        return f"{name}({arguments})"

    def evaluate(self, values: Sequence[tuple[str, Expression]]) -> None:
        """Lines that put the values of expressions into local variables; all of them see the same record."""
        if not values:
            return
        self.prepare(*(expression for _, expression in values))
        if all(expression.fast == expression.exact for _, expression in values):
            self.write(*(f"{name} = {expression.exact}" for name, expression in values))
            return
        self.attempt(
            [f"{name} = {expression.fast}" for name, expression in values],
            [f"{name} = {self.exact_call(expression)}" for name, expression in values],
        )

    def attempt(self, fast: Sequence[str], exact: Sequence[str]) -> None:
        """The fast form, and the exact one where it raised. No handler is entered, so no time is spent, in the usual case."""
        self.write("try:", *(f"    {line}" for line in fast))
        self.write("except FALLBACK:", *(f"    {line}" for line in exact))

    def unless(self, condition: str, *lines: str) -> None:
        """Lines that are run where a condition is not true. They stand twice, so that its value needs no variable: a filter is a
        quarter faster that way. None of them may raise what `FALLBACK` names.
        """
        expression = self.compile(condition, "bool")
        self.prepare(expression)
        body = [f"    {line}" for line in lines]
        self.attempt(
            [f"if not {expression.fast}:", *body],
            [f"if not {self.exact_call(expression)}:", *body],
        )

    # What becomes of a record

    def set_key(self, source: str) -> None:
        self.key = self._changed("key", source)

    def set_headers(self, source: str) -> None:
        self.headers = self._changed("headers", source)

    def _changed(self, name: str, source: str) -> str:
        """Expressions of later steps see the new value."""
        variable = self.version(name)
        self.write(f"{variable} = {source}")
        self._known.discard(name)
        return variable

    def skip(self) -> list[str]:
        """Lines for no output of this record, or of this element of it. Whether a record had any is asked behind the last loop."""
        return ["continue"] if self.loops else ["skip(record)", "continue"]

    def output(self, topic: str, value: str, index: str) -> str:
        """Source of one output (`records.Output`): the only place that knows its shape."""
        return f"({topic}, {value}, {self.key}, {self.headers}, record.timestamp()[1], record, {index})"

    def append(self, topic: str, value: str) -> None:
        """One output. Those of a record that may have several are collected in `made`, and given together (rule T5)."""
        if self.several:
            self.write(f"made.append({self.output(topic, value, 'len(made)')})")
        else:
            self.write(f"append({self.output(topic, value, '0')})")

    def tombstones(self) -> None:
        """A null value for every topic that outputs can go to, and the end of this record, or of this element of it."""
        base = "len(made) + " if self.loops else ""
        copies = [self.output(ascii(topic), "None", f"{base}{index}") for index, topic in enumerate(self._topics)]
        # One operation: an exception from a timer finds all of them or none (rule T5).
        target = "made" if self.loops else "outputs"
        self.write(f"{target}.extend((", *(f"    {copy}," for copy in copies), "))", "continue")
