"""`${NAME}`, `${NAME:-default}`, `${file:/path}` in the values of a pipeline file; `$${` stands for `${`.

What a reference stands for may be a secret: no message here, or behind, contains it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ReferenceProblem(Exception):  # noqa: N818 - it becomes a Problem
    """A reference that cannot be resolved. `offset` is its place in the value."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def has_references(text: str) -> bool:
    return "${" in text


def resolve(text: str, env: Mapping[str, str]) -> str:
    """The text with its references replaced, once: what they stand for is not searched again. Raises `ReferenceProblem`."""

    def replace(match: re.Match[str]) -> str:
        if match["inside"] is None:
            return "${"
        if not match["end"]:
            raise ReferenceProblem("a reference without its end, expected '}'", match.start())
        return _lookup(match["inside"], env, match.start())

    return _REFERENCE.sub(replace, text)


def _lookup(inside: str, env: Mapping[str, str], offset: int) -> str:
    if inside.startswith("file:"):
        path = inside.removeprefix("file:")
        try:
            return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or "not UTF-8 text"
            raise ReferenceProblem(f"cannot read the file {path!r} of a reference: {reason}", offset) from None
    name, has_default, default = inside.partition(":-")
    if not _NAME.fullmatch(name):
        message = f"{inside!r} is not a reference, expected ${{NAME}}, ${{NAME:-default}} or ${{file:/path}}; write $${{ for a literal ${{"
        raise ReferenceProblem(message, offset)
    if has_default:
        # As in a shell, `:-` also replaces an empty value.
        return env.get(name) or default
    if name not in env:
        raise ReferenceProblem(
            f"the environment variable {name} is not set, expected it, or a default: ${{{name}:-...}}", offset
        )
    return env[name]
