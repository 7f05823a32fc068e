"""Which types an operator or a function takes, and what it gives: the runtime is asked, with samples of every type.

So there is no table beside it that could say something else.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from transforms.cel.library.times import Duration, Timestamp
from transforms.cel.names import ALL
from transforms.cel.namespace import OPERATIONS
from transforms.cel.optionals import LAZY
from transforms.cel.runtime import TYPES, type_name
from transforms.cel.values import NONE, Optional, Uint
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Iterable

DYN = "dyn"
NUMBER = "number"
"""An int or a double, as JSON Schema has it."""
SAMPLES: dict[str, tuple[Any, ...]] = {
    "bool": (True,),
    "int": (1,),
    "uint": (Uint(1),),
    "double": (1.5,),
    "string": ("a",),
    "bytes": (b"a",),
    "list": ([], [1], ["a"]),
    "map": ({},),
    "timestamp": (Timestamp(0),),
    "duration": (Duration(0),),
    "null": (None,),
    "type": (TYPES["int"],),
    "optional": (NONE, Optional(1)),
}
"""Values of each type. A function that takes lists, or optionals, may want them to hold a certain type: one of these has it."""
_SIGNS = frozenset({"+", "-", "*", "/", "%", "<", "<=", ">", ">="})
_HOLDERS = frozenset({"list", "map", "optional"})
_MOST = 3
"""Arguments. The functions that take more are `replace`, and the greatest and least of many numbers."""


@cache
def results(function: str, types: tuple[str, ...]) -> frozenset[str]:
    """The types that a call can give; none where it fails for all values of these types: "no such overload"."""
    if len(types) > _MOST:
        return frozenset({ALL[function].result})
    ways = product(*map(_alternatives, types))
    return frozenset[str]().union(*(_results(function, way) for way in ways))


def result(function: str, types: tuple[str, ...]) -> str:
    """The type that a call gives, where it is certain."""
    found = results(function, types)
    if found == {"int", "double"}:
        return NUMBER
    return next(iter(found)) if len(found) == 1 else DYN


def expected(function: str, types: tuple[str, ...]) -> str:
    """What the call could have been, for people; the types are as near as can be to those that it has."""
    if len(types) > _MOST:
        return ""
    for place in reversed(range(len(types))):
        fitting = [kind for kind in SAMPLES if results(function, (*types[:place], kind, *types[place + 1 :]))]
        if fitting and len(fitting) < len(SAMPLES):
            known = [*types[:place], " or ".join(fitting), *types[place + 1 :]]
            return f", expected {written(function, known)}"
    ways = [way for way in product(SAMPLES, repeat=len(types)) if _results(function, way)]
    return f", expected {written(function, ways[0])}" if len(ways) == 1 else ""


def written(function: str, types: Iterable[str]) -> str:
    """`int + string`, `contains(string, int)`."""
    if function in _SIGNS:
        return f" {function} ".join(types)
    return f"{'-' if function == 'neg' else function}({', '.join(types)})"


def _alternatives(kind: str) -> tuple[str, ...]:
    return {DYN: tuple(SAMPLES), NUMBER: ("int", "double")}.get(kind, (kind,))


@cache
def _results(function: str, types: tuple[str, ...]) -> frozenset[str]:
    made: set[str] = set()
    for values in product(*(SAMPLES[kind] for kind in types)):
        if function in LAZY:
            last = values[-1]
            values = (*values[:-1], lambda last=last: last)  # noqa: PLW2901
        try:
            value = OPERATIONS[ALL[function].runtime](*values)
        except CelError as error:
            if not str(error).startswith("no such overload"):
                made.add(ALL[function].result)  # these values are wrong, others of their types are not
            continue
        made.add(type_name(value) if _is_certain(function, types) else ALL[function].result)
    return frozenset(made)


def _is_certain(function: str, types: tuple[str, ...]) -> bool:
    """Whether all values of these types give what the samples give: the greater of an int and a double may be either."""
    return function in _SIGNS or (len(set(types)) == 1 and not _HOLDERS & set(types))
