"""Which files a digest of a function's module covers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from transforms.python_sources import digest

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "shop/__init__.py": "",
    "shop/clean.py": "from shop import texts\nimport json\n\ndef f(r):\n    from .lazy import late\n    return r\n",
    "shop/texts.py": "import shop.deep.words\n",
    "shop/lazy.py": "from . import broken\nfrom .deep import *\nlate = 1\n",
    "shop/broken.py": "def (\n",
    "shop/deep/__init__.py": "from ..cycle import a\n",
    "shop/deep/words.py": "from .. import nothing\n",
    "shop/cycle.py": "from shop.clean import f\na = 1\n",
    "shop/alone.py": "x = 1\n",
    "other.py": "import shop.clean\n",
}
COVERED = {name for name in FILES if name.startswith("shop/")} - {"shop/alone.py"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_what_is_covered(folder: Path) -> None:
    """All that is imported from the same top-level package, at any place of a file, over any number of files; nothing is run."""
    base = digest("shop.clean")
    changed = set()
    for name, text in FILES.items():
        (folder / name).write_text(text + "# changed\n")
        if digest("shop.clean") != base:
            changed.add(name)
        (folder / name).write_text(text)
    assert changed == COVERED
    assert base == digest("shop.clean")
    assert "shop" not in sys.modules


def test_where_files_are_does_not_matter(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same text in another folder has the same digest; the same text under another name has not."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("other.py", "another.py"):
        (elsewhere / name).write_text(FILES["other.py"])
    base = digest("other")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(elsewhere))
        assert base == digest("other")
        assert base != digest("another")


def test_modules_without_a_source() -> None:
    """A module that is compiled has a digest, too."""
    assert digest("math") != digest("time")
