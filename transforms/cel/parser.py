"""Text -> nodes. Names of functions, their arities, macros and literals are checked here."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from transforms.cel import calls, functions, literals, names
from transforms.cel.grammar import ParseTree, inner, parse_tree, start, token, trees
from transforms.cel.names import Names
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
    Var,
    Wrong,
)
from transforms.cel.runtime import TYPES
from transforms.errors import CelSyntaxError

if TYPE_CHECKING:
    from lark import Token

MAX_DEPTH = 100
"""Levels of nesting, each operator, call and selection being one. CPython's tokenizer allows 200 parentheses inside each other."""

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
ANYTHING = Names()


@lru_cache(maxsize=1024)
def parse(text: str, known: Names = ANYTHING) -> Node:
    """The tree of an expression. Raises `CelSyntaxError`."""
    return Builder(known).build(parse_tree(text), 0)


def too_deep(offset: int) -> CelSyntaxError:
    return CelSyntaxError(f"the expression is nested too deeply, expected at most {MAX_DEPTH} levels", offset)


class Builder:
    """Walks the parse tree. Rules with one child and no sign of their own are passed through without recursion."""

    def __init__(self, known: Names) -> None:
        self._known = known
        self.scope: dict[str, Var] = {}
        """The variables of the macros around what is being built."""
        self.hiding = 0

    def build(self, tree: ParseTree, depth: int) -> Node:
        tree = inner(tree)
        if depth > MAX_DEPTH:
            raise too_deep(start(tree))
        build = getattr(self, f"_{tree.data}", None)
        assert build is not None, f"the grammar has a rule that this parser does not know: {tree.data}"
        node = build(tree, depth + 1)
        assert isinstance(node, Node)
        return node

    def refuse(self, message: str, offset: int) -> Node:
        if self._known.checked:
            raise CelSyntaxError(message, offset)
        return Wrong(offset, message)

    def _expr(self, tree: ParseTree, depth: int) -> Node:
        condition, then, otherwise = (self.build(child, depth) for child in trees(tree))
        return Conditional(start(tree), condition, then, otherwise)

    def _operands(self, tree: ParseTree, depth: int) -> tuple[Node, ...]:
        """`a && b && c` is one list: the grammar nests them to the left, one level per operator."""
        operands: list[Node] = []
        rule = tree.data
        while tree.data == rule and len(tree.children) == 2:
            tree, last = trees(tree)
            operands.append(self.build(last, depth))
        return (self.build(tree, depth), *reversed(operands))

    def _conditionalor(self, tree: ParseTree, depth: int) -> Node:
        return Or(start(tree), self._operands(tree, depth))

    def _conditionaland(self, tree: ParseTree, depth: int) -> Node:
        return And(start(tree), self._operands(tree, depth))

    def _binary(self, tree: ParseTree, depth: int) -> Node:
        first, second = trees(tree)
        sign = _BINARY[first.data]
        left, right = self.build(trees(first)[0], depth), self.build(second, depth)
        if sign in ("==", "!=", "in"):
            if names.gives_type(left):
                right = names.as_type(right)
            elif names.gives_type(right):
                left = names.as_type(left)
        return Call(start(tree), sign, (left, right))

    _relation = _addition = _multiplication = _binary

    def _unary(self, tree: ParseTree, depth: int) -> Node:
        sign, operand = trees(tree)
        return Call(start(tree), "neg" if sign.data == "unary_neg" else "not", (self.build(operand, depth),))

    def _ident(self, tree: ParseTree, _depth: int) -> Node:
        found = token(tree)
        name, offset = str(found), found.start_pos or 0
        if name in _CONSTANTS:
            return Literal(offset, _CONSTANTS[name])
        if name in self.scope:
            return Var(offset, self.scope[name].name, self.scope[name].bound)
        return self._root(tree, _depth)

    def _root(self, tree: ParseTree, _depth: int) -> Node:
        """A name that is no variable of a macro; `.name` never is one."""
        found = token(tree)
        name, offset = str(found), found.start_pos or 0
        declared = self._known.declared
        if name in functions.RESERVED:
            raise CelSyntaxError(f"{name!r} is a reserved word, expected a field: write this[{name!r}]", offset)
        if declared is not None and name not in declared:
            if name in TYPES:
                return Literal(offset, TYPES[name])
            return self.refuse(names.unknown_name(name, declared), offset)
        if declared is None and name in METADATA:
            return Meta(offset, name)
        return This(offset) if name == "this" else Select(offset, This(offset), name, bare=True)

    _dot_ident = _root

    def _literal(self, tree: ParseTree, _depth: int) -> Node:
        found = token(tree)
        text, offset = str(found), found.start_pos or 0
        match found.type:
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

    def _member_dot(self, tree: ParseTree, depth: int) -> Node:
        if self._known.declared is not None:
            # The longest prefix that is a variable, or a type, is one name.
            name = names.qualified(tree)
            if name and name.partition(".")[0] not in self.scope:
                if name in self._known.declared:
                    return Select(start(tree), This(start(tree)), name, bare=True)
                if name in TYPES:
                    return Literal(start(tree), TYPES[name])
        return Select(start(tree), self.build(trees(tree)[0], depth), _field(token(tree)))

    def _member_opt_dot(self, tree: ParseTree, depth: int) -> Node:
        return Select(start(tree), self.build(trees(tree)[0], depth), _field(token(tree)), optional=True)

    def _member_index(self, tree: ParseTree, depth: int) -> Node:
        operand, index = (self.build(child, depth) for child in trees(tree))
        optional = tree.data == "member_opt_index"
        if isinstance(index, Literal) and isinstance(index.value, str):
            return Select(start(tree), operand, index.value, optional=optional)
        return Index(start(tree), operand, index, optional)

    _member_opt_index = _member_index

    def _member_object(self, tree: ParseTree, _depth: int) -> Node:
        raise CelSyntaxError("messages are not supported, expected a map: {'name': value}", start(tree))

    def _list_lit(self, tree: ParseTree, depth: int) -> Node:
        items = [item for inits in trees(tree) for item in trees(inits)]
        values, optional = self._inits(items, depth)
        return ListOf(start(tree), values, optional)

    def _map_lit(self, tree: ParseTree, depth: int) -> Node:
        inits = [init for inits in trees(tree) for init in trees(inits)]
        keys, optional = self._inits([trees(init)[0] for init in inits], depth)
        values = (self.build(trees(init)[1], depth) for init in inits)
        return MapOf(start(tree), tuple(zip(keys, values, strict=True)), optional)

    def _inits(self, items: list[ParseTree], depth: int) -> tuple[tuple[Node, ...], frozenset[int]]:
        optional = frozenset(index for index, item in enumerate(items) if item.data == "optional_init")
        values = (trees(item)[0] if index in optional else item for index, item in enumerate(items))
        return tuple(self.build(value, depth) for value in values), optional

    def arguments(self, tree: ParseTree, depth: int) -> tuple[Node, ...]:
        return tuple(self.build(child, depth) for child in calls.argument_trees(tree))

    def _ident_arg(self, tree: ParseTree, depth: int) -> Node:
        function = token(tree)
        return self._has(tree, depth) if function == "has" else calls.plain(self, function, tree, depth)

    _dot_ident_arg = _ident_arg

    def _member_dot_arg(self, tree: ParseTree, depth: int) -> Node:
        space = names.qualified(inner(trees(tree)[0]))
        if space is not None and space in names.NAMESPACES and space not in self.scope:
            return calls.namespaced(self, space, tree, depth)
        return calls.method(self, tree, depth)

    def _has(self, tree: ParseTree, depth: int) -> Node:
        arguments = self.arguments(tree, depth)
        offset = start(tree)
        field = arguments[0] if len(arguments) == 1 else None
        # A bare name stands for a field of the record, but the specification wants a selection: has(this.name).
        if not isinstance(field, Select) or field.bare or field.optional:
            raise CelSyntaxError("has() takes one field, expected has(this.name)", offset)
        return Has(offset, field.operand, field.field)


def _field(name: Token) -> str:
    """The name of a field, which may be quoted: `content-type`."""
    return str(name).strip("`")
