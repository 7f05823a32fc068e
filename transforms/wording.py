"""pydantic's errors in the words of a pipeline file. The values themselves are left out: they may be secrets."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_KINDS: dict[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}


def message(error: ErrorDetails) -> str:  # noqa: PLR0911 - one per kind of error
    """What is wrong and what was expected. Unknown and missing keys have their own functions."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _EXPECTED:
        return f"found {_KINDS.get(type(error['input']), 'something else')}, expected {_EXPECTED[kind]}"
    match kind:
        case "cel" | "topic" | "setting":
            return error["msg"]
        case "greater_than":
            return f"the number is too small, expected more than {context['gt']}"
        case "greater_than_equal":
            return f"the number is too small, expected at least {context['ge']}"
        case "less_than_equal":
            return f"the number is too large, expected at most {context['le']}"
        case "too_short":
            return f"nothing in it, expected at least {context['min_length']} entry"
        case "string_too_short":
            return f"empty text, expected at least {context['min_length']} character"
        case "string_too_long":
            return f"the text is too long, expected at most {context['max_length']} characters"
        case "string_pattern_mismatch":
            return "not a name, expected lower-case letters, digits, '.', '_' or '-', the first one a letter or digit"
        case "literal_error":
            return _choice(context["expected"], error["input"])
        case "finite_number":
            return "not a finite number, expected one"
    return error["msg"][:1].lower() + error["msg"][1:]


def _choice(expected: str, given: object) -> str:
    choices = re.findall(r"'([^']*)'", expected)
    told = expected if choices else expected.lower()  # true and false as YAML spells them
    return f"not a choice here, expected {told}{meant(given, choices)}"


def meant(given: object, choices: Iterable[str]) -> str:
    """The end of a message, `, did you mean ...?`, or nothing. What is longer or shorter at its end comes first: `unix_s` is `unix`."""
    if not isinstance(given, str) or not given:
        return ""
    found = given.lower()
    names = {name.lower(): name for name in choices}
    longer = [name for name in names if name.startswith(found)]
    shorter = sorted((name for name in names if found.startswith(name)), key=len, reverse=True)
    close = longer if len(longer) == 1 else shorter or difflib.get_close_matches(found, names, n=1)
    return f", did you mean {names[close[0]]!r}?" if close else ""


def unknown(key: object, known: Iterable[str], what: str = "key") -> str:
    names = list(known)
    close = difflib.get_close_matches(str(key), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(names)}"
    return f"unknown {what} {key!r}, {hint}"


def missing(key: object, parent: Any) -> str:
    where = f" of {parent!r}" if isinstance(parent, str) else ""
    return f"the key {key!r}{where} is missing, expected it"
