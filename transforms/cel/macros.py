"""Macros: which there are, and their exact forms (langdef.md, "Macros"; cel-go's extensions for two variables, bindings, lists).

In generated code a macro gets what it goes through, made by `each` or `each_pair`, and functions of its variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transforms.cel.containers import as_key, items, pairs
from transforms.cel.library.table import OPERATIONS
from transforms.cel.runtime import truth
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Rows = Iterable[tuple[Any, ...]]
    Body = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class MacroForm:
    name: str
    runtime: str
    """As in `Macro.function`, and the name of the exact form."""
    result: str
    variables: int
    arguments: int
    """Beside the variables."""


MACROS = [
    MacroForm("all", "all_", "bool", 1, 1),
    MacroForm("all", "all_", "bool", 2, 1),
    MacroForm("exists", "exists", "bool", 1, 1),
    MacroForm("exists", "exists", "bool", 2, 1),
    MacroForm("exists_one", "exists_one", "bool", 1, 1),
    MacroForm("existsOne", "exists_one", "bool", 1, 1),
    MacroForm("existsOne", "exists_one", "bool", 2, 1),
    MacroForm("map", "map_", "list", 1, 1),
    MacroForm("map", "map_", "list", 1, 2),
    MacroForm("filter", "filter_", "list", 1, 1),
    MacroForm("transformList", "map_", "list", 2, 1),
    MacroForm("transformList", "map_", "list", 2, 2),
    MacroForm("transformMap", "transform_map", "map", 2, 1),
    MacroForm("transformMap", "transform_map", "map", 2, 2),
    MacroForm("transformMapEntry", "transform_map_entry", "map", 2, 1),
    MacroForm("transformMapEntry", "transform_map_entry", "map", 2, 2),
    MacroForm("sortBy", "sorted_by", "list", 1, 1),
    MacroForm("optMap", "opt_map", "optional", 1, 1),
    MacroForm("optFlatMap", "opt_flat_map", "optional", 1, 1),
]
"""Called as `x.name(variables..., arguments...)`. cel.bind(variable, value, body) is one too, with a form of its own."""
RESULTS = {macro.runtime: macro.result for macro in MACROS}
WHOLE = frozenset({"sorted_by", "opt_map", "opt_flat_map"})
"""Those that get their operand itself, not what `each` makes of it."""


def each(collection: Any) -> Rows:
    return zip(items(collection), strict=True)


def each_pair(collection: Any) -> Rows:
    return pairs(collection)


def _decide(decisive: bool, rows: Rows, predicate: Body) -> bool:  # noqa: FBT001
    """Like `&&` and `||`: one decisive item decides, whatever errors the others have; without one, the first error stands."""
    first: CelError | None = None
    for row in rows:
        try:
            if truth(predicate(*row)) is decisive:
                return decisive
        except CelError as error:
            first = first or error
    if first is not None:
        raise first
    return not decisive


def all_(rows: Rows, predicate: Body) -> bool:
    return _decide(False, rows, predicate)


def exists(rows: Rows, predicate: Body) -> bool:
    return _decide(True, rows, predicate)


def exists_one(rows: Rows, predicate: Body) -> bool:
    """Exactly one: all are looked at, so that every error counts."""
    return [truth(predicate(*row)) for row in rows].count(True) == 1


def map_(rows: Rows, *bodies: Body) -> list[Any]:
    """`bodies`: the result, or a condition and the result."""
    return [bodies[-1](*row) for row in rows if len(bodies) == 1 or truth(bodies[0](*row))]


def filter_(rows: Rows, predicate: Body) -> list[Any]:
    return [row[0] for row in rows if truth(predicate(*row))]


def transform_map(rows: Rows, *bodies: Body) -> dict[Any, Any]:
    return {as_key(row[0]): bodies[-1](*row) for row in rows if len(bodies) == 1 or truth(bodies[0](*row))}


def transform_map_entry(rows: Rows, *bodies: Body) -> dict[Any, Any]:
    return merged(map_(rows, *bodies))


def merged(maps: list[Any]) -> dict[Any, Any]:
    """Maps, which become one."""
    result: dict[Any, Any] = {}
    for part in maps:
        if type(part) is not dict:
            raise CelError("no such overload: transformMapEntry() makes maps, expected {key: value}")
        if not result.keys().isdisjoint(part):
            raise CelError("repeated key in a map")
        result.update(part)
    return result


def sorted_by(collection: Any, key: Body) -> Any:
    if type(collection) is not list:
        raise CelError("no such overload: sortBy() sorts a list")
    return OPERATIONS["sort_by"](collection, [key(item) for item in collection])


def bind(value: Callable[[], Any], body: Body) -> Any:
    """cel.bind(): the value is computed when it is first asked for, so that an error in it can be absorbed like any other."""
    found: list[Any] = []
    failed: list[CelError] = []

    def once() -> Any:
        if failed:
            raise failed[0]
        if not found:
            try:
                found.append(value())
            except CelError as error:
                failed.append(error)
                raise
        return found[0]

    return body(once)
