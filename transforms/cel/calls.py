"""Calls of functions and macros: whether they are there, and what they take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from transforms.cel.grammar import inner, start, token, trees
from transforms.cel.macros import MACROS
from transforms.cel.names import FUNCTIONS, MACRO_NAMES, unknown_function
from transforms.cel.nodes import Call, Lazy, Macro, Node, Var
from transforms.cel.optionals import LAZY
from transforms.errors import CelSyntaxError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lark import Token

    from transforms.cel.grammar import ParseTree
    from transforms.cel.parser import Builder

_NAME = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


def argument_trees(tree: ParseTree) -> list[ParseTree]:
    """Of a call; the receiver of a method is none of them."""
    return [child for part in trees(tree) if part.data == "exprlist" for child in trees(part)]


def plain(builder: Builder, name: Token, tree: ParseTree, depth: int) -> Node:
    """`f(x)`."""
    offset = name.start_pos or 0
    function = FUNCTIONS.get(name)
    if function is not None and function.plain:
        return _call(builder, str(name), builder.arguments(tree, depth), offset)
    if function is not None or name in MACRO_NAMES:
        form = f"x.{name}(y)" if function is None or function.arity > 1 else f"x.{name}()"
        return builder.refuse(f"{name} is called in the wrong form, expected {form}", offset)
    return builder.refuse(unknown_function(str(name)), offset)


def namespaced(builder: Builder, space: str, tree: ParseTree, depth: int) -> Node:
    """`math.abs(x)`, and methods of a field that has the name of a namespace."""
    name = f"{space}.{token(tree)}"
    if name == "cel.bind":
        return _bind(builder, tree, depth)
    if name in FUNCTIONS:
        return _call(builder, name, builder.arguments(tree, depth), start(tree))
    if str(token(tree)) in MACRO_NAMES or str(token(tree)) in FUNCTIONS:
        return method(builder, tree, depth)
    return builder.refuse(unknown_function(name), start(tree))


def method(builder: Builder, tree: ParseTree, depth: int) -> Node:
    """`x.f(y)`."""
    name, offset = str(token(tree)), token(tree).start_pos or 0
    # The name is looked at before the arguments are: those of a macro are not CEL values.
    if name in MACRO_NAMES:
        return _macro(builder, tree, depth)
    function = FUNCTIONS.get(name)
    if function is not None and function.method:
        receiver = builder.build(trees(tree)[0], depth)
        return _call(builder, name, (receiver, *builder.arguments(tree, depth)), offset)
    if function is not None:
        return builder.refuse(f"{name} is called in the wrong form, expected {name}(x)", offset)
    return builder.refuse(unknown_function(name), offset)


def _call(builder: Builder, name: str, arguments: tuple[Node, ...], offset: int) -> Node:
    function = FUNCTIONS[name]
    if not function.takes(len(arguments)):
        most = function.arity if function.most is None else function.most
        wanted = str(most) if most == function.arity else f"{function.arity} to {most}"
        counted = " (a receiver counts)" if function.method else ""
        return builder.refuse(f"{name} got {len(arguments)} arguments, expected {wanted}{counted}", offset)
    if name in LAZY:
        arguments = (*arguments[:-1], Lazy(arguments[-1].offset, arguments[-1]))
    return Call(offset, name, arguments)


def _variable(builder: Builder, tree: ParseTree, *, bound: bool = False) -> tuple[str, Var]:
    """(name, variable)."""
    tree = inner(tree)
    if tree.data != "ident" or not _NAME.fullmatch(token(tree)) or token(tree) in ("true", "false", "null"):
        raise CelSyntaxError("a macro declares a variable here, expected a name", start(tree))
    name = str(token(tree))
    # Python forbids `:=` to a variable of a comprehension around it, so what hides another variable gets a number.
    builder.hiding += name in builder.scope
    return name, Var(start(tree), f"v{builder.hiding}_{name}" if name in builder.scope else f"v_{name}", bound)


def _scoped(
    builder: Builder, variables: Sequence[tuple[str, Var]], bodies: list[ParseTree], depth: int
) -> tuple[Node, ...]:
    outer = builder.scope
    builder.scope = {**outer, **dict(variables)}
    try:
        return tuple(builder.build(body, depth) for body in bodies)
    finally:
        builder.scope = outer


def _macro(builder: Builder, tree: ParseTree, depth: int) -> Node:
    name, arguments = str(token(tree)), argument_trees(tree)
    forms = [form for form in MACROS if form.name == name]
    fitting = [form for form in forms if form.variables + form.arguments == len(arguments)]
    # `map(x, condition, result)` has one variable, `exists(k, v, condition)` two: no macro has both forms.
    if not fitting:
        expected = " or ".join(
            f"x.{name}({', '.join([*'kv'[2 - form.variables :], *_ARGUMENTS[form.arguments]])})" for form in forms
        )
        return builder.refuse(f"{name} got {len(arguments)} arguments, expected {expected}", token(tree).start_pos or 0)
    form = fitting[0]
    variables = [_variable(builder, argument) for argument in arguments[: form.variables]]
    if len({variable for variable, _ in variables}) < len(variables):
        raise CelSyntaxError("a macro declares two variables of one name", start(arguments[1]))
    operand = builder.build(trees(tree)[0], depth)
    bodies = _scoped(builder, variables, arguments[form.variables :], depth)
    return Macro(start(tree), form.runtime, operand, tuple(var.name for _, var in variables), bodies)


_ARGUMENTS = {1: ["result"], 2: ["condition", "result"]}


def _bind(builder: Builder, tree: ParseTree, depth: int) -> Node:
    arguments = argument_trees(tree)
    if len(arguments) != 3:
        raise CelSyntaxError(
            f"cel.bind got {len(arguments)} arguments, expected cel.bind(name, value, result)", start(tree)
        )
    variable = _variable(builder, arguments[0], bound=True)
    value = builder.build(arguments[1], depth)
    bodies = _scoped(builder, [variable], [arguments[2]], depth)
    return Macro(start(tree), "bind", value, (variable[1].name,), bodies)
