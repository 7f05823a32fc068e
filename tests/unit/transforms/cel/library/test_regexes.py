"""The extension `regex`."""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.transforms.cel.library.checks import fails, gives, no_overload
from transforms.cel.library.limits import MOST_CHARACTERS
from transforms.cel.library.regexes import regex_extract, regex_extract_all, regex_replace
from transforms.cel.values import NONE, Uint

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTIONS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("regex.replace", regex_replace, ("a", "a", "b")),
    ("regex.extract", regex_extract, ("a", "a")),
    ("regex.extractAll", regex_extract_all, ("a", "a")),
]


@pytest.mark.parametrize(
    ("text", "pattern", "replacement", "limit", "expected"),
    [
        ("a1b22", "[0-9]+", "#", (), "a#b#"),
        ("a1b22", "[0-9]+", "#", (-1,), "a#b#"),
        ("a1b22", "[0-9]+", "#", (0,), "a1b22"),
        ("a1b22", "[0-9]+", "#", (1,), "a#b22"),
        ("a1b22", "[0-9]+", "#", (2**64 - 1,), "a#b#"),
        ("a1b22", "x", "#", (), "a1b22"),
        ("john smith", r"(\w+) (\w+)", r"\2, \1 (\0)", (), "smith, john (john smith)"),
        ("abc", "b", r"\\1", (), r"a\1c"),
        ("abc", "b", "$1\n", (), "a$1\nc"),
        ("ab", "(a)|(b)", r"<\1\2>", (), "<a><b>"),
        ("ab", "(?P<name>a)", r"\1\1", (), "aab"),
        ("ö🗻é", "🗻", "-", (), "ö-é"),
        ("abc", "", "-", (), "-a-b-c-"),
        ("abc", "", "-", (2,), "-a-bc"),
        ("baac", "a*", "-", (), "-b-c-"),
        ("", "^$", "x", (), "x"),
        ("aXbxc", "(?i)x", "", (), "abc"),
        ("abc", "b", "", (), "ac"),
    ],
)
def test_replace(text: str, pattern: str, replacement: str, limit: tuple[int, ...], expected: str) -> None:
    """An empty match right after another match does not count, as in Go."""
    gives(expected, regex_replace(text, pattern, replacement, *limit))


def test_replacements_that_are_none() -> None:
    syntax = r"regex.replace: in the replacement \ must be followed by a digit or \ "
    for replacement in ("\\", "a\\", "\\a", "\\\\\\"):
        fails(syntax, regex_replace, "a", "a", replacement)
    group = "regex.replace: the replacement names a group that the regular expression does not have"
    fails(group, regex_replace, "a", "a", "\\1")
    fails(group, regex_replace, "a", "(a)", "\\2")


def test_replace_is_bounded() -> None:
    text = "x" * 10_000
    fails(
        f"regex.replace: the result would be longer than {MOST_CHARACTERS} characters", regex_replace, text, "x", text
    )


def test_extract() -> None:
    """The match, or its group; nothing, where there is none or the group matched nothing."""
    gives("22", regex_extract("a-22", "[0-9]+").value)
    gives("22", regex_extract("a-22-33", "-([0-9]+)").value)
    gives("", regex_extract("abc", "x*").value)
    assert regex_extract("abc", "x") is NONE
    assert regex_extract("abc", "b(x)?") is NONE
    assert regex_extract("abc", "b(x*)") is NONE
    fails("regex.extract: the regular expression has more than one group", regex_extract, "ab", "(a)(b)")


def test_extract_all() -> None:
    gives(["1", "22"], regex_extract_all("a1b22", "[0-9]+"))
    gives(["1", "22"], regex_extract_all("a1b22", "[a-z]([0-9]+)"))
    gives(["x"], regex_extract_all("a,ax", "a(x)?"))
    gives([], regex_extract_all("abc", "x"))
    gives(["", "aa", ""], regex_extract_all("baac", "a*"))
    fails("regex.extractAll: the regular expression has more than one group", regex_extract_all, "ab", "(a)(b)")


@pytest.mark.parametrize(("name", "function", "arguments"), FUNCTIONS)
def test_arguments(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Only strings, patterns of RE2 alone, and only what UTF-8 can hold."""
    names = ["string"] * len(arguments)
    for place in range(len(arguments)):
        kinds = [*names[:place], "bytes", *names[place + 1 :]]
        wrong = [*arguments[:place], b"a", *arguments[place + 1 :]]
        no_overload(f"{name}({', '.join(kinds)})", function, *wrong)
    rest = arguments[2:]
    for pattern in ("(", "[z-a]", "(?=a)", r"(a)\1", "a{2000}"):
        fails("not a regular expression", function, "a", pattern, *rest)
    pair = "the string has half a surrogate pair, which UTF-8 cannot hold"
    fails(pair, function, "\ud800", "a", *rest)
    fails(pair, function, "a", "\ud800", *rest)


def test_types_of_the_limit() -> None:
    no_overload("regex.replace(string, string, string, uint)", regex_replace, "a", "a", "b", Uint(1))
    no_overload("regex.replace(string, string, string, bool)", regex_replace, "a", "a", "b", True)


def test_time_is_linear() -> None:
    """The pattern that makes other engines try 2^n ways. Of the processor's time: others may need it too."""
    before = thread_time()
    assert regex_extract("a" * 50_000 + "!", "^(?:a|a?)+$") is NONE
    assert thread_time() - before < 5
