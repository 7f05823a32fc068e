"""What is known of a record that got as far as here, from the conditions that it met on its way.

A condition is decided only if it follows from these for every record; else the answer is None. "False" means never true (an
expression may fail instead), "True" never false.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from transforms.cel.nodes import And, Call, Conditional, ListOf, Literal, Node, Or

Shape: TypeAlias = tuple[Any, ...]
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ROUNDED_FROM = 2**53
"""From here on an int is rounded to a double when it is compared with one (`runtime.eq`), and two ints may equal one double: then
nothing follows from a comparison, and none is made use of."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that one expression can still have; keys as `_key` makes them."""

    only: frozenset[Any] | None = None
    never: frozenset[Any] = frozenset()
    low: float = -math.inf
    above: bool = False
    """More than `low`, not equal."""
    high: float = math.inf
    below: bool = False
    number: bool = False
    """Known to be a number, and not NaN."""

    def allows(self, key: Any) -> bool:
        if key in self.never or (self.only is not None and key not in self.only):
            return False
        if not self._bounded:
            return True
        if key[0] != "number":
            return not self.number
        value = key[1]
        return not (
            value < self.low
            or value > self.high
            or (self.above and value == self.low)
            or (self.below and value == self.high)
        )

    @property
    def _bounded(self) -> bool:
        return self.number or self.low > -math.inf or self.high < math.inf

    def remaining(self) -> frozenset[Any] | None:
        return None if self.only is None else frozenset(key for key in self.only if self.allows(key))

    def at_most(self, value: float, *, open_: bool) -> Domain:
        if value < self.high or (value == self.high and open_):
            return replace(self, high=value, below=open_)
        return self

    def at_least(self, value: float, *, open_: bool) -> Domain:
        if value > self.low or (value == self.low and open_):
            return replace(self, low=value, above=open_)
        return self


@dataclass(slots=True)
class Facts:
    domains: dict[Shape, Domain] = field(default_factory=dict)
    known: dict[Shape, bool] = field(default_factory=dict)
    """Conditions that were true, or false, as a whole."""

    def copy(self) -> Facts:
        return Facts(dict(self.domains), dict(self.known))

    def forget(self, name: str) -> None:
        """A field has another value now."""
        self.domains = {shape: domain for shape, domain in self.domains.items() if not _read_by(shape) & {name, ""}}
        self.known = {shape: truth for shape, truth in self.known.items() if not _read_by(shape) & {name, ""}}

    def forget_except(self, names: set[str]) -> None:
        """All but these fields are gone."""
        self.domains = {shape: domain for shape, domain in self.domains.items() if _read_by(shape) <= names}
        self.known = {shape: truth for shape, truth in self.known.items() if _read_by(shape) <= names}

    def decide(self, node: Node) -> bool | None:  # noqa: PLR0911 - one per kind of node
        if isinstance(node, Literal):
            return node.value if isinstance(node.value, bool) else None
        if (known := self.known.get(shape(node))) is not None:
            return known
        match node:
            case And(_, operands):
                return self._decide_and(operands, truth=True)
            case Or(_, operands):
                # By De Morgan's law the negation of an `and`.
                decided = self._decide_and(operands, truth=False)
                return None if decided is None else not decided
            case Call(_, "not", (operand,)):
                decided = self.decide(operand)
                return None if decided is None else not decided
            case Conditional(_, condition, then, otherwise):
                chosen = self.decide(condition)
                return None if chosen is None else self.decide(then if chosen else otherwise)
            case Call(_, "==" | "!=" as sign, args):
                decided = self._decide_equal(args)
                return decided if decided is None or sign == "==" else not decided
            case Call(_, "in", (value, ListOf(_, items))) if (keys := _keys(items)) is not None:
                return self._decide_in(value, keys)
            case Call(_, "<" | "<=" | ">" | ">=", _):
                return self._decide_order(node)
        return None

    def _decide_and(self, operands: tuple[Node, ...], *, truth: bool) -> bool | None:
        """Each operand is looked at with what the ones before it say."""
        facts, all_true = self.copy(), True
        for operand in operands:
            decided = facts.decide(operand)
            if decided is (not truth):
                return False
            all_true = all_true and decided is truth
            facts.assume(operand, truth=truth)
        return True if all_true else None

    def _decide_equal(self, args: tuple[Node, ...]) -> bool | None:
        value, literal = _sides(args)
        if value is None or literal is None:
            return None
        return self._decide_in(value, frozenset([_key(literal)]))

    def _decide_in(self, value: Node, keys: frozenset[Any]) -> bool | None:
        domain = self.domains.get(shape(value))
        if domain is None:
            return None
        if not any(map(domain.allows, keys)):
            return False
        remaining = domain.remaining()
        return True if remaining is not None and remaining <= keys else None

    def _decide_order(self, node: Call) -> bool | None:
        value, sign, bound = _comparison(node)
        domain = None if value is None else self.domains.get(shape(value))
        if domain is None:
            return None
        remaining = domain.remaining()
        if remaining is not None:
            answers = {_ordered(key, sign, bound) for key in remaining}
            return answers.pop() if len(answers) == 1 else None
        meets = _with_order(domain, sign, bound)
        if _empty(meets):
            return False
        if domain.number and _empty(_with_order(domain, _NEGATED[sign], bound)):
            return True
        return None

    def assume(self, node: Node, *, truth: bool) -> None:
        self.known[shape(node)] = truth
        match node:
            case And(_, operands) if truth:
                for operand in operands:
                    self.assume(operand, truth=True)
            case Or(_, operands) if not truth:
                for operand in operands:
                    self.assume(operand, truth=False)
            case Call(_, "not", (operand,)):
                self.assume(operand, truth=not truth)
            case Call(_, "==" | "!=" as sign, args):
                value, literal = _sides(args)
                if value is not None and literal is not None:
                    self._restrict(value, frozenset([_key(literal)]), truth is (sign == "=="))
            case Call(_, "in", (value, ListOf(_, items))) if (keys := _keys(items)) is not None:
                self._restrict(value, keys, truth)
            case Call(_, "<" | "<=" | ">" | ">=", _):
                self._order(node, truth)

    def _restrict(self, value: Node, keys: frozenset[Any], equal: bool) -> None:  # noqa: FBT001
        domain = self.domains.get(shape(value), Domain())
        if equal:
            allowed = frozenset(filter(domain.allows, keys))
            self.domains[shape(value)] = replace(domain, only=allowed)
        else:
            self.domains[shape(value)] = replace(domain, never=domain.never | keys)

    def _order(self, node: Call, truth: bool) -> None:  # noqa: FBT001
        value, sign, bound = _comparison(node)
        if value is None:
            return
        domain = self.domains.get(shape(value), Domain())
        # Not `>` is `<=`, or NaN, for which no comparison holds: then `number` stays as it was.
        domain = _with_order(domain, sign if truth else _NEGATED[sign], bound)
        self.domains[shape(value)] = replace(domain, number=domain.number or truth)


def shape(value: Any) -> Shape:
    """A node without its places in the text: equal where two expressions are the same. `a / 2` and `a / 2.0` are not."""
    if isinstance(value, Literal):
        return ("Literal", type(value.value).__name__, repr(value.value))
    if isinstance(value, Node):
        parts = (shape(getattr(value, f.name)) for f in fields(value) if f.name not in ("offset", "bare"))
        return (type(value).__name__, *parts)
    return tuple(map(shape, value)) if isinstance(value, tuple) else (value,)


def _read_by(shape_: Any) -> set[str]:
    """The fields that an expression reads; "" for the whole record."""
    if not isinstance(shape_, tuple):
        return set()
    if shape_[:2] in (("Select", ("This",)), ("Has", ("This",))):
        return {shape_[2][0]}
    return {""} if shape_ == ("This",) else set().union(*map(_read_by, shape_))


def _key(literal: Literal) -> tuple[str, Any]:
    """Equal where CEL's values are: 1 and 1.0 are, 1 and true are not."""
    value = literal.value
    if isinstance(value, bool):
        return ("bool", value)
    return ("number", value) if isinstance(value, int | float) else (type(value).__name__, value)


def _telling(node: Node) -> bool:
    """Whether it is a literal that something follows from."""
    if not isinstance(node, Literal):
        return False
    value = node.value
    return isinstance(value, bool) or not isinstance(value, int | float) or -_ROUNDED_FROM < value < _ROUNDED_FROM


def _keys(items: tuple[Node, ...]) -> frozenset[Any] | None:
    keys = [_key(item) for item in items if isinstance(item, Literal) and _telling(item)]
    return frozenset(keys) if len(keys) == len(items) else None


def _sides(args: tuple[Node, ...]) -> tuple[Node | None, Literal | None]:
    """(what is compared, the literal that it is compared with)."""
    for value, literal in (args, args[::-1]):
        if isinstance(literal, Literal) and _telling(literal) and not isinstance(value, Literal):
            return value, literal
    return None, None


def _comparison(node: Call) -> tuple[Node | None, str, float]:
    value, literal = _sides(node.args)
    number = None if literal is None else literal.value
    if value is None or isinstance(number, bool) or not isinstance(number, int | float):
        return None, node.function, 0
    return value, node.function if node.args[1] is literal else _FLIPPED[node.function], number


def _ordered(key: tuple[str, Any], sign: str, bound: float) -> bool:
    if key[0] != "number":
        return False  # an error, so never true
    return bool({"<": key[1] < bound, "<=": key[1] <= bound, ">": key[1] > bound, ">=": key[1] >= bound}[sign])


def _with_order(domain: Domain, sign: str, bound: float) -> Domain:
    if sign in ("<", "<="):
        return domain.at_most(bound, open_=sign == "<")
    return domain.at_least(bound, open_=sign == ">")


def _empty(domain: Domain) -> bool:
    if domain.low > domain.high or (domain.low == domain.high and (domain.above or domain.below)):
        return True
    return domain.low == domain.high and ("number", domain.low) in domain.never
