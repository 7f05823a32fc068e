"""What is refused when an expression is compiled, and at which character of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from transforms.cel import Constants, compile_expression
from transforms.cel.grammar import MAX_LENGTH
from transforms.cel.parser import MAX_DEPTH
from transforms.errors import CelSyntaxError

REFUSED = [
    ("", 0, "the expression is empty, expected CEL"),
    ("  ", 0, "the expression is empty, expected CEL"),
    ("a &&", 4, "the expression ends too early, expected a value (a name, a literal or parentheses)"),
    ("a == ", 4, "the expression ends too early, expected a value (a name, a literal or parentheses)"),
    ("a.", 2, "the expression ends too early, expected a name"),
    ("(a", 2, "the expression ends too early, expected an operator or ')'"),
    ("[a", 2, "the expression ends too early, expected an operator or ']'"),
    ("a b", 2, "unexpected 'b' in the expression, expected an operator or the end of the expression"),
    ("a ++ b", 3, "unexpected '+' in the expression, expected a value (a name, a literal or parentheses)"),
    ("a = 1", 2, "unexpected '=' in the expression"),
    ("a & b", 2, "unexpected '&' in the expression"),
    ("a == 'x", 5, 'unexpected "\'" in the expression'),
    (
        "1 + 9223372036854775808",
        4,
        "9223372036854775808 does not fit an int, expected -9223372036854775808 to 9223372036854775807",
    ),
    ("18446744073709551616u", 0, "18446744073709551616u does not fit a uint, expected 0u to 18446744073709551615u"),
    ("-1u", 0, "-1u does not fit a uint, expected 0u to 18446744073709551615u"),
    ("1e999", 0, "1e999 does not fit a double"),
    ("1. == 1.0", 0, "1. has no digits behind the point, expected 1.0"),
    ("[a, -2.]", 4, "-2. has no digits behind the point, expected -2.0"),
    (
        "1" * 5_000,
        0,
        "11111111111111111111... does not fit an int, expected -9223372036854775808 to 9223372036854775807",
    ),
    ("1" * 5_000 + "u", 0, "11111111111111111111... does not fit a uint, expected 0u to 18446744073709551615u"),
    ("1" * 5_000 + ".0", 0, "11111111111111111111... does not fit a double"),
    ('"' + "\\" * 5_001, 0, "unexpected '\"' in the expression"),
    (r"a == '\q'", 5, r"\q is not an escape sequence of a string"),
    (r"'\ud800'", 0, r"\ud800 is not a Unicode character"),
    (r"b'\u0041'", 0, r"\u0041 is not an escape sequence of bytes"),
    ("while", 0, "'while' is a reserved word, expected a field: write this['while']"),
    (
        "1 + siez(a)",
        4,
        "unknown function 'siez', did you mean 'size'?",
    ),
    (
        "foo(1)",
        0,
        "unknown function 'foo', expected one of those in docs/cel.md",
    ),
    ("a.starts('b')", 2, "unknown function 'starts', did you mean 'startsWith'?"),
    ("contains(a, b)", 0, "contains is called in the wrong form, expected x.contains(y)"),
    ("a.int()", 2, "int is called in the wrong form, expected int(x)"),
    ("size()", 0, "size got 0 arguments, expected 1 (a receiver counts)"),
    ("a.size(1)", 2, "size got 2 arguments, expected 1 (a receiver counts)"),
    ("timestamp()", 0, "timestamp got 0 arguments, expected 1"),
    ("a.substring(1, 2, 3)", 2, "substring got 4 arguments, expected 2 to 3 (a receiver counts)"),
    ("math.absolute(a)", 0, "unknown function 'math.absolute', did you mean 'math.abs'?"),
    ("strings.quot(a)", 0, "unknown function 'strings.quot', did you mean 'strings.quote'?"),
    ("a.mapp(x, x)", 2, "unknown function 'mapp', did you mean 'map'?"),
    ("all(a, x, x)", 0, "all is called in the wrong form, expected x.all(y)"),
    ("items.all(x)", 6, "all got 1 arguments, expected x.all(v, result) or x.all(k, v, result)"),
    ("items.map(x, 1, 2, 3)", 6, "map got 4 arguments, expected x.map(v, result) or x.map(v, condition, result)"),
    ("items.all(x.y, true)", 10, "a macro declares a variable here, expected a name"),
    ("items.all(1, true)", 10, "a macro declares a variable here, expected a name"),
    ("items.all(true, true)", 10, "a macro declares a variable here, expected a name"),
    ("items.all(.x, true)", 10, "a macro declares a variable here, expected a name"),
    ("items.all(x, x, true)", 13, "a macro declares two variables of one name"),
    ("cel.bind(x, 1)", 0, "cel.bind got 2 arguments, expected cel.bind(name, value, result)"),
    ("cel.bind(1, 1, 1)", 9, "a macro declares a variable here, expected a name"),
    ("a.?b", 0, "the expression gives optional, expected a value that JSON can hold"),
    ("type(a)", 0, "the expression gives type, expected a value that JSON can hold"),
    ("has(a.?b)", 0, "has() takes one field, expected has(this.name)"),
    ("a.`b", 2, "unexpected '`' in the expression"),
    ("`a`", 0, "unexpected '`a`' in the expression, expected a value (a name, a literal or parentheses)"),
    ("[1,,]", 3, "unexpected ',' in the expression, expected a value (a name, a literal or parentheses)"),
    ("size(a,)", 7, "unexpected ')' in the expression, expected a value (a name, a literal or parentheses)"),
    ("has(a)", 0, "has() takes one field, expected has(this.name)"),
    ("has(a[0])", 0, "has() takes one field, expected has(this.name)"),
    ("has(a.b, c)", 0, "has() takes one field, expected has(this.name)"),
    ("Order{id: 1}", 0, "messages are not supported, expected a map: {'name': value}"),
    ("items.all(i, i.matches('('))", 23, "'(' is not a regular expression, expected RE2 syntax"),
    ("name.matches('(')", 13, "'(' is not a regular expression, expected RE2 syntax"),
    ("a" * (MAX_LENGTH + 1), 0, f"the expression has {MAX_LENGTH + 1} characters, expected at most {MAX_LENGTH}"),
]


@pytest.mark.parametrize(("text", "offset", "message"), REFUSED, ids=[text[:30] for text, _, _ in REFUSED])
def test_refused(text: str, offset: int, message: str) -> None:
    """The message says what is wrong and what was expected; the offset is where it begins."""
    with pytest.raises(CelSyntaxError) as caught:
        compile_expression(text, "json", Constants())
    assert (offset, message) == (caught.value.offset, caught.value.message)


@pytest.mark.parametrize("opening", ["!", "[", "-(", "{'a': "])
def test_depth_is_limited(opening: str) -> None:
    """Nesting beyond the limit is refused with a message, not by a crash; within it everything compiles."""
    closing = {"!": "", "[": "]", "-(": ")", "{'a': ": "}"}[opening]
    with pytest.raises(CelSyntaxError, match=f"nested too deeply, expected at most {MAX_DEPTH} levels"):
        compile_expression(opening * 900 + "a" + closing * 900, "json", Constants())
    levels = MAX_DEPTH // 3
    compiled = compile_expression(opening * levels + "a" + closing * levels, "json", Constants())
    compile(compiled.fast, "", "eval")
    compile(compiled.exact, "", "eval")


def test_parentheses_alone_are_no_depth() -> None:
    """They leave nothing behind in the generated source."""
    assert compile_expression("(" * 900 + "a" + ")" * 900, "json", Constants()).fast == "r['a']"


@pytest.mark.parametrize("sign", ["+", "*", "==", "<", "-", "&&", "||", "? 1 :"])
def test_long_chains_compile_or_are_refused(sign: str) -> None:
    """Each length of a chain either compiles to Python that Python accepts, or is refused as too deep."""
    refused: list[str] = []
    for count in (10, 40, 55, 80, 300):
        text = f" {sign} ".join(["a"] * count)
        try:
            compiled = compile_expression(text, "json", Constants())
        except CelSyntaxError as error:
            refused.append(error.message)
            continue
        compile(compiled.fast, "", "eval")
        compile(compiled.exact, "", "eval")
    assert {"the expression is nested too deeply, expected at most 100 levels"} >= set(refused)


def test_wrong_kind() -> None:
    """A step that needs a bool says so when the file is read, where the type is known."""
    with pytest.raises(CelSyntaxError) as caught:
        compile_expression("1 + 1", "bool", Constants())
    assert (caught.value.offset, caught.value.message) == (0, "the expression gives int, expected bool")


def test_user_text_is_never_python() -> None:
    """Names and strings reach the generated source only as literals."""
    compiled = compile_expression("this['\\'] + __import__(\\'os\\') #'] == __class__", "bool", Constants())
    names = set(compile(compiled.fast, "", "eval").co_names) | set(compile(compiled.exact, "", "eval").co_names)
    assert {"SCALARS", "eq", "field", "r", "t1", "t2", "truth", "type"} == names


def test_the_evaluator_of_cel_python_is_not_imported() -> None:
    """Importing it costs more than everything else of the transforms together."""
    code = "import sys, transforms.loading; print(sorted({'celpy', 'pendulum', 'jmespath'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
