"""The functions of CEL beyond its operators: times, and cel-go's extensions for strings, math, lists, sets, encoders, regex.

`table.py` has what the compiler wires: `FUNCTIONS` (name in CEL -> `Function`) and `OPERATIONS` (runtime name -> callable).
Functions take positional arguments, the receiver first, and raise `CelError` and nothing else, apart from RecursionError for
values nested deeper than Python's stack. This file imports nothing, and `times`, `time_text` and `time_operators` import nothing
of `transforms.cel`: so `runtime.py` can import them.

How the operators and conversions of `runtime.py` and `conversions.py` know times, each in its last branch, so that the usual paths
pay nothing:

- `times.TIMES` are among the types that have an order and are equal as in Python: both classes compare with themselves alone.
- `+`, `-`, int() and string() ask `time_operators`, which answers None to what is no operation on times.

The macro `list.sortBy(x, key)` calls `lists.sort_by`, with the list and the list of the keys of its items.
"""
