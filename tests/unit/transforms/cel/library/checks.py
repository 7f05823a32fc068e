"""What the tests of the library share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.transforms.cel.evaluate import same
from transforms.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Callable


def gives(expected: Any, actual: Any) -> None:
    """Equal in value and in type: 1, 1u and 1.0 are three values here."""
    assert same(expected, actual), f"expected {expected!r} ({type(expected).__name__}), found {actual!r}"


def fails(message: str, function: Callable[..., Any], *arguments: Any) -> None:
    """CelError whose text is `message`."""
    with pytest.raises(CelError, match=f"^{re.escape(message)}$"):
        function(*arguments)


def no_overload(call: str, function: Callable[..., Any], *arguments: Any) -> None:
    fails(f"no such overload: {call}", function, *arguments)
