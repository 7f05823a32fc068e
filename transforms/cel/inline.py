"""Operators and functions in line, for the types they usually have; see the contract in `fast.py`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeAlias

from transforms.cel import functions, names
from transforms.cel.code import Code
from transforms.cel.library.regexes import searching
from transforms.cel.literals import INT_MAX, INT_MIN
from transforms.cel.values import CelType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transforms.cel.fast import FastWriter

Inlined: TypeAlias = "tuple[str, str] | None"
"""(source, CEL type), or None where the exact operation is called."""

_NUMERIC = ("int", "double")
_TIMES = ("timestamp", "duration")


def call(writer: FastWriter, function: str, args: Sequence[Code]) -> tuple[str, str]:
    """(source, CEL type) of an operator or function; every argument is evaluated exactly once."""
    exact = names.ALL[function]
    inlined: Inlined = None
    if function in ("+", "-", "*"):
        inlined = _arithmetic(writer, function, args[0], args[1])
    elif function in ("/", "%"):
        inlined = _division(writer, function, args[0], args[1])
    elif function in ("==", "!="):
        inlined = _equality(writer, function, args[0], args[1])
    elif function in ("<", "<=", ">", ">="):
        inlined = _order(writer, function, args[0], args[1])
    elif function in ("startsWith", "endsWith", "contains", "matches", "in"):
        inlined = _text(writer, function, args)
    elif function in ("int", "double", "string"):
        inlined = _conversion(writer, function, args[0])
    elif function == "dyn":
        inlined = args[0].text, args[0].type
    return inlined or (f"{exact.runtime}({', '.join(arg.text for arg in args)})", exact.result)


def _arithmetic(writer: FastWriter, sign: str, left: Code, right: Code) -> Inlined:  # noqa: PLR0911 - one per case
    types = {left.type, right.type}
    exact = functions.OPERATORS[sign].runtime
    if types == {"double"}:
        return f"({left.text} {sign} {right.text})", "double"
    if types in ({"string"}, {"string", "dyn"}) and sign == "+" and (left.atom or right.atom or not writer.variables):
        return f"({left.text} + {right.text})", "string"
    if types == {"int"}:
        kept = writer.temporary()
        bounds = f"{INT_MIN} <= ({kept} := {left.text} {sign} {right.text}) <= {INT_MAX}"
        return f"({kept} if {bounds} else add({kept}, 0))", "int"
    if types == {"double", "dyn"} and (left.atom or right.atom):
        kept, text = writer.kept(right if left.atom else left)
        one, two = (left.text, kept) if left.atom else (kept, right.text)
        return f"({one} {sign} {two} if type({text}) is float else {exact}({one}, {two}))", "double"
    if types == {"int", "dyn"} and (left.atom or right.atom):
        result = writer.temporary()
        kept, text = writer.kept(right if left.atom else left)
        one, two = (left.text, kept) if left.atom else (kept, right.text)
        bounds = f"{INT_MIN} <= ({result} := {one} {sign} {two}) <= {INT_MAX}"
        return f"({result} if type({text}) is int and {bounds} else {exact}({one}, {two}))", "int"
    if types <= {"double", "dyn"}:
        (one, first), (two, second) = writer.kept(left), writer.kept(right)
        test = f"type({first}) is type({second}) is float"
        return f"({one} {sign} {two} if {test} else {exact}({one}, {two}))", "double" if "double" in types else "dyn"
    return None


def _division(writer: FastWriter, sign: str, left: Code, right: Code) -> Inlined:
    """By a literal that is not zero. Python rounds down where CEL rounds to zero: the same from zero on."""
    if not right.atom or not isinstance(right.value, int | float) or right.value == 0:
        return None
    exact = functions.OPERATORS[sign].runtime
    if right.type == "double" and sign == "/":
        if left.type == "double":
            return f"({left.text} / {right.text})", "double"
        kept, text = writer.kept(left)
        return f"({kept} / {right.text} if type({text}) is float else {exact}({kept}, {right.text}))", "double"
    if right.type == "int" and right.value > 0 and left.type in ("int", "dyn"):
        python = "//" if sign == "/" else "%"
        kept, text = writer.kept(left)
        # The bound: 2^64 - 1, which a record may have, is no int, and its half would be one.
        test = f"type({text}) is int and 0 <= {kept} <= {INT_MAX}"
        return f"({kept} {python} {right.text} if {test} else {exact}({kept}, {right.text}))", "int"
    return None


def _small(code: Code) -> bool:
    """A literal number below 2^53: whatever it is compared with may be rounded to a double, as `eq` does, or not, as Python does.

    Not 2^53 itself: 2^53 + 1 is rounded to it.
    """
    return code.atom and code.type in _NUMERIC and isinstance(code.value, int | float) and abs(code.value) < 2**53


def _as_in_python(left: Code, right: Code) -> bool:
    """Two numbers that Python compares as CEL does."""
    if left.type not in _NUMERIC or right.type not in _NUMERIC:
        return False
    return left.type == right.type or _small(left) or _small(right)


def _equality(writer: FastWriter, sign: str, left: Code, right: Code) -> Inlined:  # noqa: PLR0911 - one per case
    types = (left.type, right.type)
    if left.atom and not right.atom:
        left, right = right, left  # equality is symmetric, and only one operand is evaluated
    if right.atom and right.type == "null":
        return f"({left.text} {'is' if sign == '==' else 'is not'} None)", "bool"
    if right.atom and right.type == "bool":
        return f"({left.text} {'is' if sign == '==' else 'is not'} {right.text})", "bool"
    if _as_in_python(left, right) or "string" in types or types == ("bool", "bool") or set(types) & set(_TIMES):
        return f"({left.text} {sign} {right.text})", "bool"
    if _small(right):
        if right.value not in (0, 1):
            return f"({left.text} {sign} {right.text})", "bool"
        kept, text = writer.kept(left)
        same = f"({text}) == {right.text} and {kept} is not {bool(right.value)}"
        return (f"({same})" if sign == "==" else f"(not ({same}))"), "bool"
    if types == ("dyn", "dyn"):
        (one, first), (two, second) = writer.kept(left), writer.kept(right)
        test = f"type({first}) is type({second}) in SCALARS"
        return f"({one} {sign} {two} if {test} else {'eq' if sign == '==' else 'ne'}({one}, {two}))", "bool"
    return None


def _order(writer: FastWriter, sign: str, left: Code, right: Code) -> Inlined:
    types = (left.type, right.type)
    exact = functions.OPERATORS[sign].runtime
    if _as_in_python(left, right):
        return f"({left.text} {sign} {right.text})", "bool"
    for kind in ("string", *_TIMES):
        # Python orders these with nothing but their own type.
        if kind in types and set(types) <= {kind, "dyn"}:
            return f"({left.text} {sign} {right.text})", "bool"
    if "dyn" in types and (_small(left) or _small(right)):
        return _order_small(writer, sign, left, right), "bool"
    if types == ("dyn", "dyn"):
        (one, first), (two, second) = writer.kept(left), writer.kept(right)
        test = f"type({first}) is type({second}) in SCALARS"
        return f"({one} {sign} {two} if {test} else {exact}({one}, {two}))", "bool"
    return None


_PYTHONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _order_small(writer: FastWriter, sign: str, left: Code, right: Code) -> str:
    """Python orders a number with nothing but a number, and with a bool, which CEL does not.

    Where true and false compare alike, only one of the two results can be a bool's: `true > 10.0` is false as `false > 10.0` is,
    so a value that is greater needs no second look.
    """
    literal_first = _small(left)
    literal: Any = (left if literal_first else right).value
    order = _PYTHONS[sign]
    kept, text = writer.kept(right if literal_first else left)
    one, two = (left.text, kept) if literal_first else (kept, right.text)
    exact = f"{functions.OPERATORS[sign].runtime}({one}, {two})"
    outcomes = {order(literal, flag) if literal_first else order(flag, literal) for flag in (True, False)}
    if len(outcomes) == 2:
        return f"({one} {sign} {two} if ({text}) is not True and {kept} is not False else {exact})"
    first = kept if kept == text else f"({text})"
    comparison = f"{one} {sign} {first}" if literal_first else f"{first} {sign} {two}"
    if outcomes == {False}:
        return f"({comparison} or (({kept} is True or {kept} is False) and {exact}))"
    return f"({comparison} and (({kept} is not True and {kept} is not False) or {exact}))"


def _text(writer: FastWriter, function: str, args: Sequence[Code]) -> Inlined:  # noqa: PLR0911 - one per case
    value, other = args
    if function == "in":
        if value.type != "string" or not value.atom or other.type not in ("dyn", "map"):
            return None
        if other.type == "map":
            return f"({value.text} in {other.text})", "bool"
        kept, text = writer.kept(other)
        return f"({value.text} in {kept} if type({text}) is dict else in_({value.text}, {kept}))", "bool"
    if not other.atom or not isinstance(other.value, str):
        return None
    kept, text = writer.kept(value)
    exact = f"{names.FUNCTIONS[function].runtime}({kept}, {other.text})"
    test = f"type({text}) is str"
    if function == "matches":
        search = writer.constants.bind(searching(other.value))
        return f"({search}({kept}.encode()) is not None if {test} else {exact})", "bool"
    if function == "contains":
        return f"({other.text} in {kept} if {test} else {exact})", "bool"
    return f"({kept}.{function.lower()}({other.text}) if {test} else {exact})", "bool"


def _conversion(writer: FastWriter, function: str, value: Code) -> Inlined:
    if value.type == function:
        return value.text, function
    if function == "int" and value.type == "double":
        kept, text = writer.kept(value)
        bound = -float(INT_MIN)
        return f"(int({kept}) if {-bound} < ({text}) < {bound} else to_int({kept}))", "int"
    if value.type != "dyn":
        return None
    kept, text = writer.kept(value)
    python = {"int": "int", "double": "float", "string": "str"}[function]
    return f"({kept} if type({text}) is {python} else to_{function}({kept}))", function


_PYTHON = {
    "bool": "bool",
    "int": "int",
    "double": "float",
    "string": "str",
    "bytes": "bytes",
    "list": "list",
    "map": "dict",
}


def type_test(sign: str, value: Code, kind: object) -> Code | None:
    """`type(x) == int`."""
    python = _PYTHON.get(kind.name) if isinstance(kind, CelType) else None
    if python is None:
        return None
    return Code(f"(type({value.text}) {'is' if sign == '==' else 'is not'} {python})", "bool", plain=True)
