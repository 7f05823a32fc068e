"""docs/cel.md is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transforms.cel import Constants, compile_expression
from transforms.cel.names import FUNCTIONS, MACRO_NAMES

TEXT = (Path(__file__).parents[4] / "docs" / "cel.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```cel\n(.*?)\n```", TEXT, re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_compiles(text: str) -> None:
    assert compile_expression(text, "json", Constants()).type != "optional"


def test_every_function_and_macro_is_listed() -> None:
    """No function is missing in the table of functions, and none is invented; every macro is in theirs."""
    _, _, rest = TEXT.partition("## Functions\n")
    rows = [line for line in rest.partition("```")[0].splitlines() if line.startswith("| `")]
    assert set(FUNCTIONS) == {name for row in rows for name in re.findall(r"`([A-Za-z0-9.]+)`", row.split("|")[1])}
    macros = TEXT.partition("## Macros\n")[2].partition("```")[0]
    assert {name for name in MACRO_NAMES if f".{name}(" not in macros} == set()
