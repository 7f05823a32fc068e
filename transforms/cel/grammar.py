"""Text -> parse tree, by the grammar that cel-python ships and what it lacks.

Only its grammar file is read. Importing celpy itself pulls in its evaluator, pendulum and jmespath, which nothing here needs.
"""

from __future__ import annotations

import importlib.util
import re
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from transforms.errors import CelSyntaxError

MAX_LENGTH = 16_384
"""Characters of an expression."""

ParseTree: TypeAlias = "Tree[Token]"
_END = "$END"

_ADDITIONS = r"""
// cel-python 0.5 knows no optionals (`a.?b`, `a[?0]`, `[?x]`, `{?k: v}`), no quoted fields (a.`b-c`), no comma behind the last
// item of a list or map.
%override member : member_dot | member_dot_arg | member_index | member_object | member_opt_dot | member_opt_index | primary
%override member_dot : member "." (IDENT | ESC_IDENT)
member_opt_dot : member "." "?" (IDENT | ESC_IDENT)
member_opt_index : member "[" "?" expr "]"
%override list_lit : "[" [listinits] "]"
listinits : (_listinit ",")* _listinit [","]
_listinit : expr | optional_init
optional_init : "?" expr
%override map_lit : "{" [mapinits] "}"
%override mapinits : (mapinit ",")* mapinit [","]
mapinit : (expr | optional_init) ":" expr
ESC_IDENT : /`[a-zA-Z0-9_.\-\/ ]+`/

// In strings: no `\\` in front of a quote, where lark takes one away, and then a pattern needs exponential time.
// Its strings end at a quote that follows two backslashes wrongly in a raw string, and its `1.` swallows the dot of `1.f()`.
// A `1.` that is nothing else is let through to `literals.double_literal`, which refuses it with a better message.
%override FLOAT_LIT : /-?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?|-?[0-9]+[eE][+-]?[0-9]+|-?[0-9]+\.(?!\s*[.?_`a-zA-Z])/
%override STRING_LIT : /[rR]("[^"\r\n]*"|'[^'\r\n]*')|"(\\.|[^\\\r\n"])*"|'(\\.|[^\\\r\n'])*'/
%override MLSTRING_LIT.2 : /[rR]("{3}[\s\S]*?"{3}|'{3}[\s\S]*?'{3})|"{3}(\\[\s\S]|[^\\])*?"{3}|'{3}(\\[\s\S]|[^\\])*?'{3}/
%override BYTES_LIT.2 : /[bB]/ (MLSTRING_LIT | STRING_LIT)
"""


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    spec = importlib.util.find_spec("celpy")
    assert spec is not None, "cel-python is a dependency"
    assert spec.origin is not None
    text = (Path(spec.origin).parent / "cel.lark").read_text(encoding="utf-8")
    return Lark(
        text + _ADDITIONS,
        parser="lalr",
        start="expr",
        g_regex_flags=re.MULTILINE,
        propagate_positions=True,
        maybe_placeholders=False,
    )


def parse_tree(text: str) -> ParseTree:
    """Raises `CelSyntaxError`."""
    if not text.strip():
        raise CelSyntaxError("the expression is empty, expected CEL", 0)
    if len(text) > MAX_LENGTH:
        raise CelSyntaxError(f"the expression has {len(text)} characters, expected at most {MAX_LENGTH}", 0)
    try:
        return _grammar().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(error, text) from None


def _syntax_error(error: UnexpectedInput, text: str) -> CelSyntaxError:
    if isinstance(error, UnexpectedCharacters):
        offset = error.pos_in_stream or 0
        return CelSyntaxError(f"unexpected {text[offset]!r} in the expression", offset)
    assert isinstance(error, UnexpectedToken)
    expected = error.accepts or error.expected
    if "IDENT" in expected:
        wanted = "a name" if "INT_LIT" not in expected else "a value (a name, a literal or parentheses)"
    else:
        closing = [
            sign for name, sign in (("RPAR", ")"), ("RSQB", "]"), ("RBRACE", "}"), ("COLON", ":")) if name in expected
        ]
        wanted = "an operator or " + (f"'{closing[0]}'" if closing else "the end of the expression")
    if error.token.type == _END:
        return CelSyntaxError(f"the expression ends too early, expected {wanted}", len(text.rstrip()))
    offset = int(error.token.start_pos or 0)
    return CelSyntaxError(f"unexpected {str(error.token)!r} in the expression, expected {wanted}", offset)


def start(tree: ParseTree) -> int:
    return int(tree.meta.start_pos) if not tree.meta.empty else 0


def trees(tree: ParseTree) -> list[ParseTree]:
    return [child for child in tree.children if isinstance(child, Tree)]


def token(tree: ParseTree) -> Token:
    found = next(child for child in tree.children if isinstance(child, Token))
    assert isinstance(found, Token)
    return found


def inner(tree: ParseTree) -> ParseTree:
    """The first tree below that has more than one child or a sign of its own; parentheses are passed through, too."""
    while len(tree.children) == 1 and isinstance(tree.children[0], Tree) and tree.data not in _KEPT:
        tree = tree.children[0]
    return tree


_KEPT = frozenset({"list_lit", "map_lit", "optional_init", "listinits", "mapinits", "exprlist"})
