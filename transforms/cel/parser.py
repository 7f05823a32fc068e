"""Text -> nodes, by the grammar that cel-python ships.

Only its grammar file is read. Importing celpy itself pulls in its evaluator, pendulum and jmespath, which nothing here needs.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from transforms.cel import functions, literals
from transforms.cel.nodes import (
    METADATA,
    And,
    Call,
    Conditional,
    Has,
    Index,
    ListOf,
    Literal,
    MapOf,
    Meta,
    Node,
    Or,
    Select,
    This,
)
from transforms.errors import CelSyntaxError

MAX_LENGTH = 20_000
MAX_DEPTH = 60
"""Levels of nesting. CPython's tokenizer allows 200 parentheses inside each other, and one level can become three."""

_Tree: TypeAlias = "Tree[Token]"

_BINARY = {
    "relation_lt": "<",
    "relation_le": "<=",
    "relation_gt": ">",
    "relation_ge": ">=",
    "relation_eq": "==",
    "relation_ne": "!=",
    "relation_in": "in",
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_mul": "*",
    "multiplication_div": "/",
    "multiplication_mod": "%",
}
_CONSTANTS = {"true": True, "false": False, "null": None}
_END = "$END"


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    spec = importlib.util.find_spec("celpy")
    assert spec is not None, "cel-python is a dependency"
    assert spec.origin is not None
    text = (Path(spec.origin).parent / "cel.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        parser="lalr",
        start="expr",
        g_regex_flags=re.MULTILINE,
        propagate_positions=True,
        maybe_placeholders=False,
        priority="invert",
    )


@lru_cache(maxsize=1024)
def parse(text: str) -> Node:
    """The tree of an expression; names of functions, their arities and literals are checked. Raises `CelSyntaxError`."""
    if not text.strip():
        raise CelSyntaxError("the expression is empty, expected CEL", 0)
    if len(text) > MAX_LENGTH:
        raise CelSyntaxError(f"the expression has {len(text)} characters, expected at most {MAX_LENGTH}", 0)
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(error, text) from None
    return _Builder().build(tree, 0)


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


def _start(tree: _Tree) -> int:
    return int(tree.meta.start_pos) if not tree.meta.empty else 0


def _trees(tree: _Tree) -> list[_Tree]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _token(tree: _Tree) -> Token:
    token = next(child for child in tree.children if isinstance(child, Token))
    assert isinstance(token, Token)
    return token


class _Builder:
    """Walks the parse tree. Rules with one child and no sign of their own are passed through without recursion."""

    def build(self, tree: _Tree, depth: int) -> Node:
        while (
            len(tree.children) == 1 and isinstance(tree.children[0], Tree) and tree.data not in ("list_lit", "map_lit")
        ):
            tree = tree.children[0]
        if depth > MAX_DEPTH:
            raise CelSyntaxError(
                f"the expression is nested too deeply, expected at most {MAX_DEPTH} levels", _start(tree)
            )
        build = getattr(self, f"_{tree.data}", None)
        assert build is not None, f"the grammar has a rule that this parser does not know: {tree.data}"
        node = build(tree, depth + 1)
        assert isinstance(node, Node)
        return node

    def _expr(self, tree: _Tree, depth: int) -> Node:
        condition, then, otherwise = (self.build(child, depth) for child in _trees(tree))
        return Conditional(_start(tree), condition, then, otherwise)

    def _operands(self, tree: _Tree, depth: int) -> tuple[Node, ...]:
        """`a && b && c` is one list: the grammar nests them to the left, one level per operator."""
        operands: list[Node] = []
        rule = tree.data
        while tree.data == rule and len(tree.children) == 2:
            tree, last = _trees(tree)
            operands.append(self.build(last, depth))
        return (self.build(tree, depth), *reversed(operands))

    def _conditionalor(self, tree: _Tree, depth: int) -> Node:
        return Or(_start(tree), self._operands(tree, depth))

    def _conditionaland(self, tree: _Tree, depth: int) -> Node:
        return And(_start(tree), self._operands(tree, depth))

    def _binary(self, tree: _Tree, depth: int) -> Node:
        first, right = _trees(tree)
        left = _trees(first)[0]
        return Call(_start(tree), _BINARY[first.data], (self.build(left, depth), self.build(right, depth)))

    _relation = _addition = _multiplication = _binary

    def _unary(self, tree: _Tree, depth: int) -> Node:
        sign, operand = _trees(tree)
        return Call(_start(tree), "neg" if sign.data == "unary_neg" else "not", (self.build(operand, depth),))

    def _ident(self, tree: _Tree, _depth: int) -> Node:
        token = _token(tree)
        name, offset = str(token), token.start_pos or 0
        if name in _CONSTANTS:
            return Literal(offset, _CONSTANTS[name])
        if name in functions.RESERVED:
            raise CelSyntaxError(f"{name!r} is a reserved word, expected a field: write this[{name!r}]", offset)
        if name in METADATA:
            return Meta(offset, name)
        return This(offset) if name == "this" else Select(offset, This(offset), name, bare=True)

    _dot_ident = _ident

    def _literal(self, tree: _Tree, _depth: int) -> Node:
        token = _token(tree)
        text, offset = str(token), token.start_pos or 0
        match token.type:
            case "INT_LIT":
                return Literal(offset, literals.int_literal(text, offset))
            case "UINT_LIT":
                return Literal(offset, literals.uint_literal(text, offset))
            case "FLOAT_LIT":
                return Literal(offset, literals.double_literal(text, offset))
            case "BYTES_LIT":
                return Literal(offset, literals.bytes_literal(text, offset))
            case "STRING_LIT" | "MLSTRING_LIT":
                return Literal(offset, literals.string_literal(text, offset))
        return Literal(offset, _CONSTANTS[text])

    def _member_dot(self, tree: _Tree, depth: int) -> Node:
        return Select(_start(tree), self.build(_trees(tree)[0], depth), str(_token(tree)))

    def _member_index(self, tree: _Tree, depth: int) -> Node:
        operand, index = (self.build(child, depth) for child in _trees(tree))
        if isinstance(index, Literal) and isinstance(index.value, str):
            return Select(_start(tree), operand, index.value)
        return Index(_start(tree), operand, index)

    def _member_object(self, tree: _Tree, _depth: int) -> Node:
        raise CelSyntaxError("messages are not supported, expected a map: {'name': value}", _start(tree))

    def _list_lit(self, tree: _Tree, depth: int) -> Node:
        return ListOf(_start(tree), self._arguments(_trees(tree), depth))

    def _map_lit(self, tree: _Tree, depth: int) -> Node:
        inits = _trees(tree)
        parts = [self.build(child, depth) for child in _trees(inits[0])] if inits else []
        return MapOf(_start(tree), tuple(zip(parts[::2], parts[1::2], strict=True)))

    def _arguments(self, lists: list[_Tree], depth: int) -> tuple[Node, ...]:
        return tuple(self.build(child, depth) for child in _trees(lists[0])) if lists else ()

    def _ident_arg(self, tree: _Tree, depth: int) -> Node:
        function = _token(tree)
        if function == "has":
            return self._has(tree, depth)
        _check(function, method=False)
        return _call(function, self._arguments(_trees(tree), depth))

    _dot_ident_arg = _ident_arg

    def _member_dot_arg(self, tree: _Tree, depth: int) -> Node:
        token = _token(tree)
        _check(token, method=True)
        receiver, *lists = _trees(tree)
        return _call(token, (self.build(receiver, depth), *self._arguments(lists, depth)))

    def _has(self, tree: _Tree, depth: int) -> Node:
        arguments = self._arguments(_trees(tree), depth)
        offset = _start(tree)
        field = arguments[0] if len(arguments) == 1 else None
        # A bare name stands for a field of the record, but the specification wants a selection: has(this.name).
        if not isinstance(field, Select) or field.bare:
            raise CelSyntaxError("has() takes one field, expected has(this.name)", offset)
        return Has(offset, field.operand, field.field)


def _check(token: Token, *, method: bool) -> None:
    """Refuses a function that does not exist, before its arguments are looked at: those of a macro are not CEL values."""
    name, offset = str(token), token.start_pos or 0
    function = functions.FUNCTIONS.get(name)
    if function is not None and (function.method if method else function.plain):
        return
    if function is not None:
        form = f"{name}(x)" if method else f"x.{name}(y)"
        raise CelSyntaxError(f"{name} is called in the wrong form, expected {form}", offset)
    if name in functions.NOT_YET:
        raise CelSyntaxError(f"{name}() is not supported yet", offset)
    close = difflib.get_close_matches(name, [*functions.FUNCTIONS, "has"], n=1)
    hint = (
        f"did you mean {close[0]!r}?"
        if close
        else "expected one of " + ", ".join(sorted([*functions.FUNCTIONS, "has"]))
    )
    raise CelSyntaxError(f"unknown function {name!r}, {hint}", offset)


def _call(token: Token, arguments: tuple[Node, ...]) -> Call:
    name, offset = str(token), token.start_pos or 0
    arity = functions.FUNCTIONS[name].arity
    if len(arguments) != arity:
        raise CelSyntaxError(f"{name} got {len(arguments)} arguments, expected {arity} (a receiver counts)", offset)
    return Call(offset, name, arguments)
