"""The table of the library fits its functions."""

from __future__ import annotations

import inspect

import pytest

from transforms.cel.functions import MANY
from transforms.cel.library.table import FUNCTIONS, OPERATIONS

TYPES = frozenset(
    [
        "null",
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "timestamp",
        "duration",
        "type",
        "optional",
        "dyn",
    ]
)


def test_names_are_unique() -> None:
    runtimes = [function.runtime for function in FUNCTIONS.values()]
    assert len(set(runtimes)) == len(runtimes)
    assert set(OPERATIONS) == {*runtimes, "sort_by"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_entries(name: str) -> None:
    """A namespace is of plain functions; the Python function is of the library and takes as many arguments as the table says."""
    function = FUNCTIONS[name]
    assert function.result in TYPES
    assert function.method != function.plain
    assert function.plain or "." not in name
    operation = OPERATIONS[function.runtime]
    assert operation.__module__.startswith("transforms.cel.library.")
    parameters = inspect.signature(operation).parameters.values()
    needed = sum(parameter.kind is not inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    most = function.arity if function.most is None else function.most
    assert needed in (function.arity, 0 if most == MANY else function.arity)
    assert (most > needed) == any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
