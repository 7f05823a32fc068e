"""Runs conformance cases of cel-spec: `python -m transforms.cel.conformance FILE.json`.

The file is a list of cases: `file`, `section`, `name` and `core` say which, `expr` is the expression, `bindings` its variables,
`disable_check` that it is not to be checked first, `value` the expected value in proto3 JSON, or `error` that it must fail.
Prints a line per failing case, then `N passed, N failed`. Exit code 1 if a case with `core: true` fails, 2 without a file.

Each case is evaluated in all forms: as written, and with constants folded, exactly and in the fast form.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transforms.cel import FALLBACK, Constants, compile_expression
from transforms.cel.containers import make_map
from transforms.cel.exact import ExactWriter
from transforms.cel.names import Names
from transforms.cel.namespace import OPERATIONS
from transforms.cel.parser import parse
from transforms.cel.runtime import TYPES
from transforms.cel.values import CelType, Uint
from transforms.errors import CelError, CelSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable

Case = dict[str, Any]


class _Failure:
    """Of an evaluation: which of the possible errors it is, the specification does not say."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"error: {self.text}"


def name(case: Case) -> str:
    return f"{case['file']}/{case['section']}/{case['name']}"


def check(case: Case) -> str | None:
    """Why the case fails; None if it passes."""
    expected = _Failure("any") if case.get("error") else value(case["value"])
    for form, found in evaluations(case).items():
        if isinstance(expected, _Failure):
            if not isinstance(found, _Failure):
                return f"{form}: expected an error, found {found!r}"
        elif isinstance(found, _Failure) or not same(expected, found):
            return f"{form}: expected {expected!r}, found {found!r}"
    return None


def evaluations(case: Case) -> dict[str, Any]:
    """The value, or the failure, in each form of the expression."""
    bindings = {variable: value(typed) for variable, typed in case.get("bindings", {}).items()}
    known = Names(frozenset(bindings), checked=not case.get("disable_check", False))
    constants = Constants()
    try:
        plain = ExactWriter(constants).write(parse(case["expr"], known))
        compiled = compile_expression(case["expr"], "any", constants, known=known)
    except CelSyntaxError as error:
        return {"compiled": _Failure(error.message)}
    space = {**OPERATIONS, **constants.names, "r": bindings}
    found = {"exact": _run(plain, space), "folded": _run(compiled.exact, space)}
    # It may give up: then the exact form decides.
    with contextlib.suppress(*FALLBACK):
        found["fast"] = _evaluate(compiled.fast, space)
    return found


def _run(source: str, space: dict[str, Any]) -> Any:
    try:
        return _evaluate(source, space)
    except CelError as error:
        return _Failure(str(error))


def _evaluate(source: str, space: dict[str, Any]) -> Any:
    # Source that our own writers made: nothing of the file gets in but as a literal.
    return eval(source, dict(space))  # noqa: S307


_READERS: dict[str, Callable[[Any], Any]] = {
    "null_value": lambda _: None,
    "bool_value": bool,
    "int64_value": int,
    "uint64_value": lambda text: Uint(int(text)),
    "double_value": float,
    "string_value": str,
    "bytes_value": base64.b64decode,
    "type_value": lambda text: TYPES.get(text, CelType(text)),
    "list_value": lambda typed: [value(item) for item in typed.get("values", [])],
    "map_value": lambda typed: make_map(*((value(e["key"]), value(e["value"])) for e in typed.get("entries", []))),
}


def value(typed: dict[str, Any]) -> Any:
    """A value of CEL from its form in proto3 JSON: {"int64_value": "5"}."""
    [(kind, content)] = typed.items()
    return _READERS[kind](content)


def same(expected: Any, found: Any) -> bool:
    """Equal in type and value, at every depth; NaN is NaN, and the order of a map's entries does not count."""
    if type(expected) is not type(found):
        return False
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, dict):
        types = {key: type(key) for key in found}
        return (
            len(expected) == len(found)
            and all(key in found and same(expected[key], found[key]) for key in expected)
            and all(types[key] is type(key) for key in expected)
        )
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return bool(expected == found)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m transforms.cel.conformance FILE.json", file=sys.stderr)  # noqa: T201 - a command
        return 2
    cases: list[Case] = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    failed = core = 0
    for case in cases:
        reason = check(case)
        if reason is not None:
            failed += 1
            core += bool(case["core"])
            print(f"{'core ' if case['core'] else ''}{name(case)}: {case['expr']}: {reason}")  # noqa: T201
    print(f"{len(cases) - failed} passed, {failed} failed")  # noqa: T201
    return 1 if core else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
