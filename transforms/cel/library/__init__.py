"""The functions of CEL beyond its operators: times, and cel-go's extensions for strings, math, lists, sets, encoders, regex.

`table.py` has what the compiler wires: `FUNCTIONS` (name in CEL -> `Function`) and `OPERATIONS` (runtime name -> callable).
Functions take positional arguments, the receiver first, and raise `CelError` and nothing else, apart from RecursionError for
values nested deeper than Python's stack. This file imports nothing, and `times`, `time_text` and `time_operators` import nothing
of `transforms.cel`: so `runtime.py` can import them.

What the operators and conversions need of times, each in its last branch, so that the usual paths pay nothing:

- `times.TYPE_NAMES` into the names of types; `times.TIMES` into the types that have an order and are equal as in Python:
  both classes compare with themselves alone, so that `==`, `<` and the rest do what CEL says.
- `+` and `-`: `time_operators.add_time(left, right)` and `subtract_time(left, right)`; None means that it is no operation
  on times, and the operator raises its own "no such overload".
- `int()` and `string()`: `time_operators.time_to_int(value)` and `time_to_string(value)`; None likewise.
- JSON holds no times: `storable` stores what `time_to_string` says, as protobuf's JSON form does, or refuses.

The macro `list.sortBy(x, key)` calls `sort_by(list, keys)`: the list, and the list of the keys of its items.
"""
