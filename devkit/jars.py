"""Jars from Maven Central, pinned: `<name>.lock` beside this file gives coordinates, SHA-256 and size of each.

jgo resolves (only when a lock file is written) and downloads; what is used at run time comes from the lock file
alone, so that two machines run the same bytes and a filled cache needs no network. No host is named here: jgo knows
Maven Central, and a `[repositories]` section of the user's jgo settings can replace it by a mirror (name it `central`).

A lock file is written anew, with the newest transitive versions its roots ask for, by

    python -m devkit.jars lock kafka                                # roots as they stand in kafka.lock
    python -m devkit.jars lock NAME group:artifact:version ...      # other roots
    python -m devkit.jars lock NAME --exact group:artifact:version ...   # these alone: what they need is there already
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from devkit.errors import JarsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jgo.maven import MavenContext

_HERE = Path(__file__).parent
_COORDINATE = re.compile(r"[^:\s]+:[^:\s]+:[^:\s]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TIMEOUT = 30  # seconds without a byte until a download counts as refused


@dataclass(frozen=True)
class Jar:
    """One pinned jar; `coordinate` is `group:artifact:version`, `size` is in bytes."""

    coordinate: str
    sha256: str
    size: int

    @property
    def filename(self) -> str:
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


@dataclass(frozen=True)
class Lock:
    """A lock file: the coordinates that were asked for, and every jar they need (`exact`: they alone)."""

    roots: tuple[str, ...]
    jars: tuple[Jar, ...]
    exact: bool = False


def cache_dir() -> Path:
    """Where downloaded jars are kept: `RECKON_CACHE_DIR`, else the user's cache folder."""
    named = os.environ.get("RECKON_CACHE_DIR")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("reckon")


def read_lock(path: Path) -> Lock:
    """Parse a lock file. Raises JarsError naming the file and the entry that is not as expected."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise JarsError(f"no lock file {path.name} beside {path.parent.name}/jars.py") from None
    except tomllib.TOMLDecodeError as e:
        raise JarsError(f"{path}: not TOML: {e}") from e
    roots, jars = raw.get("roots"), raw.get("jars")
    if not isinstance(roots, list) or not isinstance(jars, dict) or not jars:
        raise JarsError(f"{path}: expected `roots = [...]` and a table `[jars]` with at least one entry")
    parsed = tuple(_parse_jar(path, name, entry) for name, entry in jars.items())
    return Lock(tuple(map(str, roots)), parsed, raw.get("exact") is True)


def _parse_jar(path: Path, coordinate: str, entry: object) -> Jar:
    if isinstance(entry, dict) and _COORDINATE.fullmatch(coordinate):
        sha256, size = entry.get("sha256"), entry.get("size")
        if isinstance(sha256, str) and _SHA256.fullmatch(sha256) and isinstance(size, int):
            return Jar(coordinate, sha256, size)
    raise JarsError(
        f'{path}: entry "{coordinate}": expected '
        '"group:artifact:version" = { sha256 = "<64 hex digits>", size = <bytes> }'
    )


def jar_paths(name: str) -> list[Path]:
    """The jars of `<name>.lock` on this machine, in the lock's order; missing ones are downloaded first.

    Every jar is compared with its SHA-256 on every call (60 MB: a tenth of a second), so a damaged cache
    heals itself. Raises JarsError when a jar is missing and cannot be downloaded.
    """
    lock = read_lock(_HERE / f"{name}.lock")
    folder = cache_dir() / "jars"
    missing = [jar for jar in lock.jars if not _intact(jar, folder / jar.filename)]
    if missing:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise JarsError(
                f"cannot create the cache folder {folder}: {e.strerror}; name another by RECKON_CACHE_DIR"
            ) from e
        with _only_one(folder):  # another process may have filled the cache while this one waited
            missing = [jar for jar in missing if not _intact(jar, folder / jar.filename)]
            if missing:
                _fetch(name, missing, folder)
    return [folder / jar.filename for jar in lock.jars]


def _intact(jar: Jar, path: Path) -> bool:
    try:
        return path.stat().st_size == jar.size and _sha256(path) == jar.sha256
    except (FileNotFoundError, NotADirectoryError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Let one process at a time download into `folder`; the kernel frees the lock of one that dies."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(name: str, jars: Sequence[Jar], folder: Path) -> None:
    """Download into a folder of its own beside the cache; a jar enters the cache whole and checked, or not at all."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="partial-") as staging,
        Progress(*columns, console=Console(stderr=True)) as progress,
        ThreadPoolExecutor(4) as pool,
    ):
        bar = progress.add_task(f"Downloading {len(jars)} jars for {name}", total=sum(jar.size for jar in jars))
        context = _maven(Path(staging), lambda n: progress.update(bar, advance=n))

        def one(jar: Jar) -> None:
            path = _download(context, jar)
            actual = _sha256(path)
            if actual != jar.sha256:
                raise JarsError(
                    f"{jar.coordinate}: the downloaded jar is not the pinned one: expected SHA-256 {jar.sha256}, "
                    f"got {actual}; a proxy or mirror on the way may have altered it"
                )
            path.replace(folder / jar.filename)

        try:
            for _ in pool.map(one, jars):
                pass
        except JarsError:
            pool.shutdown(cancel_futures=True)
            raise


def _maven(folder: Path, advance: Callable[[int], None]) -> MavenContext:
    # imported late: jgo costs 0.2 s, and only a download needs it
    from jgo.config import GlobalSettings  # noqa: PLC0415
    from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415

    @contextmanager
    def progress(_filename: str, _size: int) -> Iterator[Callable[[int], None]]:
        yield advance

    return MavenContext(
        resolver=PythonResolver(progress_callback=progress),
        repo_cache=folder,
        remote_repos=GlobalSettings.load().repositories or None,
        timeout=_TIMEOUT,
    )


def _download(context: MavenContext, jar: Jar) -> Path:
    group, artifact, version = jar.coordinate.split(":")
    try:
        return context.project(group, artifact).at_version(version).artifact().resolve()
    except (requests.RequestException, RuntimeError, OSError) as e:
        raise JarsError(
            f"could not download {jar.coordinate} ({jar.size / 1e6:.1f} MB): {e}\n"
            "Run the same command again when the network is there: jars that arrived are kept. For a machine without "
            f"network, copy {cache_dir() / 'jars'} from one that has them."
        ) from e


def write_lock(path: Path, roots: Sequence[str], *, exact: bool = False) -> Lock:
    """Resolve `roots` with everything they need at run time (`exact`: nothing beside them) and write the lock file `path`."""
    with tempfile.TemporaryDirectory() as folder:
        context = _maven(Path(folder), lambda _: None)
        inputs, transitive = context.resolver.resolve([context.create_dependency(root) for root in roots])
        needed = [*inputs, *(d for d in transitive if not exact and d.scope in ("compile", "runtime"))]
        artifacts = [d.artifact for d in needed]
        jars = sorted(
            (
                Jar(f"{a.groupId}:{a.artifactId}:{a.version}", _sha256(file), file.stat().st_size)
                for a in artifacts
                for file in (a.resolve(),)
            ),
            key=lambda jar: jar.coordinate,
        )
    lines = [
        f"# Written by `python -m devkit.jars lock {path.stem}`; not by hand.",
        "roots = [",
        *(f'    "{root}",' for root in roots),
        "]",
        *(["exact = true"] if exact else []),
        "",
        "[jars]",
        *(f'"{jar.coordinate}" = {{ sha256 = "{jar.sha256}", size = {jar.size} }}' for jar in jars),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Lock(tuple(roots), tuple(jars), exact)


def main(args: Sequence[str]) -> int:
    if len(args) < 2 or args[0] != "lock":
        print("usage: python -m devkit.jars lock NAME [[--exact] group:artifact:version ...]", file=sys.stderr)  # noqa: T201
        return 2
    path = _HERE / f"{args[1]}.lock"
    roots = [arg for arg in args[2:] if arg != "--exact"]
    old = None if roots else read_lock(path)
    lock = write_lock(path, old.roots if old else roots, exact=old.exact if old else "--exact" in args)
    print(f"{path.name}: {len(lock.jars)} jars, {sum(jar.size for jar in lock.jars) / 1e6:.0f} MB")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
