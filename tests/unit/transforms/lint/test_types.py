"""What lint says about types, and about constants, is true for every record."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transforms.cel.evaluate import evaluate
from tests.unit.transforms.cel.test_fuzz import RECORDS, TYPED, expressions, likely
from transforms.cel.folding import fold
from transforms.cel.nodes import And, Call, Conditional, Lazy, Literal, Macro, Node, Or, Select, children
from transforms.cel.parser import parse
from transforms.cel.runtime import type_name
from transforms.errors import CelError, CelSyntaxError
from transforms.lint.constants import failing
from transforms.lint.overloads import DYN, NUMBER
from transforms.lint.types import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from transforms.lint.fields import FieldNames

_FAILED = object()


def _value(text: str, record: Any) -> Any:
    try:
        return evaluate(text, record)
    except CelError:
        return _FAILED


def _type_of(record: Any) -> Callable[[FieldNames], str]:
    """What a field of this one record is."""

    def type_of(names: FieldNames) -> str:
        value = record
        for name in names:
            if not isinstance(value, dict) or name not in value:
                return DYN
            value = value[name]
        return type_name(value)

    return type_of


def _whole(node: Node) -> bool:
    """Whether an expression has a value only if all of its parts have."""
    return not isinstance(node, And | Or | Conditional | Lazy | Macro) and all(map(_whole, children(node)))


@given(st.tuples(expressions(), RECORDS) | st.tuples(likely(), TYPED))
@settings(max_examples=800, deadline=None)
def test_types_and_failures(case: tuple[str, Any]) -> None:
    """A certain type is the value's, where those of fields are known; what fails always has no value; what is absorbed may have one."""
    text, record = case
    with contextlib.suppress(CelSyntaxError):
        node = parse(text)
        value = _value(text, record)
        checked = check(node, _type_of(record))
        if value is not _FAILED:
            kind = type_name(value)
            assert checked.type.rstrip("?") in (DYN, kind, NUMBER if kind in ("int", "double") else kind)
            assert all(part.absorbed for part in failing(fold(node)))
            assert not (checked.errors and _whole(node))
            if (
                isinstance(node, Call)
                and node.function in ("==", "!=")
                and all(isinstance(part, Literal | Select) for part in node.args)
            ):
                assert [value] * len(checked.never) == [
                    message.startswith("always true") for _, message in checked.never
                ]
