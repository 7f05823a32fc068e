"""The way of a record through the steps: which fields it can have, what is known of it, and whether it gets that far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transforms.cel.folding import fold
from transforms.cel.nodes import Call, Node, Select, This
from transforms.cel.parser import parse
from transforms.lint import effects
from transforms.lint.constants import Failing, failing
from transforms.lint.facts import Facts, shape
from transforms.lint.fields import Fields, fields_read
from transforms.lint.mistyped import warn_of_metadata
from transforms.lint.schemas import check_keywords, learn
from transforms.lint.types import Checked, check, held, stored
from transforms.lint.whole import at_source, must_be_object, must_be_writable, must_have_room, remake
from transforms.steps import step_name
from transforms.steps.paths import parts

if TYPE_CHECKING:
    from transforms.lint.effects import Place
    from transforms.lint.fields import FieldNames
    from transforms.lint.state import State
    from transforms.lint.view import View
    from transforms.steps import Step
    from transforms.yaml_tree import Path as KeyPath


def walk(view: View) -> None:
    """Adds what it finds to the view."""
    state = at_source(view)
    for index, step in enumerate(view.steps):
        if state.stopped:
            view.error("unreachable", ("steps", index), f"no record gets here: {state.stopped}")
            state.stopped = None  # said once; the steps behind may have mistakes of their own
            state.facts = Facts()
        if step is None:
            state.forget()
        else:
            _Walker(view, state, index, step).run()
    must_be_writable(view, state)


class _Walker:
    """One step."""

    def __init__(self, view: View, state: State, index: int, step: Step) -> None:
        self._view = view
        self._state = state
        self._path: KeyPath = ("steps", index)
        self._step = step
        self._value: Any = effects.value_of(step)
        self._name = step_name(step) or ""
        self._why = f"{self._name} in line {view.line(self._path)}"
        self._nodes: dict[KeyPath, Node] = {}
        self._types: dict[KeyPath, str] = {}
        self._constant: dict[KeyPath, Checked] = {}  # of expressions with comparisons that are always false, or true

    def run(self) -> None:
        must_be_object(self._view, self._state, (*self._path, self._name), self._name)
        for path, name in effects.fields_needed(self._step):
            self._needed(path, name)
        for place in effects.expressions(self._step):
            self._expression(place)
            if self._name == "default":
                must_have_room(self._view, self._state, (*self._path, *place.path), str(place.path[1]))
                self._put(place.path[1], "dyn")  # the expressions that follow see it
        run = getattr(self, f"_run_{self._name}", None)
        if run is not None:
            run()
        elif self._name != "default":
            for name, kind in effects.types_made(self._step).items():
                self._put(name, kind)
        for path, checked in self._constant.items():
            for offset, message in checked.never:
                self._view.warn("constant", (*self._path, *path), message, offset=offset)

    # Expressions

    def _expression(self, place: Place) -> None:
        node = parse(place.text)
        path = (*self._path, *place.path)
        self._reads(path, node)
        warn_of_metadata(self._view, path, node, self._state.fields)
        checked = check(node, lambda names: self._state.fields.get(names).type, self._state.key)
        for offset, message in checked.errors:
            self._view.error("type", path, message, offset=offset)
        if checked.never:
            self._constant[place.path] = checked
        if place.wanted == "bool" and checked.type not in ("bool", "bool?", "dyn"):
            self._view.error("type", path, f"the expression gives {checked.type.rstrip('?')}, expected bool")
        folded = fold(node)
        for part in failing(folded):
            if not (checked.errors and part.message.startswith("no such overload")):  # else it has been said
                self._fails(path, part)
        self._nodes[place.path], self._types[place.path] = folded, checked.type

    def _fails(self, path: KeyPath, part: Failing) -> None:
        if part.absorbed:
            self._view.warn("constant", path, f"this part always fails: {part.message}", offset=part.offset)
        else:
            self._view.error("always-fails", path, f"fails for every record: {part.message}", offset=part.offset)

    def _reads(self, path: KeyPath, node: Node) -> None:
        reads = fields_read(node)
        asked = [names for names, _, asks in reads if asks]
        for names, offset, asks in reads:
            if names:
                self._state.unread.pop(names[0], None)
            else:
                self._state.unread.clear()  # the record as a whole
            why = self._state.fields.absent(names)
            if why is not None and asks:
                self._never_there(path, ".".join(names), why, offset)
            elif why is not None and not any(names[: len(a)] == a for a in asked):
                self._unknown(path, names, why, offset)

    def _unknown(self, path: KeyPath, names: FieldNames, why: str, offset: int | None = 0) -> None:
        close = self._state.fields.close_to(names)
        hint = f', did you mean "{close}"?' if close else ""
        self._view.error("unknown-field", path, f'no field "{".".join(names)}" here: {why}{hint}', offset=offset)

    def _never_there(self, path: KeyPath, name: str, why: str, offset: int | None = 0) -> None:
        self._view.warn("unknown-field", path, f'there is never a field "{name}" here: {why}', offset=offset)

    # Conditions

    def _condition(self, path: KeyPath, *, passes: bool = True) -> None:
        """The records that go on are those for which the condition is `passes`."""
        node = self._nodes[path]
        decided, because, said = self._decide(path)
        if decided is (not passes):
            truth = "never" if passes else "always"
            self._constant.pop(path, None)
            message = f"the condition is {truth} true{because}: nothing gets past this step"
            self._view.error("never-matches", (*self._path, *path), message)
            self._state.stopped = f"the condition of {self._why} is {truth} true"
        elif decided is not None and not said:
            truth = "always" if passes else "never"
            message = f"the condition is {truth} true{because}: the step does nothing"
            self._view.warn("constant", (*self._path, *path), message)
        self._state.facts.assume(node, truth=passes)

    def _decide(self, path: KeyPath) -> tuple[bool | None, str, bool]:
        """(what the condition always is, which records are meant, or why, whether types say so, which is a finding already)."""
        node, constant = self._nodes[path], self._constant.get(path)
        if (decided := Facts().decide(node)) is not None:
            return decided, "", False
        if (decided := self._state.facts.decide(node)) is not None or constant is None:
            return decided, " for the records that get here", False
        facts = self._state.facts.copy()
        facts.known |= {shape(fold(part)): truth for part, truth in constant.decided}
        return facts.decide(node), f", as {constant.never[0][1].partition(': ')[2]}", True

    def _run_filter(self) -> None:
        self._condition(("filter",))

    def _run_assert(self) -> None:
        self._condition(("assert", "that"))

    def _run_tombstone(self) -> None:
        self._condition(("tombstone",), passes=False)

    def _run_route(self) -> None:
        """An entry sees what the ones before it leave."""
        taken = None
        for index, route in enumerate(self._value):
            path = (*self._path, "route", index)
            if taken is not None:
                self._view.error(
                    "unreachable", path, f"no record gets to this route: the one in line {taken} takes all"
                )
                return
            if route.when is None:
                continue
            condition: KeyPath = ("route", index, "when")
            decided, because, said = self._decide(condition)
            if decided is False:
                self._constant.pop(condition, None)
                self._view.error("unreachable", (*path, "when"), f"the condition is never true{because}")
            elif decided:
                taken = self._view.line(path)
                if not said:
                    self._view.warn("constant", (*path, "when"), f"the condition is always true{because}: leave it out")
            self._state.facts.assume(self._nodes[condition], truth=False)
        if taken is not None and self._view.get("sink") is not None:
            self._view.warn("unused", ("sink",), f"no record gets to the sink: the route in line {taken} takes all")

    def _run_route_all(self) -> None:
        for index, route in enumerate(self._value):
            if route.when is None:
                continue
            condition: KeyPath = ("route_all", index, "when")
            decided, because, _ = self._decide(condition)
            if decided is False:
                self._constant.pop(condition, None)
                self._view.error("unreachable", (*self._path, *condition), f"the condition is never true{because}")

    # Fields

    def _needed(self, path: KeyPath, name: str) -> None:
        if (why := self._state.fields.absent(parts(name))) is not None:
            self._never_there((*self._path, *path), name, why, None if path[-1] == name else 0)
        elif self._name not in ("drop", "keep"):
            self._state.unread.pop(parts(name)[0], None)

    def _put(self, name: Any, kind: str, *, there: bool = False) -> None:
        names = parts(name)
        self._state.fields.put(names, Fields(kind, there))
        self._state.facts.forget(names[0])

    def _discards(self, name: str) -> None:
        """A value that nothing has read is lost."""
        path = self._state.unread.pop(name, None)
        if path is not None:
            message = f'the value of "{name}" is never used: {self._why} discards it'
            self._view.warn("unused", path, message, offset=None)

    def _run_set(self) -> None:
        for key in self._value:
            if len(parts(key)) == 1:
                self._discards(parts(key)[0])
        for key in self._value:
            names = parts(key)
            must_have_room(self._view, self._state, (*self._path, "set", key), key)
            self._put(key, stored(self._types["set", key]), there=True)
            if len(names) == 1:
                self._state.unread[names[0]] = (*self._path, "set", key)
        for key in self._value:
            value, names = held(self._nodes["set", key]), parts(key)
            if value is not None and len(names) == 1:
                self._state.facts.assume(Call(0, "==", (Select(0, This(0), names[0]), value)), truth=True)

    def _run_rename(self) -> None:
        taken = {}
        for old in self._value:
            if (why := self._state.fields.absent(parts(old))) is not None:
                self._unknown((*self._path, "rename", old), parts(old), why, None)
            self._state.unread.pop(parts(old)[0], None)
            taken[old] = self._state.fields.remove(parts(old), f"{self._why} gives it another name")
            self._state.facts.forget(parts(old)[0])
        for old, new in self._value.items():
            must_have_room(self._view, self._state, (*self._path, "rename", old), new, 0)
            known = taken[old]
            if len(parts(new)) == 1:
                self._discards(parts(new)[0])
            self._put(new, "dyn")
            self._state.fields.put(parts(new), known)

    def _run_drop(self) -> None:
        for name in self._value:
            names = parts(name)
            if self._state.fields.absent(names) is not None:
                continue
            if len(names) == 1:
                self._discards(names[0])
            self._state.fields.remove(names, f"{self._why} removes it")
            self._state.facts.forget(names[0])

    def _run_keep(self) -> None:
        wanted = [parts(name) for name in self._value]
        tops = {names[0] for names in wanted}
        for name in [name for name in self._state.unread if name not in tops]:
            self._discards(name)
        self._state.fields = self._state.fields.kept(wanted, f"{self._why} does not keep it")
        self._state.facts.forget_except({names[0] for names in wanted if len(names) == 1})

    def _run_validate(self) -> None:
        check_keywords(self._view, self._path, self._value.schema_)
        learn(self._state.fields, self._value.schema_, f"{self._why} allows no others")

    def _run_explode(self) -> None:
        of = self._value
        if self._state.fields.absent(parts(of.field)) is not None:
            self._state.stopped = f'{self._why} finds no "{of.field}"'
        if of.into not in (None, of.field):
            self._state.fields.remove(parts(of.field), f"{self._why} puts its elements into {of.into!r}")
            self._state.facts.forget(parts(of.field)[0])
        if of.into:
            must_have_room(self._view, self._state, (*self._path, "explode", "into"), of.into, 0)
        self._put(of.into or of.field, "dyn")
        if of.index:
            must_have_room(self._view, self._state, (*self._path, "explode", "index"), of.index, 0)
            self._put(of.index, "int", there=True)

    # The whole

    def _run_value(self) -> None:
        remake(self._state, self._nodes["value",], stored(self._types["value",]), self._why)

    def _run_flatten(self) -> None:
        self._state.forget()

    _run_python = _run_flatten

    def _run_key(self) -> None:
        self._state.facts = Facts()  # they may be about the key

    _run_headers = _run_key
