"""Python in Spark's tasks: what a worker is spared, and that imports go on."""

from __future__ import annotations

import gc
import importlib
import sys
import zipfile
from typing import TYPE_CHECKING
from zipimport import zipimporter

from spark_batch.tasks import unburden

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_unburden_forgets_archives_and_imports_from_them_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No path is remembered to be an archive, so that nothing reads its directory again; the next import finds it all the same."""
    archive = tmp_path / "sources.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("shipped_one.py", "value = 1")
        file.writestr("shipped_two.py", "value = 2")
    monkeypatch.syspath_prepend(archive)
    assert importlib.import_module("shipped_one").value == 1
    assert isinstance(sys.path_importer_cache[str(archive)], zipimporter)
    try:
        unburden()
        assert [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)] == []
        assert gc.get_freeze_count() > 0
        assert importlib.import_module("shipped_two").value == 2
    finally:
        gc.unfreeze()
        for name in ("shipped_one", "shipped_two"):
            sys.modules.pop(name, None)
