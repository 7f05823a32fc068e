"""The extension `strings`, but for format()."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transforms.cel.library.checks import fails, gives, no_overload
from transforms.cel.library import strings
from transforms.cel.library.limits import MOST_CHARACTERS
from transforms.cel.parser import parse
from transforms.cel.values import Uint

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "höhe🗻x"


def test_char_at() -> None:
    assert [strings.char_at(TEXT, place) for place in range(7)] == ["h", "ö", "h", "e", "🗻", "x", ""]
    for place in (-1, 7, 2**63 - 1):
        fails("charAt: index out of range", strings.char_at, TEXT, place)


@pytest.mark.parametrize(
    ("text", "part", "start", "first", "last"),
    [
        ("abcabc", "bc", (), 1, 4),
        ("abcabc", "bc", (1,), 1, 1),
        ("abcabc", "bc", (2,), 4, 1),
        ("abcabc", "bc", (4,), 4, 4),
        ("abcabc", "bc", (5,), -1, 4),
        ("abcabc", "bc", (6,), -1, 4),
        ("abcabc", "bc", (0,), 1, -1),
        ("abcabc", "x", (), -1, -1),
        ("abcabc", "abcabcd", (), -1, -1),
        ("abcabc", "", (), 0, 6),
        ("abcabc", "", (3,), 3, 3),
        ("abcabc", "", (6,), 6, 6),
        ("", "", (), 0, 0),
        ("", "a", (), -1, -1),
        (TEXT, "🗻", (), 4, 4),
        ("aaaa", "aa", (), 0, 2),
        ("aaaa", "aa", (1,), 1, 1),
    ],
)
def test_index_of(text: str, part: str, start: tuple[int, ...], first: int, last: int) -> None:
    """indexOf() looks from the place on; lastIndexOf() takes matches that begin there or before."""
    gives(first, strings.index_of(text, part, *start))
    gives(last, strings.last_index_of(text, part, *start))


@pytest.mark.parametrize("start", [-1, 7, 2**63 - 1])
@pytest.mark.parametrize("part", ["a", ""])
def test_index_of_out_of_range(part: str, start: int) -> None:
    fails("indexOf: index out of range", strings.index_of, "abcabc", part, start)
    fails("lastIndexOf: index out of range", strings.last_index_of, "abcabc", part, start)


def test_substring() -> None:
    assert strings.substring(TEXT, 4) == "🗻x"
    assert strings.substring(TEXT, 6) == ""
    assert strings.substring(TEXT, 1, 5) == "öhe🗻"
    assert strings.substring(TEXT, 3, 3) == ""
    fails("substring: index out of range", strings.substring, TEXT, 7)
    fails("substring: index out of range", strings.substring, TEXT, -1)
    fails("substring: index out of range", strings.substring, TEXT, 0, 7)
    fails("substring: it ends before it starts", strings.substring, TEXT, 2, 1)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [((), "-b-b"), ((-1,), "-b-b"), ((0,), "aabaab"), ((1,), "-baab"), ((2,), "-b-b"), ((2**64 - 1,), "-b-b")],
)
def test_replace(limit: tuple[int, ...], expected: str) -> None:
    assert strings.replace("aabaab", "aa", "-", *limit) == expected


def test_replace_of_nothing() -> None:
    """The empty string is between all characters, and at both ends."""
    assert strings.replace("ab", "", "-") == "-a-b-"
    assert strings.replace("ab", "", "-", 2) == "-a-b"
    assert strings.replace("", "", "-") == "-"
    assert strings.replace("ab", "x", "-") == "ab"


def test_replace_is_bounded() -> None:
    """An output that would fill the memory is refused before it is made; a limit can make it small enough."""
    text = "x" * 10_000
    fails(f"replace: the result would be longer than {MOST_CHARACTERS} characters", strings.replace, text, "", text)
    assert len(strings.replace(text, "", text, 2)) == 30_000


@pytest.mark.parametrize(
    ("text", "separator", "limit", "expected"),
    [
        ("a b c", " ", (), ["a", "b", "c"]),
        ("a b c", " ", (-1,), ["a", "b", "c"]),
        ("a b c", " ", (0,), []),
        ("a b c", " ", (1,), ["a b c"]),
        ("a b c", " ", (2,), ["a", "b c"]),
        ("a b c", " ", (2**64 - 1,), ["a", "b", "c"]),
        (" a ", " ", (), ["", "a", ""]),
        ("", " ", (), [""]),
        ("", "", (), []),
        ("ö🗻x", "", (), ["ö", "🗻", "x"]),
        ("ö🗻x", "", (1,), ["ö🗻x"]),
        ("ö🗻x", "", (2,), ["ö", "🗻x"]),
        ("ö🗻x", "", (3,), ["ö", "🗻", "x"]),
        ("ö🗻x", "", (4,), ["ö", "🗻", "x"]),
    ],
)
def test_split(text: str, separator: str, limit: tuple[int, ...], expected: list[str]) -> None:
    gives(expected, strings.split(text, separator, *limit))


@given(st.text(max_size=20), st.text(min_size=1, max_size=2), st.integers(1, 5))
def test_join_undoes_split(text: str, separator: str, limit: int) -> None:
    assert strings.join(strings.split(text, separator, limit), separator) == text


def test_join() -> None:
    assert strings.join(["a", "", "b"]) == "ab"
    assert strings.join(["a", "", "b"], ", ") == "a, , b"
    assert strings.join([], ", ") == ""
    fails("no such overload: join of a list with items that are not strings", strings.join, ["a", 1])
    fails("no such overload: join of a list with items that are not strings", strings.join, [None])
    long = "x" * 1_000_000
    fails(f"join: the result would be longer than {MOST_CHARACTERS} characters", strings.join, [long] * 68)


def test_case_of_ascii_alone() -> None:
    assert strings.lower_ascii("AZaz09[]") == "azaz09[]"
    assert strings.upper_ascii("AZaz09{}") == "AZAZ09{}"
    assert strings.lower_ascii("ÄAK\u212a") == "Äak\u212a"
    assert strings.upper_ascii("äaß") == "äAß"


def test_trim() -> None:
    """Unicode's white space; neither zero-width spaces nor control characters that Python takes for spaces."""
    spaces = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
    assert strings.trim(f"{spaces}a b{spaces}") == "a b"
    assert strings.trim(spaces) == ""
    for kept in ("\u200b", "\ufeff", "\x1c", "\x1f", "\u180e"):
        assert strings.trim(f" {kept} ") == kept


def test_quote() -> None:
    assert strings.strings_quote('a"b\\c') == '"a\\"b\\\\c"'
    assert strings.strings_quote("\a\b\f\n\r\t\v") == '"\\a\\b\\f\\n\\r\\t\\v"'
    assert strings.strings_quote("é🗻'\0") == '"é🗻\'\0"'
    assert strings.strings_quote("a\ud800b") == '"a\ufffdb"'
    assert strings.strings_quote("") == '""'


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs", "Cc"))))
def test_what_is_quoted_is_a_literal_of_cel(text: str) -> None:
    assert getattr(parse(strings.strings_quote(text)), "value", None) == text


@pytest.mark.parametrize(
    ("name", "function", "arguments"),
    [
        ("charAt", strings.char_at, ("abc", 1)),
        ("indexOf", strings.index_of, ("abc", "b", 0)),
        ("lastIndexOf", strings.last_index_of, ("abc", "b", 0)),
        ("substring", strings.substring, ("abc", 1, 2)),
        ("replace", strings.replace, ("abc", "b", "c", 1)),
        ("split", strings.split, ("abc", "b", 1)),
        ("join", strings.join, ([], "b")),
        ("lowerAscii", strings.lower_ascii, ("abc",)),
        ("upperAscii", strings.upper_ascii, ("abc",)),
        ("trim", strings.trim, ("abc",)),
        ("strings.quote", strings.strings_quote, ("abc",)),
    ],
)
def test_types_of_arguments(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Each argument in turn is of every other type: no such overload."""
    names = {str: "string", int: "int", list: "list"}
    function(*arguments)
    for place, right in enumerate(arguments):
        for kind, wrong in (
            ("int", 1),
            ("string", "1"),
            ("uint", Uint(1)),
            ("bool", True),
            ("double", 1.0),
            ("null", None),
        ):
            if type(wrong) is not type(right):
                kinds = [names[type(argument)] for argument in arguments]
                kinds[place] = kind
                mixed = [*arguments[:place], wrong, *arguments[place + 1 :]]
                no_overload(f"{name}({', '.join(kinds)})", function, *mixed)
