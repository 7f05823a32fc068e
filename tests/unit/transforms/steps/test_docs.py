"""docs/steps.md says what the steps say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from transforms.steps import STEPS, docs
from transforms.steps.base import Condition, Model

PAGE = Path(__file__).parents[4] / "docs" / "steps.md"


def test_page_is_what_the_steps_say() -> None:
    """The page is the rendering: run `reckon docs` where it is not."""
    assert docs.render() == PAGE.read_text(encoding="utf-8")


def test_every_step_and_key_is_there() -> None:
    """Each step has its heading, each key of its mapping a row, in the words of the file."""
    page = docs.render()
    for name in STEPS:
        assert page.count(f"\n## {name}\n") == 1
    assert "| `sha256.salt` | `${...}` reference | required |" in page
    assert "| `fields` | list of fields | required |" in page
    assert "`cast`: mapping of fields to `int`, `double`, `string`, `bool`" in page


def test_rows_of_a_model() -> None:
    """Types, defaults and descriptions come from the model."""

    class Some(Model):
        one: Condition
        two: Annotated[int | None, Field(ge=0)] = None
        """What it is."""
        three: bool = True

    assert docs._rows(Some, "a.") == [
        "| `a.one` | condition | required |  |",
        "| `a.two` | whole number |  | what it is. |",
        "| `a.three` | true or false | `true` |  |",
    ]
