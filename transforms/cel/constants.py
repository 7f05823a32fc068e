"""Values that generated code needs and that have no literal in Python: compiled regular expressions, uints, infinities."""

from __future__ import annotations

import math
from typing import Any

from transforms.cel.values import Uint


class Constants:
    """Names for such values, `c0`, `c1`, ...; `names` goes into the globals of the generated code."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def bind(self, value: object) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def literal(self, value: object) -> str:
        """Python source for a scalar; always a single term, so that it needs no parentheses."""
        if not isinstance(value, bool | int | float | str | bytes | None) or isinstance(value, Uint):
            return self.bind(value)
        if isinstance(value, float) and not math.isfinite(value):
            return self.bind(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return repr(value) if math.copysign(1, value) > 0 else f"({value!r})"
        return ascii(value)
