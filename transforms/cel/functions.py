"""Operators, and the functions of the language itself; `names.py` has all functions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """What the parser and the writers know of a function. A table maps the name in CEL to it; the name of a plain function
    may have a namespace: "math.greatest", "base64.encode". The Python function takes positional arguments, the receiver
    first, and raises `CelError` and nothing else.
    """

    runtime: str
    """Name of the Python function, in the module whose table this stands in, and in generated code; unique among all."""
    result: str
    """The CEL type of every result: null bool int uint double string bytes list map timestamp duration type optional; "dyn"
    where it depends on the arguments."""
    arity: int
    """Arguments, the receiver included; the fewest, where there may be more."""
    most: int | None = None
    """The most arguments, `MANY` for any number; None: `arity`."""
    method: bool = False
    """Callable as `x.f(y)`, with x as the first argument."""
    plain: bool = False
    """Callable as `f(x, y)`."""

    def takes(self, count: int) -> bool:
        return self.arity <= count <= (self.arity if self.most is None else self.most)


MANY = 1_000_000


OPERATORS = {
    "+": Function("add", "dyn", 2),
    "-": Function("subtract", "dyn", 2),
    "*": Function("multiply", "dyn", 2),
    "/": Function("divide", "dyn", 2),
    "%": Function("modulo", "dyn", 2),
    "neg": Function("negate", "dyn", 1),
    "not": Function("not_", "bool", 1),
    "==": Function("eq", "bool", 2),
    "!=": Function("ne", "bool", 2),
    "<": Function("lt", "bool", 2),
    "<=": Function("le", "bool", 2),
    ">": Function("gt", "bool", 2),
    ">=": Function("ge", "bool", 2),
    "in": Function("in_", "bool", 2),
    "bool?": Function("truth", "bool", 1),
}
"""What the grammar has signs for, and "bool?": the argument, which must be a bool, as a step demands it."""

FUNCTIONS = {
    "size": Function("size", "int", 1, method=True, plain=True),
    "matches": Function("matches", "bool", 2, method=True, plain=True),
    "contains": Function("contains", "bool", 2, method=True),
    "startsWith": Function("starts_with", "bool", 2, method=True),
    "endsWith": Function("ends_with", "bool", 2, method=True),
    "int": Function("to_int", "int", 1, plain=True),
    "uint": Function("to_uint", "uint", 1, plain=True),
    "double": Function("to_double", "double", 1, plain=True),
    "string": Function("to_string", "string", 1, plain=True),
    "bool": Function("to_bool", "bool", 1, plain=True),
    "bytes": Function("to_bytes", "bytes", 1, plain=True),
    "type": Function("type_", "type", 1, plain=True),
    "dyn": Function("dyn", "dyn", 1, plain=True),
}

RESERVED = frozenset(
    """
    as break const continue else false for function if import in let loop package namespace null return true var void while
    """.split()  # noqa: SIM905
)
"""Words that CEL reserves: they cannot be bare names (langdef.md, "Syntax")."""
