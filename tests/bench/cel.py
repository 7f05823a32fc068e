"""CEL side by side: `python -m tests.bench.cel` prints microseconds per evaluation, and what the peers take times ours.

First each expression by itself: ours is the fast form, and the exact one where that gives up, inside one function. The peers are
`common-expression-language` (Rust, cel-rust) with a compiled program and a dict as its context, and cel-python (interpreted) with
its values converted beforehand. All three are asked for the value of every expression first; where a peer differs, or cannot do
it, its column says so. All get the same record, an order, as a worker has it.

Then the filter as a worker uses it, on batches of 1,000 records: ours is the very loop that a pipeline runs, the peers are called
for each record of a loop. The Rust binding converts the whole of a dict at every evaluation, so it is also measured on records of
nothing but the two fields that the filter reads, and once more with a variable resolver, which is asked for those two alone: its
fastest way.
"""

from __future__ import annotations

import json
import random
import sys
import textwrap
import timeit
from statistics import median
from typing import TYPE_CHECKING, Any

import cel
import celpy
from celpy.adapter import json_to_cel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from transforms.cel import FALLBACK, Constants, compile_expression
from transforms.cel.namespace import OPERATIONS
from transforms.code import Code
from transforms.spec import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[str, dict[str, Any]], Callable[[], Any]]
    Record = dict[str, Any]
    Loop = Callable[[list[Record]], list[Record]]
    """A filter: records to those that it leaves out."""

ITEMS = [{"sku": f"s{n}", "price": 1.5 * n, "quantity": n} for n in range(1, 11)]
ORDER: dict[str, Any] = {
    "id": "7d0d1f9e-5a3c-4c39-9a5e-0c8f8a6f3c11",
    "status": "ok",
    "amount": 12.5,
    "currency": "EUR",
    "count": 7,
    "country": "DE",
    "email": "a.person@example.org",
    "created": "2024-05-06T07:08:09Z",
    "customer": {"id": 4711, "tier": "gold", "name": "A. Person"},
    "items": ITEMS[:3],
}
FILTER = 'status == "ok" && amount > 10.0'
TARGETS = {"us": 0.4, "rust": 50, "python": 500}
"""Of the filter: issue 5, section 1."""

EXPRESSIONS: list[tuple[str, dict[str, Any]]] = [
    (FILTER, ORDER),
    (FILTER, {"status": "ok", "amount": 12.5}),
    ('status == "failed" && amount > 10.0', ORDER),
    ('missing == "ok" || amount > 10.0', ORDER),
    ('customer.tier in ["gold", "silver"] && country != "US"', ORDER),
    ("count * 2 + 1 > 10", ORDER),
    ('email.matches("^[a-z.]+@example[.]org$")', ORDER),
    ('customer.name.startsWith("A") && size(email) < 64', ORDER),
    ('timestamp(created) > timestamp("2024-01-01T00:00:00Z")', ORDER),
    ("items.all(i, i.quantity > 0)", {"items": ITEMS}),
    ("items.exists(i, i.price > 14.0)", {"items": ITEMS}),
    ("items.filter(i, i.price > 7.0).map(i, i.sku)", {"items": ITEMS}),
    ("items.map(i, i.price * 2.0)", {"items": ITEMS}),
]


def ours(text: str, record: dict[str, Any]) -> Callable[[], Any]:
    """The expression in a function, as the generated pipeline has it."""
    constants = Constants()
    expression = compile_expression(text, "json", constants)
    source = (
        f"def exact(r):\n    return {expression.exact}\n"
        f"def evaluate(r=r):\n    try:\n        return {expression.fast}\n    except FALLBACK:\n        return exact(r)\n"
    )
    space = {**OPERATIONS, **constants.names, "FALLBACK": FALLBACK, "r": record}
    exec(compile(source, "<bench>", "exec"), space)
    evaluate: Callable[[], Any] = space["evaluate"]
    return evaluate


def rust(text: str, record: dict[str, Any]) -> Callable[[], Any]:
    program = cel.compile(text)
    return lambda: program.execute(record)


def interpreted(text: str, record: dict[str, Any]) -> Callable[[], Any]:
    environment = celpy.Environment()
    program = environment.program(environment.compile(text))
    context: Any = json_to_cel(record)
    return lambda: program.evaluate(context)


def microseconds(evaluate: Callable[[], Any], budget_s: float = 0.3) -> float:
    """The median of five, each of a number of calls that takes a fifth of the budget."""
    timer = timeit.Timer(evaluate)
    calls, took = timer.autorange()
    calls = max(1, int(calls * budget_s / 5 / took))
    return median(timer.repeat(5, calls)) / calls * 1e6


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def peer(make: Make, text: str, record: dict[str, Any], expected: Any) -> float | str:
    """Microseconds, or why there are none."""
    try:
        evaluate = make(text, record)
        found = plain(evaluate())
    except Exception as error:  # noqa: BLE001 - whatever a peer raises
        return type(error).__name__
    return microseconds(evaluate) if found == expected else "differs"


def cell(took: float | str, mine: float) -> tuple[str, str]:
    return (took, "") if isinstance(took, str) else (f"{took:.2f}", f"{took / mine:.0f}")


def single() -> Table:
    """Each expression by itself."""
    table = Table(title="CEL, microseconds per evaluation", title_justify="left")
    table.add_column("expression", overflow="fold")
    table.add_column("fields", justify="right")
    for heading in ("ours", "Rust", "times ours", "cel-python", "times ours"):
        table.add_column(heading, justify="right", no_wrap=True)
    for text, record in EXPRESSIONS:
        evaluate = ours(text, record)
        expected = plain(evaluate())
        mine = microseconds(evaluate)
        one, two = peer(rust, text, record, expected), peer(interpreted, text, record, expected)
        table.add_row(escape(text), str(len(record)), f"{mine:.3f}", *cell(one, mine), *cell(two, mine))
    return table


def our_loop() -> Loop:
    """The lines that a pipeline has for a step `filter`."""
    steps = [{"filter": FILTER}]
    spec = Pipeline.model_validate(
        {"name": "bench", "source": {"topics": ["in"]}, "sink": {"topic": "out"}, "steps": steps}
    )
    code = Code(spec)
    code.object = True
    spec.steps[0].emit(code)
    body = textwrap.indent(textwrap.dedent("\n".join(code.lines)), " " * 8)
    source = "\n".join(code.functions) + (
        "def run(records):\n    filtered = []\n    skip = filtered.append\n"
        f"    for r in records:\n        record = r\n{body}\n    return filtered\n"
    )
    space = {**OPERATIONS, **code.constants.names, **code.helpers, "FALLBACK": FALLBACK}
    exec(compile(source, "<bench>", "exec"), space)
    run: Loop = space["run"]
    return run


def loop(evaluate: Callable[[Record], Any]) -> Loop:
    def run(records: list[Record]) -> list[Record]:
        filtered: list[Record] = []
        skip = filtered.append
        for record in records:
            if not evaluate(record):
                skip(record)
        return filtered

    return run


def peer_loops() -> dict[str, Loop]:
    program = cel.compile(FILTER)
    context = cel.Context()
    current: Record = {}

    def look_up(name: str) -> Any:
        return current.get(name)

    def resolved(record: Record) -> Any:
        nonlocal current
        current = record
        return program.execute(context)

    context.set_variable_resolver(look_up)

    environment = celpy.Environment()
    python = environment.program(environment.compile(FILTER))

    def converted(record: Record) -> Any:
        context: Any = json_to_cel(record)
        return python.evaluate(context)

    return {"Rust": loop(program.execute), "Rust, resolver": loop(resolved), "cel-python": loop(converted)}


def batches() -> Table:
    """The filter on records of ten fields and of two; of all that pass, and of half that do, in no order."""
    peers = peer_loops()
    table = Table(title=f"{FILTER}: microseconds per record, in batches of 1,000", title_justify="left")
    for heading in ("fields", "pass", "ours", *(heading for name in peers for heading in (name, "times ours"))):
        table.add_column(heading, justify="right", no_wrap=True)
    rng = random.Random(1)
    mine_loop = our_loop()
    for base in (ORDER, {"status": "ok", "amount": 12.5}):
        for share in (1.0, 0.5):
            records = [base | {"amount": 12.5 if rng.random() < share else 5.0} for _ in range(1000)]
            mine = per_record(mine_loop, records)
            row = [str(len(base)), f"{1 - len(mine_loop(records)) / len(records):.0%}", f"{mine:.3f}"]
            for peer_loop in peers.values():
                assert peer_loop(records[:20]) == mine_loop(records[:20])
                row += cell(per_record(peer_loop, records), mine)
            table.add_row(*row)
    return table


def per_record(run: Loop, records: list[Record]) -> float:
    return microseconds(lambda: run(records)) / len(records)


def main() -> int:
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(single())
    console.print(batches())
    wanted = f"at most {TARGETS['us']} us, Rust {TARGETS['rust']} times ours, cel-python {TARGETS['python']} times ours"
    console.print(f"Wanted of the filter: {wanted}.", highlight=False, markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
