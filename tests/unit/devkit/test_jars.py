"""Pinned jars: the lock file, the cache, and what happens without network."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests

from devkit import jars
from devkit.errors import JarsError

if TYPE_CHECKING:
    from jgo.maven import MavenContext

_BYTES = {"g:first:1": b"first jar", "g:second:2.0": b"second jar, longer"}


class _Registry:
    """Stands for the network: gives the bytes of `content`, and counts what was asked for."""

    def __init__(self) -> None:
        self.content = dict(_BYTES)
        self.asked: list[str] = []
        self.lock = threading.Lock()
        self.down = False

    def download(self, context: MavenContext, jar: jars.Jar) -> Path:
        with self.lock:
            self.asked.append(jar.coordinate)
        if self.down:
            raise JarsError(f"could not download {jar.coordinate}")
        path = context.repo_cache / jar.filename
        path.write_bytes(self.content[jar.coordinate])
        return path


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Registry:
    registry = _Registry()
    entries = [
        f'"{name}" = {{ sha256 = "{hashlib.sha256(content).hexdigest()}", size = {len(content)} }}'
        for name, content in _BYTES.items()
    ]
    (tmp_path / "two.lock").write_text("\n".join(['roots = ["g:first:1"]', "[jars]", *entries]))
    monkeypatch.setattr(jars, "_HERE", tmp_path)
    monkeypatch.setattr(jars, "_download", registry.download)
    monkeypatch.setenv("RECKON_CACHE_DIR", str(tmp_path / "cache"))
    return registry


def test_downloads_once_then_works_offline(registry: _Registry, tmp_path: Path) -> None:
    """The first call downloads every jar, the second asks for nothing; paths come in the lock's order."""
    folder = tmp_path / "cache" / "jars"
    expected = [folder / "first-1.jar", folder / "second-2.0.jar"]
    assert jars.jar_paths("two") == expected
    assert sorted(registry.asked) == sorted(_BYTES)
    registry.down = True
    assert jars.jar_paths("two") == expected
    assert [path.read_bytes() for path in expected] == list(_BYTES.values())
    assert len(registry.asked) == 2
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "first-1.jar", "second-2.0.jar"]


def test_a_damaged_jar_is_downloaded_again(registry: _Registry) -> None:
    """Same size, other bytes: seen by the SHA-256, and only that jar is fetched."""
    first, _ = jars.jar_paths("two")
    first.write_bytes(b"FIRST jar")
    registry.asked.clear()
    jars.jar_paths("two")
    assert registry.asked == ["g:first:1"]
    assert first.read_bytes() == b"first jar"


def test_wrong_bytes_never_enter_the_cache(registry: _Registry, tmp_path: Path) -> None:
    """A download that is not the pinned jar raises and leaves nothing behind under its name."""
    registry.content["g:second:2.0"] = b"something else"
    with pytest.raises(JarsError, match=r"g:second:2\.0: the downloaded jar is not the pinned one: expected SHA-256 "):
        jars.jar_paths("two")
    assert not (tmp_path / "cache" / "jars" / "second-2.0.jar").exists()


def test_many_at_once_download_once(registry: _Registry) -> None:
    """Callers that find the cache empty at the same time share one download."""
    threads = [threading.Thread(target=jars.jar_paths, args=("two",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(registry.asked) == sorted(_BYTES)


def test_refused_download_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jar, its size, the reason, and the two ways out: again later, or a copy of the cache."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise requests.ConnectionError("connection refused")

    monkeypatch.setattr(requests, "request", refuse)
    monkeypatch.setenv("RECKON_CACHE_DIR", str(tmp_path))
    with pytest.raises(JarsError) as error:
        jars.jar_paths("kafka")
    first, second = str(error.value).splitlines()
    assert first == "could not download at.yawk.lz4:lz4-java:1.10.2 (1.0 MB): connection refused"
    assert "Run the same command again when the network is there" in second
    assert str(tmp_path / "jars") in second


def test_cache_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the folder and the variable that names another."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RECKON_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(JarsError, match=r"cannot create the cache folder .*/file/jars: .*RECKON_CACHE_DIR"):
        jars.jar_paths("kafka")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roots = [", "not TOML"),
        ("roots = []", "expected `roots = "),
        ("roots = []\n[jars]", "expected `roots = "),
        ('roots = []\n[jars]\n"g:a" = { sha256 = "' + "0" * 64 + '", size = 1 }', 'entry "g:a": expected'),
        ('roots = []\n[jars]\n"g:a:1" = { sha256 = "0", size = 1 }', 'entry "g:a:1": expected'),
        ('roots = []\n[jars]\n"g:a:1" = { sha256 = "' + "0" * 64 + '" }', 'entry "g:a:1": expected'),
    ],
)
def test_bad_lock_file(text: str, message: str, tmp_path: Path) -> None:
    """A lock file that is not as expected is refused with its path, the entry and the expected form."""
    path = tmp_path / "bad.lock"
    path.write_text(text)
    with pytest.raises(JarsError) as error:
        jars.read_lock(path)
    assert str(error.value).startswith(f"{path}: {message}")


def test_missing_lock_file(tmp_path: Path) -> None:
    """A name without a lock file is an error of its own."""
    with pytest.raises(JarsError, match=r"no lock file none\.lock"):
        jars.read_lock(tmp_path / "none.lock")


def test_kafka_lock_is_complete_and_names_no_host() -> None:
    """The shipped lock file: the broker, its logger, no URL."""
    path = Path(jars.__file__).with_name("kafka.lock")
    lock = jars.read_lock(path)
    assert lock.roots == ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36")
    assert set(lock.roots) <= {jar.coordinate for jar in lock.jars}
    assert len({jar.filename for jar in lock.jars}) == len(lock.jars)
    assert "://" not in path.read_text()
