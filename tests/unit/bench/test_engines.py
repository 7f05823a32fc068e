"""Engines that cannot run here say why."""

from __future__ import annotations

import pytest

from tests.bench import engines
from tests.bench.engines import DEFAULT_ENGINES, ENGINES, Unavailable


@pytest.mark.parametrize(("engine", "reason"), [("franz", "no go"), ("kstreams", "no java")])
def test_missing_toolchain_is_named(
    engine: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(engines, "RUN", tmp_path_factory.mktemp("run"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match=rf"^{reason}$"):
        ENGINES[engine].prepare()


def test_failed_build_tells_the_tools_last_word(tmp_path_factory: pytest.TempPathFactory) -> None:
    command = ["/bin/sh", "-c", "echo first; echo the reason >&2; exit 3"]
    with pytest.raises(Unavailable, match=r"^sh failed: the reason$"):
        engines._checked(command, tmp_path_factory.mktemp("build"))


def test_default_engines_exist() -> None:
    assert set(DEFAULT_ENGINES) <= set(ENGINES)
