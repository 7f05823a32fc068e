"""Bare names that are nearly those of metadata: `tpoic` is a field of the value, and none that anybody has."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from transforms.cel.nodes import METADATA, Node, Select, This, children

if TYPE_CHECKING:
    from transforms.lint.fields import Fields
    from transforms.lint.view import View
    from transforms.yaml_tree import Path as KeyPath


def warn_of_metadata(view: View, path: KeyPath, node: Node, fields: Fields) -> None:
    """Of names that no step before has made a field of. `this.tpoic` is not asked about."""
    for child in children(node):
        warn_of_metadata(view, path, child, fields)
    if (
        isinstance(node, Select)
        and isinstance(node.operand, This)
        and node.bare
        and fields.absent((node.field,)) is None
    ):
        for name in METADATA if node.field not in fields.inside else ():
            if node.field in mistyped(name):
                message = (
                    f'"{node.field}" is a field of the value, did you mean {name!r}? If not, write this.{node.field}'
                )
                view.warn("unknown-field", path, message, offset=node.offset)


@cache
def mistyped(name: str) -> frozenset[str]:
    """Two letters exchanged, one left out or one doubled. No other edits, and no plurals: fields are called `header`, `topics`, `keys`."""
    splits = [(name[:at], name[at:]) for at in range(len(name))]
    exchanged = {left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1}
    left_out = {left + right[1:] for left, right in splits} if len(name) > 3 else set()
    doubled = {left + right[0] + right for left, right in splits}
    return frozenset((exchanged | left_out | doubled) - {name, name.removesuffix("s"), f"{name}s"})
