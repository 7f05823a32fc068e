"""The generated function while it is being written: lines of one record's work, and which step each line belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from transforms.cel import Constants, Expression, compile_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

INDENT = " " * 20
"""Of a record's work inside the generated function: see the template in compiler.py."""


class Code:
    """What steps write into. Variables that they can use: `r`, the decoded record, a dict of this record's own; `record`,
    its source. A step must leave `r` a dict that JSON can hold. Raising anything makes the record a dead letter.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.spans: list[tuple[int, str, int]] = []
        """(index of the first line, step, line in the pipeline file) in the order of the lines."""
        self.functions: list[str] = []
        """The exact forms of the expressions, `exact_0`, `exact_1`, ..."""
        self.constants = Constants()
        self.changed = False
        """Whether a step so far has changed the record; if none has, the value is forwarded as it came."""

    def begin(self, step: str, line: int) -> None:
        self.spans.append((len(self.lines), step, line))
        self.write(f"# {step}" + (f", line {line}" if line else ""))

    def write(self, *lines: str) -> None:
        self.lines.extend(INDENT + line for line in lines)

    def exact_call(self, expression: Expression) -> str:
        name = f"exact_{len(self.functions)}"
        self.functions.append(f"def {name}(r):\n    return {expression.exact}\n")
        return f"{name}(r)"

    def compile(self, text: str, wanted: Literal["bool", "json"]) -> Expression:
        return compile_expression(text, wanted, self.constants)

    def evaluate(self, values: Sequence[tuple[str, Expression]]) -> None:
        """Lines that put the values of expressions into local variables; all of them see the same record."""
        self.attempt(
            [f"{name} = {expression.fast}" for name, expression in values],
            [f"{name} = {self.exact_call(expression)}" for name, expression in values],
        )

    def attempt(self, fast: Sequence[str], exact: Sequence[str]) -> None:
        """The fast form, and the exact one where it raised. No handler is entered, so no time is spent, in the usual case."""
        self.write("try:", *(f"    {line}" for line in fast))
        self.write("except FALLBACK:", *(f"    {line}" for line in exact))
