"""CEL expressions, compiled to Python source.

    grammar.py   text -> parse tree, by cel-python's grammar and what it lacks
    parser.py, calls.py, names.py
                 parse tree -> nodes; names, arities, macros and literals are checked here
    folding.py   constant parts are computed once
    exact.py     nodes -> Python that follows the specification to the letter: every operation is a call of runtime.py
    fast.py, inline.py, loops.py
                 nodes -> Python for the usual types, in line; it raises where it is not sure
    runtime.py, containers.py, text.py, conversions.py, macros.py, optionals.py, library/
                 the operations and functions, with CEL's errors
    conformance.py, known_failures.txt
                 runs cel-spec's cases; docs/cel.md says what there is

An expression becomes both: the generated pipeline runs the fast one, and where that raises anything of `FALLBACK` the exact
one decides, between a value (`&&` and `||` absorb errors) and a `CelError` with a clear message. So the fast code needs
neither the messages nor the rare cases, and a `try` costs nothing in Python 3.11 as long as nothing is raised.
"""

from transforms.cel.compile import FALLBACK, Expression, compile_expression
from transforms.cel.constants import Constants

__all__ = ["FALLBACK", "Constants", "Expression", "compile_expression"]
