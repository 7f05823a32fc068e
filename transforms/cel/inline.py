"""Operators and functions in line, for the types they usually have; see the contract in `fast.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from transforms.cel import functions
from transforms.cel.literals import INT_MAX, INT_MIN
from transforms.cel.text import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transforms.cel.constants import Constants

Temporary: TypeAlias = "Callable[[], str]"
Inlined: TypeAlias = "tuple[str, str] | None"
"""(source, CEL type), or None where the exact operation is called."""


class Operand(Protocol):
    """`fast.Code`, as it is seen from here."""

    @property
    def text(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def atom(self) -> bool: ...
    @property
    def value(self) -> object: ...


_NUMERIC = ("int", "double")


def call(temporary: Temporary, constants: Constants, function: str, args: Sequence[Operand]) -> tuple[str, str]:
    """(source, CEL type) of an operator or function; every argument is evaluated exactly once."""
    exact = functions.ALL[function]
    inlined: Inlined = None
    if function in ("+", "-", "*", "/"):
        inlined = _arithmetic(temporary, function, args[0], args[1])
    elif function in ("==", "!="):
        inlined = _equality(temporary, function, args[0], args[1])
    elif function in ("<", "<=", ">", ">="):
        inlined = _order(temporary, function, args[0], args[1])
    elif function in ("startsWith", "endsWith", "contains", "matches", "in"):
        inlined = _text(temporary, constants, function, args)
    elif function in ("int", "double", "string"):
        inlined = _conversion(temporary, function, args[0])
    return inlined or (f"{exact.runtime}({', '.join(arg.text for arg in args)})", exact.result)


def _arithmetic(temporary: Temporary, sign: str, left: Operand, right: Operand) -> Inlined:  # noqa: PLR0911 - one per case
    types = {left.type, right.type}
    exact = functions.OPERATORS[sign].runtime
    divides = sign == "/"
    if divides and (right.type == "int" or not right.value):
        return None  # the divisor may be zero, or Python's integer division would round the other way
    if types == {"double"}:
        return f"({left.text} {sign} {right.text})", "double"
    if types in ({"string"}, {"string", "dyn"}) and sign == "+":
        return f"({left.text} + {right.text})", "string"
    if types == {"int"}:
        kept = temporary()
        return (
            f"({kept} if {INT_MIN} <= ({kept} := {left.text} {sign} {right.text}) <= {INT_MAX} else add({kept}, 0))",
            "int",
        )
    if types == {"double", "dyn"} and (left.atom or right.atom):
        kept = temporary()
        test = f"type({kept} := {right.text if left.atom else left.text}) is float"
        one, two = (left.text, kept) if left.atom else (kept, right.text)
        return f"({one} {sign} {two} if {test} else {exact}({one}, {two}))", "double"
    if types == {"int", "dyn"} and (left.atom or right.atom):
        kept, result = temporary(), temporary()
        test = f"type({kept} := {right.text if left.atom else left.text}) is int"
        one, two = (left.text, kept) if left.atom else (kept, right.text)
        bounds = f"{INT_MIN} <= ({result} := {one} {sign} {two}) <= {INT_MAX}"
        return f"({result} if {test} and {bounds} else {exact}({one}, {two}))", "int"
    if types <= {"double", "dyn"} and not divides:
        one, two = temporary(), temporary()
        test = f"type({one} := {left.text}) is type({two} := {right.text}) is float"
        return f"({one} {sign} {two} if {test} else {exact}({one}, {two}))", "double" if "double" in types else "dyn"
    return None


def _equality(temporary: Temporary, sign: str, left: Operand, right: Operand) -> Inlined:  # noqa: PLR0911 - one per case
    types = (left.type, right.type)
    if left.atom and not right.atom:
        left, right = right, left  # equality is symmetric, and only one operand is evaluated
    if right.atom and right.type == "null":
        return f"({left.text} {'is' if sign == '==' else 'is not'} None)", "bool"
    if right.atom and right.type == "bool":
        return f"({left.text} {'is' if sign == '==' else 'is not'} {right.text})", "bool"
    if "string" in types or (left.type in _NUMERIC and right.type in _NUMERIC) or types == ("bool", "bool"):
        return f"({left.text} {sign} {right.text})", "bool"
    if right.atom and right.type in _NUMERIC:
        if right.value not in (0, 1):
            return f"({left.text} {sign} {right.text})", "bool"
        kept = temporary()
        same = f"({kept} := {left.text}) == {right.text} and {kept} is not {bool(right.value)}"
        return (f"({same})" if sign == "==" else f"(not ({same}))"), "bool"
    if types == ("dyn", "dyn"):
        one, two = temporary(), temporary()
        test = f"type({one} := {left.text}) is type({two} := {right.text}) in SCALARS"
        return f"({one} {sign} {two} if {test} else {'eq' if sign == '==' else 'ne'}({one}, {two}))", "bool"
    return None


def _order(temporary: Temporary, sign: str, left: Operand, right: Operand) -> Inlined:
    types = (left.type, right.type)
    exact = functions.OPERATORS[sign].runtime
    if all(kind in _NUMERIC for kind in types):
        return f"({left.text} {sign} {right.text})", "bool"
    if "string" in types and set(types) <= {"string", "dyn"}:
        return f"({left.text} {sign} {right.text})", "bool"
    if "dyn" in types and any(kind in _NUMERIC for kind in types) and (left.atom or right.atom):
        # Python orders a number with nothing but a number, and with a bool, which CEL does not.
        kept = temporary()
        one, two = (left.text, kept) if left.atom else (kept, right.text)
        test = f"({kept} := {right.text if left.atom else left.text}) is not True and {kept} is not False"
        return f"({one} {sign} {two} if {test} else {exact}({one}, {two}))", "bool"
    if types == ("dyn", "dyn"):
        one, two = temporary(), temporary()
        test = f"type({one} := {left.text}) is type({two} := {right.text}) in SCALARS"
        return f"({one} {sign} {two} if {test} else {exact}({one}, {two}))", "bool"
    return None


def _text(temporary: Temporary, constants: Constants, function: str, args: Sequence[Operand]) -> Inlined:  # noqa: PLR0911 - one per case
    value, other = args
    if function == "in":
        if value.type != "string" or not value.atom or other.type not in ("dyn", "map"):
            return None
        if other.text == "r":
            return f"({value.text} in r)", "bool"
        kept = temporary()
        return (
            f"({value.text} in {kept} if type({kept} := {other.text}) is dict else in_({value.text}, {kept}))",
            "bool",
        )
    if not other.atom or not isinstance(other.value, str):
        return None
    kept = temporary()
    exact = f"{functions.FUNCTIONS[function].runtime}({kept}, {other.text})"
    test = f"type({kept} := {value.text}) is str"
    if function == "matches":
        search = constants.bind(pattern(other.value))
        return f"({search}({kept}) is not None if {test} else {exact})", "bool"
    if function == "contains":
        return f"({other.text} in {kept} if {test} else {exact})", "bool"
    return f"({kept}.{function.lower()}({other.text}) if {test} else {exact})", "bool"


def _conversion(temporary: Temporary, function: str, value: Operand) -> Inlined:
    if value.type == function:
        return value.text, function
    kept = temporary()
    if function == "int" and value.type == "double":
        bound = -float(INT_MIN)
        return f"(int({kept}) if {-bound} < ({kept} := {value.text}) < {bound} else to_int({kept}))", "int"
    if value.type != "dyn":
        return None
    python = {"int": "int", "double": "float", "string": "str"}[function]
    return f"({kept} if type({kept} := {value.text}) is {python} else to_{function}({kept}))", function
