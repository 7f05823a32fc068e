"""Macros in the fast form: comprehensions; see the contract in `fast.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transforms.cel.code import Code
from transforms.cel.macros import RESULTS, WHOLE

if TYPE_CHECKING:
    from transforms.cel.fast import FastWriter
    from transforms.cel.nodes import Macro


def macro(writer: FastWriter, node: Macro) -> Code:
    if node.function == "bind":
        return _bind(writer, node)
    operand = writer.operand(node.range)
    if node.function in WHOLE:
        [body] = [writer.write(body).text for body in node.bodies]
        text = f"{node.function}({operand.text}, lambda {node.variables[0]}: {body})"
        return Code(text, RESULTS[node.function])
    before, rows = _rows(writer, node, operand)
    # What is read from the record stays what it is; keys of a map, which may be of any type, are not.
    plain = operand.plain and len(node.variables) == 1
    writer.variables[node.variables[-1]] = Code(node.variables[-1], "dyn", plain=operand.plain)
    loop = f"for {', '.join(node.variables)} in {rows}"
    code = _loop(writer, node, loop, plain=plain)
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


def _bind(writer: FastWriter, node: Macro) -> Code:
    value = writer.write(node.range)
    [name] = node.variables
    writer.variables[name] = Code(name, value.type, plain=value.plain)
    result = writer.write(node.bodies[0])
    return Code(f"({name} := {value.text}, {result.text})[1]", result.type, plain=result.plain)
