"""The globals that generated expressions use: every operation under the name that `functions.py` gives it."""

from __future__ import annotations

from typing import Any

from transforms.cel import containers, conversions, functions, runtime, text

_MORE = ("field", "has", "index", "make_map", "and_", "or_", "storable")
_HOMES = (runtime, containers, conversions, text)


def _find(name: str) -> Any:
    return next(getattr(home, name) for home in _HOMES if hasattr(home, name))


OPERATIONS: dict[str, Any] = {
    name: _find(name) for name in (*_MORE, *(function.runtime for function in functions.ALL.values()))
} | {"SCALARS": runtime.SCALARS}
