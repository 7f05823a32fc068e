"""YAML -> plain data, and where each part of it stands. All problems are collected; none stops the reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from transforms.references import ReferenceProblem, has_references, resolve
from transforms.steps.mask import SALT

if TYPE_CHECKING:
    from collections.abc import Mapping

Path: TypeAlias = tuple[str | int, ...]

MAX_VALUES = 100_000
"""Aliases can make a small file stand for an endless one; a pipeline has a few hundred values."""
MAX_BRACKETS = 100
"""Levels of `[` and `{`. PyYAML takes seconds to give up on a few thousand."""
_TAG = "tag:yaml.org,2002:"
_TEXT_ONLY = "steps"
"""Everything in here is text: names and CEL. So `keep: [on]` means the field "on", and `${` is left to CEL. Except for:"""
_TYPED = ("validate", "schema")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong with a pipeline file. `str()` gives `file:line:column: what, and what was expected`."""

    path: str
    line: int
    """1-based; 1 where the whole file is meant."""
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}"


class _Loader(yaml.SafeLoader):
    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803 - PyYAML's name
        if self.flow_level >= MAX_BRACKETS:
            raise RecursionError
        super().fetch_flow_collection_start(TokenClass)


class Tree:
    """The data of a file, and the positions of its keys and values by their path from the root."""

    def __init__(
        self, file: str, text: str, env: Mapping[str, str], expected: str = "a pipeline: name, source, sink, steps"
    ) -> None:
        """`expected`: what the file should be, for people."""
        self.file = file
        self.expected = expected
        self.text = text
        self.problems: list[Problem] = []
        self.values: dict[Path, Node] = {}
        self.keys: dict[Path, Node] = {}
        self.referenced: set[Path] = set()
        """Values that came from `${...}`, and may be secret."""
        self.unresolved: set[Path] = set()
        """Values whose references failed: already a problem, whatever else is said about them."""
        self._env = env
        self._open: set[int] = set()
        self._loader = yaml.SafeLoader("")
        self.data = self._read()

    def report(self, node: Node | None, message: str, *, offset: tuple[int, int] | None = None) -> None:
        mark = node.start_mark if node is not None else None
        line, column = offset or ((mark.line, mark.column) if mark is not None else (0, 0))
        self.problems.append(Problem(self.file, line + 1, column + 1, message))

    def _read(self) -> Any:
        try:
            root = yaml.compose(self.text, Loader=_Loader)
            if root is None:
                self.report(None, f"the file is empty, expected {self.expected}")
                return None
            return self._whole(root)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            context = f" {error.context}" if error.context else ""
            if mark is not None and "${" in "".join(self.text.splitlines()[mark.line : mark.line + 1]):
                context += "; inside {...} and [...] a ${...} reference needs quotes"
            place = (mark.line, mark.column) if mark is not None else None
            self.report(None, f"not YAML: {error.problem}{context}", offset=place)
        except yaml.reader.ReaderError as error:
            before = self.text[: error.position]
            place = (before.count("\n"), error.position - (before.rfind("\n") + 1))
            self.report(None, f"not YAML: the character U+{int(error.character):04X} is not allowed", offset=place)
        except RecursionError:
            self.report(None, "the file is nested too deeply, expected a few levels")
        return None

    def _whole(self, root: Node) -> Any:
        data = self._value(root, ())
        if data is None and not self.problems:  # `null`, `~`, `---`
            self.report(None, f"the file has nothing in it but null, expected {self.expected}")
        return data

    def _value(self, node: Node, path: Path) -> Any:
        self.values[path] = node
        if len(self.values) > MAX_VALUES:
            if len(self.values) == MAX_VALUES + 1:
                self.report(node, f"the file has too many values, expected at most {MAX_VALUES}")
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self.report(node, "an alias to a value that contains it, expected a value of its own")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
            assert isinstance(node, MappingNode)
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.report(key, "a key that is a list or a mapping, expected a name")
                continue
            if key.tag == _TAG + "merge":
                self.report(key, "merge keys are not supported, expected the keys themselves")
                continue
            name = str(key.value)
            if name in result:
                first = self.keys[*path, name].start_mark
                assert first is not None
                self.report(
                    key, f"duplicate key {name!r}, expected it once: it stands in line {first.line + 1} already"
                )
                continue
            self.keys[*path, name] = key
            result[name] = self._value(value, (*path, name))
        return result

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        text = str(node.value)
        tag = str(node.tag)
        if path[:1] == (_TEXT_ONLY,) and len(path) > 1 and path[2:] != SALT:
            return text if path[2:4] != _TYPED else self._construct(node, tag, text, hidden=False)
        if has_references(text):
            self.referenced.add(path)
            try:
                text = resolve(text, self._env)
            except ReferenceProblem as problem:
                self.unresolved.add(path)
                self.report(node, str(problem), offset=self.place(path, problem.offset))
                return None
            if node.style is None:
                tag = str(self._loader.resolve(ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]
        return self._construct(node, tag, text, hidden=path in self.referenced)

    def _construct(self, node: ScalarNode, tag: str, text: str, *, hidden: bool) -> Any:
        kind = tag.removeprefix(_TAG)
        if kind in ("int", "float", "bool", "null"):
            try:
                return self._loader.construct_object(ScalarNode(tag, text, node.start_mark, node.end_mark))
            except (ValueError, KeyError):
                self.report(node, f"not of the type {kind}" + ("" if hidden else f": {text!r}"))
                return None
        if kind not in ("str", "timestamp", "value", "merge"):
            self.report(node, f"the tag {tag!r} is not supported, expected a plain value")
        return text

    def unquote(self, path: Path) -> bool:
        """Gives a quoted value the type of what its reference stands for: for numbers in {...}, where YAML wants the quotes.

        Returns whether that is another type. Text that looks like a number may be meant as text, so it is for the caller to know.
        """
        node = self.values.get(path)
        if path not in self.referenced or not isinstance(node, ScalarNode) or node.style is None:
            return False
        holder = self.data
        for part in path[:-1]:
            holder = holder[part]
        text = holder[path[-1]]
        tag = str(self._loader.resolve(ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]
        if tag.removeprefix(_TAG) not in ("int", "float", "bool"):
            return False
        holder[path[-1]] = self._construct(node, tag, text, hidden=True)
        return True

    def place(self, path: Path, offset: int = 0) -> tuple[int, int]:
        """(line, column) from 0 of a character of the scalar at a path."""
        node = self.values[path]
        assert isinstance(node, ScalarNode)
        return scalar_place(self.text, node, offset)


def scalar_place(text: str, node: ScalarNode, offset: int) -> tuple[int, int]:
    """(line, column) from 0, in the file, of the character `offset` of a scalar's value.

    The value and its source are walked side by side: quotes, escapes, and the line breaks and indents of folded and block
    scalars make them differ. The start of the scalar is the answer should they ever not match.
    """
    assert node.start_mark is not None
    assert node.end_mark is not None
    start, end = node.start_mark.index, node.end_mark.index
    at = start
    if node.style in ("'", '"'):
        at += 1
    elif node.style in ("|", ">"):
        at = _skip_spaces(text, text.find("\n", start), end)
    value, position = str(node.value), 0
    while position < min(offset, len(value)):
        if value[position].isspace() and text[at : at + 1].isspace():
            position = _skip_spaces(value, position, min(offset, len(value)))
            if position < len(value) and not value[position].isspace():
                at = _skip_spaces(text, at, end)
            continue
        width = _width(text, at, node.style)
        if width == 0:
            at = _skip_spaces(text, at + 1, end)  # a line break that is escaped
            continue
        if width == 1 and text[at : at + 1] != value[position]:
            at = start
            break
        at, position = at + width, position + 1
    while _width(text, at, node.style) == 0:
        at = _skip_spaces(text, at + 1, end)
    line_start = text.rfind("\n", 0, at) + 1
    return text.count("\n", 0, at), at - line_start


def _skip_spaces(text: str, at: int, end: int) -> int:
    while at < end and text[at].isspace():
        at += 1
    return at


def _width(text: str, at: int, style: str | None) -> int:
    """Characters that stand for one character of the value; 0 for an escaped line break, which stands for none."""
    if style == "'" and text[at : at + 2] == "''":
        return 2
    if style == '"' and text[at : at + 1] == "\\":
        following = text[at + 1 : at + 2]
        return 0 if following in "\r\n" else {"x": 4, "u": 6, "U": 10}.get(following, 2)
    return 1
