"""Every page is whole: no merge was left half done, and every file that a page links to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted([*Path().glob("*.md"), *Path("docs").glob("*.md")])
_MARKER = re.compile(r"^(<<<<<<< |=======$|>>>>>>> )", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_marker_of_a_merge_is_left(page: Path) -> None:
    assert _MARKER.findall(page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_to_files(page: Path) -> None:
    assert [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


def test_a_half_done_merge_and_a_dead_link_would_be_seen() -> None:
    assert _MARKER.findall("a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\n") == ["<<<<<<< ", "=======", ">>>>>>> "]
    assert _LINK.findall("[a](docs/a.md#b), [c](https://d), [e](#f)") == ["docs/a.md"]
