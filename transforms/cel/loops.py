"""Macros in the fast form: comprehensions; see the contract in `fast.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transforms.cel.code import Code
from transforms.cel.macros import RESULTS, WHOLE

if TYPE_CHECKING:
    from transforms.cel.fast import FastWriter
    from transforms.cel.nodes import Macro


def macro(writer: FastWriter, node: Macro) -> Code:
    operand = (writer.write if node.function == "bind" else writer.operand)(node.range)
    outer = writer.variables
    writer.variables = outer | {name: Code(name, "dyn") for name in node.variables}
    # What is read from the record stays what it is; keys of a map, which may be of any type, are not.
    last = node.variables[-1]
    writer.variables[last] = Code(last, operand.type if node.function == "bind" else "dyn", plain=operand.plain)
    if node.function == "bind":
        code = _bind(writer, node, operand)
    elif node.function in WHOLE:
        body = writer.write(node.bodies[0]).text
        code = Code(f"{node.function}({operand.text}, lambda {last}: {body})", RESULTS[node.function])
    else:
        code = _comprehension(writer, node, operand)
    writer.variables = outer
    return code


def _comprehension(writer: FastWriter, node: Macro, operand: Code) -> Code:
    before, rows = _rows(writer, node, operand)
    loop = f"for {', '.join(node.variables)} in {rows}"
    code = _loop(writer, node, loop, plain=operand.plain and len(node.variables) == 1)
    return Code(f"({before}, {code.text})[1]", code.type, plain=code.plain) if before else code


def _rows(writer: FastWriter, node: Macro, operand: Code) -> tuple[str, str]:
    """(what has to be evaluated before the loop, what the loop goes through)."""
    rows = operand.text
    if len(node.variables) == 2 or operand.type != "list":
        rows = f"{'items' if len(node.variables) == 1 else 'pairs'}({operand.text})"
    if ":=" not in rows:
        return "", rows
    # Python forbids `:=` in what a comprehension goes through.
    kept = writer.temporary()
    return f"{kept} := {rows}", kept


def _loop(writer: FastWriter, node: Macro, loop: str, *, plain: bool) -> Code:
    function, bodies = node.function, node.bodies
    if function in ("all_", "exists"):
        return Code(f"{_ANY[function]}({writer.truth(bodies[0])} {loop})", "bool", plain=True)
    if function == "exists_one":
        return Code(f"([{writer.truth(bodies[0])} {loop}].count(True) == 1)", "bool", plain=True)
    if function == "filter_":
        return Code(f"[{node.variables[0]} {loop} if {writer.truth(bodies[0])}]", "list", plain=plain)
    condition = f" if {writer.truth(bodies[0])}" if len(bodies) == 2 else ""
    result = writer.write(bodies[-1])
    if function == "map_":
        return Code(f"[{result.text} {loop}{condition}]", "list", plain=result.plain)
    if function == "transform_map":
        return Code(f"{{as_key({node.variables[0]}): {result.text} {loop}{condition}}}", "map")
    assert function == "transform_map_entry"
    return Code(f"merged([{result.text} {loop}{condition}])", "map")


_ANY = {"all_": "all", "exists": "any"}


def _bind(writer: FastWriter, node: Macro, value: Code) -> Code:
    result = writer.write(node.bodies[0])
    text = f"({node.variables[0]} := {value.text}, {result.text})[1]"
    return Code(text, result.type, plain=result.plain)
