"""What `reckon run` would refuse of the client settings of a pipeline file: lint says so, at the place of each."""

from __future__ import annotations

import os
import re
import string
from typing import TYPE_CHECKING, Any, TypeAlias

from transforms.lint import Finding
from transforms.loading import PipelineError, load_pipeline
from transforms.test_files import is_test_file
from transforms.yaml_tree import Tree
from worker.pinned import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CLIENTS = {"kafka": ("consumer", "producer"), "consumer": ("consumer",), "producer": ("producer",)}
_SENTINEL = "reckon.no.such.setting"
_LOADS_CODE = "plugin.library.paths"
"""librdkafka loads the libraries at once: lint runs nothing that is named there."""
_LETTERS = string.ascii_lowercase + "._"
_ENDINGS = (".ms", ".bytes", ".kbytes", ".messages", ".location")

Setting: TypeAlias = tuple[str, str]
"""Its place: the section and the name."""


def client_settings(path: Path) -> list[Finding]:
    """Settings that are the worker's own, that librdkafka does not know or refuses, or that do not go together. No broker is asked."""
    try:
        tree = Tree(str(path), path.read_text(encoding="utf-8"), os.environ)
    except (OSError, UnicodeDecodeError):
        return []  # said already
    if is_test_file(path) or not isinstance(tree.data, dict):
        return []
    given: dict[Setting, Any] = {
        (section, name): value
        for section in _CLIENTS
        if isinstance(tree.data.get(section), dict)
        for name, value in tree.data[section].items()
        if isinstance(value, str | int | float) or (section, name) in tree.unresolved
    }
    found = [*_refused(given, tree.unresolved), *_unknown(tree, given)] or _apart(path, tree, given)
    return [_finding(tree, place, message, key=key) for place, message, key in found]


def _finding(tree: Tree, place: tuple[str, str], message: str, *, key: bool) -> Finding:
    mark = (tree.keys if key else tree.values)[place].start_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return Finding(tree.file, line, column, "error", "client-setting", message)


def _refused(given: dict[Setting, Any], unresolved: set[Any]) -> Iterator[tuple[Setting, str, bool]]:
    for (section, name), value in given.items():
        reasons = (refusal(kind, name, value) for kind in _CLIENTS[section])
        reason = next((reason for reason in reasons if reason is not None), None)
        if reason is not None and (section, name) not in unresolved:
            yield (section, name), reason, True


def _unknown(tree: Tree, given: dict[Setting, Any]) -> Iterator[tuple[Setting, str, bool]]:
    for place, value in given.items():
        name = place[1]
        said = None if name == _LOADS_CODE else _said(name, None if place in tree.unresolved else value)
        if said is None:
            continue
        if said == _no_such(name):
            meant = _meant(name)
            hint = f"did you mean {meant!r}?" if meant else "expected one of librdkafka's names"
            yield place, f"librdkafka has no setting {name!r}, {hint}", True
        elif place not in tree.unresolved:
            # What librdkafka says may quote the value.
            secret = place in tree.referenced or _is_secret(name)
            yield place, "librdkafka refuses this value" + ("" if secret else f": {said}"), False


def _said(name: str, value: Any) -> str | None:
    """What librdkafka says of one setting; None: nothing. No client is made: what stands behind it is always refused."""
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - files without such settings do without

    try:
        Producer({name: value, _SENTINEL: ""})
    except KafkaException as error:
        text = str(error.args[0].str()).strip()
        return None if text == _no_such(_SENTINEL) else text
    except (TypeError, ValueError, AttributeError):
        return "a function of Python's is expected, which no file can hold"  # error_cb and the like
    raise AssertionError("librdkafka took a setting that does not exist")


def _no_such(name: str) -> str:
    return f'No such configuration property: "{name}"'


def _is_secret(name: str) -> bool:
    from worker.settings import is_secret  # noqa: PLC0415 - it imports Kafka's client

    return is_secret(name)


def _meant(name: str) -> str | None:
    """A name one edit away: librdkafka has no list of its names to ask for, but knows each in microseconds."""
    splits = [(name[:at], name[at:]) for at in range(len(name) + 1)]
    edits = [
        name.lower().replace("_", ".").replace("-", "."),
        *(name + ending for ending in _ENDINGS),
        *(left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1),
        *(left + letter + right for left, right in splits for letter in _LETTERS),
        *(left + right[1:] for left, right in splits if right),
        *(left + letter + right[1:] for left, right in splits if right for letter in _LETTERS),
    ]
    return next((edit for edit in edits if edit != name and _said(edit, None) != _no_such(edit)), None)


def _apart(path: Path, tree: Tree, given: dict[Setting, Any]) -> list[tuple[Setting, str, bool]]:
    """What must hold of several settings at once: told at those that the file has a part in, be it with the environment of this run."""
    places: list[Setting] = list(given)
    if isinstance(tree.data.get("transaction"), dict):
        places += [("transaction", name) for name in tree.data["transaction"]]
    if not places:
        return []
    from worker.errors import BadConfigError  # noqa: PLC0415 - as above
    from worker.settings import resolve  # noqa: PLC0415

    try:
        resolve(load_pipeline(path))
    except PipelineError:
        return []  # said already
    except BadConfigError as error:
        lines = [line.removeprefix(f"{path}: ") for line in str(error).splitlines()]
        return [
            (place, _hidden(line, tree, given), False) for line in lines for place in places if _names(line, *place)
        ]
    return []


def _names(problem: str, section: str, name: str) -> bool:
    of = f"{section}.{name}" if section == "transaction" else name
    other = {"consumer": "producer", "producer": "consumer"}.get(section, "-")
    return re.search(rf"(?<![\w.]){re.escape(of)}(?![\w.])", problem) is not None and not re.search(
        rf"\b{other}:? {re.escape(of)}(?![\w.])", problem
    )


def _hidden(problem: str, tree: Tree, given: dict[Setting, Any]) -> str:
    """Without the values that come from outside of the file."""
    for place, value in given.items():
        if place in tree.referenced and str(value):
            problem = problem.replace(str(value), "...")
    return problem
