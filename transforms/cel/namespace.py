"""The globals that generated expressions use: every operation under the name that its `Function` gives it."""

from __future__ import annotations

from typing import Any

from transforms.cel import containers, conversions, functions, macros, optionals, runtime, text, values
from transforms.cel.library import table

_MORE = """
    field has index optional_field optional_index items pairs in_ make_map present entry copied storable and_ or_ wrong each each_pair bind
    as_key merged
""".split()  # noqa: SIM905
_HOMES = (runtime, containers, conversions, text, optionals, macros, values)


def _find(name: str) -> Any:
    return next(getattr(home, name) for home in _HOMES if hasattr(home, name))


_OURS = {
    *_MORE,
    *(function.runtime for function in (functions.OPERATORS | functions.FUNCTIONS | optionals.FUNCTIONS).values()),
    *(macro.runtime for macro in macros.MACROS),
}
OPERATIONS: dict[str, Any] = (
    {name: _find(name) for name in sorted(_OURS)} | table.OPERATIONS | {"SCALARS": runtime.SCALARS}
)
assert len(OPERATIONS) == len(_OURS) + len(table.OPERATIONS) + 1, "two operations have one name"
