"""CEL expressions, compiled to Python source.

    parser.py    text -> nodes, by cel-python's grammar; names and arities are checked here
    folding.py   constant parts are computed once
    exact.py     nodes -> Python that follows the specification to the letter: every operation is a call of runtime.py
    fast.py      nodes -> Python for the usual types, in line; it raises where it is not sure
    runtime.py, containers.py, text.py, conversions.py
                 the operations, with CEL's errors

An expression becomes both: the generated pipeline runs the fast one, and where that raises anything of `FALLBACK` the exact
one decides, between a value (`&&` and `||` absorb errors) and a `CelError` with a clear message. So the fast code needs
neither the messages nor the rare cases, and a `try` costs nothing in Python 3.11 as long as nothing is raised.
"""

from transforms.cel.compile import FALLBACK, Expression, compile_expression
from transforms.cel.constants import Constants

__all__ = ["FALLBACK", "Constants", "Expression", "compile_expression"]
