"""Checks of pipeline files beyond loading: what can never work, and what has no effect.

findings.py     what is said
view.py         a file as far as it can be understood, and the place of each part
effects.py      what each step reads of a record, and does to its fields
facts.py        what conditions say about a record, and about later conditions
types.py        CEL types, as far as they are known
overloads.py    which types an operator or a function takes, and gives
constants.py    constant parts of an expression that fail
schemas.py      what a JSON Schema says about fields
mistyped.py     bare names that are nearly those of metadata
whole.py        the value as a whole, from the source to the topics
state.py        what is known at one place: fields, types, facts
flow.py         the way of a record through the steps
topics.py       topics, names and tests, of one file and of all together
files.py        the whole
"""

from transforms.lint.files import lint_files
from transforms.lint.findings import Finding

__all__ = ["Finding", "lint_files"]
