"""`reckon demo`: orders through a real broker, a worker killed inside a transaction, and an independent verdict."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table

from devkit import oracle
from devkit.cluster import Cluster
from devkit.demo_audit import audit, in_words
from devkit.errors import BrokerTimeoutError, DevkitError
from devkit.feeder import Feeder
from devkit.judgement import Judgement, judge
from devkit.orphan import Orphan, kill_inside_transaction
from devkit.reader import Reader
from devkit.workers import ROOT, WorkerError, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIPELINE = ROOT / "config" / "pipelines" / "orders.yaml"
PAGES = ROOT / "demo-audit"
ORDERS = 200_000
PARTITIONS = 4
WORKERS = ("demo-a", "demo-b")
SLOWEST_S = 120.0
"""For any one stage; usual are seconds."""

FEED_S = 8.0
"""The workers would take two seconds for all orders. From four tenths on they come more slowly still, until one is killed (Feeder)."""

TRANSACTION_TIMEOUT_S = 30
"""The worker's default, stated so that the demo may speak of it."""


class Stages:
    """Tells what is going on: a line per finished stage, and on a terminal what it is at meanwhile."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    @contextlib.contextmanager
    def stage(self, doing: str) -> Iterator[Callable[[str], None]]:
        """Gives a function that says more: while waiting on a terminal, and in the end for the line."""
        start = time.monotonic()
        said = doing
        with contextlib.ExitStack() as live:
            status = live.enter_context(self._console.status(doing)) if self._console.is_terminal else None

            def say(text: str) -> None:
                nonlocal said
                said = text
                if status is not None:
                    status.update(text)

            yield say
        self._console.print(f"{time.monotonic() - start:5.1f} s  {said}", highlight=False, soft_wrap=True)


def demo(
    orders: Annotated[int, typer.Option(min=1_000, help="How many orders go through.")] = ORDERS,
) -> None:
    """Real records through a real broker exactly once, while a worker is killed inside a transaction."""
    raise typer.Exit(run_demo(orders, Console()))


def run_demo(orders: int, console: Console, before_verification: Callable[[str], None] | None = None) -> int:
    """The exit code: 0 when everything held. `before_verification` is given the bootstrap address: tests break something there."""
    if not PIPELINE.exists():
        console.print(f"{PIPELINE} is missing: the demo runs from a checkout of the project")
        return 1
    stages = Stages(console)
    try:
        console.print("starting a Kafka broker (the first time its jars are downloaded) ...")
        with Cluster() as cluster, tempfile.TemporaryDirectory(prefix="reckon-demo-") as folder:
            console.print(f"{stages.elapsed_s:5.1f} s  broker at {cluster.bootstrap}", highlight=False)
            with stages.stage("topics are created"):
                cluster.create_topics(dict.fromkeys((oracle.SOURCE, *oracle.OUTPUTS), PARTITIONS))
            workers = {name: _worker(name, cluster.bootstrap, Path(folder)) for name in WORKERS}
            return _run(orders, console, stages, cluster.bootstrap, workers, before_verification)
    except (DevkitError, KafkaException) as error:
        console.print(f"[bold red]the demo could not be finished:[/] {error}", highlight=False)
        return 1


def _worker(name: str, bootstrap: str, folder: Path) -> WorkerProcess:
    env = {"RECKON_PRODUCER_TRANSACTION_TIMEOUT_MS": str(TRANSACTION_TIMEOUT_S * 1000)}
    return WorkerProcess(PIPELINE, name, bootstrap, folder / f"{name}.log", env=env)


def _run(
    orders: int,
    console: Console,
    stages: Stages,
    bootstrap: str,
    workers: dict[str, WorkerProcess],
    before_verification: Callable[[str], None] | None,
) -> int:
    with contextlib.ExitStack() as running:
        reader = running.enter_context(Reader(bootstrap))
        try:
            with stages.stage("two workers join the group") as say:
                for worker in workers.values():
                    running.enter_context(worker)
                _await("both workers own partitions", workers, lambda: _share(reader, say))
            feeder = running.enter_context(Feeder(bootstrap, oracle.SOURCE, orders, FEED_S))
            orphan = _kill_and_restart(orders, stages, reader, workers, feeder)
            _drain(orders, stages, reader, workers, feeder)
            _stop(stages, workers)
            reader.await_stable((*oracle.OUTPUTS, oracle.DEAD_LETTERS, oracle.RECEIPTS))
            if before_verification is not None:
                before_verification(bootstrap)
            auditing = running.enter_context(audit(PIPELINE, bootstrap, PAGES))
            with stages.stage("an independent read_committed reader compares everything with what is due"):
                judgement = judge(reader, feeder.kinds, orphan.records)
            with stages.stage("the audit, a Spark job, judges every order"):
                code, verdict = auditing.verdict()
        except (DevkitError, KafkaException):
            for worker in workers.values():
                console.print(worker.tail(), markup=False, highlight=False)
            raise
    _report(console, judgement, feeder, orphan)
    console.print(f"\nThe audit (exit code {code}): {in_words(verdict)}", highlight=False, soft_wrap=True)
    console.print(f"Its page: {auditing.page}", highlight=False, soft_wrap=True)
    held = judgement.ok and code == 0
    console.print(_next_steps(held=held, elapsed_s=stages.elapsed_s), highlight=False, soft_wrap=True)
    return 0 if held else 1


def _share(reader: Reader, say: Callable[[str], None]) -> bool:
    owned = {name: len(partitions) for name, partitions in reader.assignment(oracle.GROUP).items()}
    say(f"two workers share {PARTITIONS} partitions: {', '.join(f'{n} has {c}' for n, c in sorted(owned.items()))}")
    return len(owned) == len(WORKERS) and all(owned.values()) and sum(owned.values()) == PARTITIONS


def _kill_and_restart(
    orders: int, stages: Stages, reader: Reader, workers: dict[str, WorkerProcess], feeder: Feeder
) -> Orphan:
    victim = workers[WORKERS[0]]
    with stages.stage("orders come in") as say:

        def fed() -> bool:
            say(f"{feeder.sent:,} of {orders:,} orders are in, and more come all the time")
            return feeder.done or feeder.sent > 0.3 * orders

        _await("a third of the orders is fed", workers, fed)
    with stages.stage("waiting for the right moment to kill a worker") as say:
        orphan = kill_inside_transaction(victim, reader, f"{oracle.GROUP}/{victim.instance_id}")
        feeder.hurry()
        (topic, partition), offset = min(orphan.stable.items())
        say(
            f"SIGKILL to {victim.instance_id} inside a transaction (caught at try {orphan.attempts}): {len(orphan.records):,} records "
            f"hang; readers are held back in {len(orphan.stable)} partitions, e.g. at offset {offset} of {topic}/{partition}"
        )
    with stages.stage(f"{victim.instance_id} starts again") as say:
        start = time.monotonic()
        victim.start()
        _await("the orphaned transaction is aborted", workers, lambda: orphan.released(reader))
        say(
            f"{victim.instance_id} is started again and has the orphan aborted after {time.monotonic() - start:.1f} s "
            f"(the broker alone: {TRANSACTION_TIMEOUT_S} s)"
        )
    return orphan


def _drain(orders: int, stages: Stages, reader: Reader, workers: dict[str, WorkerProcess], feeder: Feeder) -> None:
    partitions = reader.partitions_of([oracle.SOURCE])
    with stages.stage("the workers drain the topic") as say:

        def drained() -> bool:
            done = sum(reader.committed_offsets(oracle.GROUP, partitions).values())
            say(f"{feeder.sent:,} of {orders:,} orders are in, {done:,} are consumed and committed")
            return feeder.done and done >= orders

        _await("all orders are consumed", workers, drained)


def _stop(stages: Stages, workers: dict[str, WorkerProcess]) -> None:
    with stages.stage("SIGTERM to both workers: they finish and leave"):
        for worker in workers.values():
            worker.terminate()
        for worker in workers.values():
            if code := worker.wait():
                raise WorkerError(
                    f"worker {worker.instance_id} ended with exit code {code} after SIGTERM, 0 was expected"
                )


def _await(what: str, workers: dict[str, WorkerProcess], condition: Callable[[], bool]) -> None:
    """Wait until the condition holds; an error when it takes too long, or when a worker ends meanwhile."""
    deadline = time.monotonic() + SLOWEST_S
    while not condition():
        for worker in workers.values():
            if not worker.alive:
                raise WorkerError(f"worker {worker.instance_id} ended by itself (awaited: {what})")
        if time.monotonic() > deadline:
            raise BrokerTimeoutError(f"not within {SLOWEST_S:g} s: {what}")
        time.sleep(0.1)


def _report(console: Console, judgement: Judgement, feeder: Feeder, orphan: Orphan) -> None:
    kinds = feeder.kinds
    numbers = Table.grid(padding=(0, 3))
    numbers.add_column(justify="right")
    bad = kinds["malformed"] + kinds["rejected"]
    rows = [
        (feeder.sent, "orders produced"),
        (kinds["ok"], "valid: due in an output topic, once"),
        (kinds["tombstone"], "deletions (null values): due in both output topics"),
        (kinds["cancelled"], "cancelled: due nowhere"),
        (
            bad,
            f"bad ({kinds['malformed']:,} no JSON object, {kinds['rejected']:,} without a number as amount): due in the dead letters",
        ),
        (judgement.outputs, "outputs committed"),
        (judgement.dead_letters, "dead letters committed"),
        (judgement.receipts, "receipts, one per transaction"),
        (len(orphan.records), "records written in the transaction that was killed"),
        (judgement.aborted, "records of aborted transactions in the topics, which readers never saw"),
    ]
    for number, what in rows:
        numbers.add_row(f"{number:,}", what)
    checks = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for check in judgement.checks:
        checks.add_row("[green]held[/]" if check.ok else "[bold red]BROKEN[/]", check.title)
        for problem in check.problems[:5]:
            checks.add_row("", f"[red]{problem}[/]")
    console.print()
    console.print(numbers)
    console.print()
    console.print(checks)


def _next_steps(*, held: bool, elapsed_s: float) -> str:
    if not held:
        return f"\n[bold red]Not exactly once[/] ({elapsed_s:.0f} s)."
    return (
        f"\n[bold green]Exactly once[/], worker killed inside a transaction: yes ({elapsed_s:.0f} s).\n\n"
        "Next: change a step in config/pipelines/orders.yaml and run `make demo` again: the verdict names what differs.\n"
        "`reckon broker` runs a broker for tries of your own, `reckon run PIPELINE` a worker."
    )
