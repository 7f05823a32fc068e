"""The command ``reckon``. Exit codes: worker.errors.ExitCode."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads annotations at run time
from typing import Annotated, NoReturn

import structlog
import typer
from confluent_kafka import KafkaError, KafkaException

from transforms.loading import LoadedPipeline, PipelineError, load_pipeline
from worker.assignment import ends_of_sources
from worker.budget import TimeBudget
from worker.dead_letter import WORKER_VERSION, DeadLetterLimit
from worker.drain import Drain
from worker.environment import mistyped
from worker.errors import ExitCode, WorkerError, error_of
from worker.logs import configure
from worker.loop import TransactionalLoop
from worker.membership import as_member_for
from worker.progress import Progress
from worker.settings import Settings, WorkerSettings, masked, resolve
from worker.topics import Topics
from worker.watchdog import Watchdog

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Consume, transform and produce exactly once, and leave the proof.",
)

_log = structlog.get_logger("reckon")


@app.callback()
def _reckon() -> None:
    """Keeps `run` a subcommand while it is the only one installed."""


@app.command()
def run(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    *,
    until_drained: Annotated[
        bool,
        typer.Option(
            "--until-drained",
            help="Stop when all that is in the source now has been consumed, by this worker or by others of its group.",
        ),
    ] = False,
    print_config: Annotated[
        bool,
        typer.Option("--print-config", help="Show every setting and where it came from, secrets masked, and stop."),
    ] = False,
) -> None:
    """Run a pipeline until SIGTERM or Ctrl-C.

    Exit codes: 0 drained or stopped, 1 fatal, 2 bad config, 3 fenced by a twin, 4 dead-letter limit, 5 broker unreachable at start.
    """
    try:
        loaded = load_pipeline(pipeline)
        settings = resolve(loaded)
        if print_config:
            for name, value, origin in masked(settings):
                typer.echo(f"{name} = {value}  # {origin}")
            return
        configure(settings.worker.log_format, settings.worker.log_level)
        _work(loaded, settings, until_drained=until_drained)
    except PipelineError as problem:
        _fail(str(problem), ExitCode.BAD_CONFIG)
    except WorkerError as problem:
        _fail(str(problem), problem.exit_code)
    except KafkaException as exception:
        error = error_of(exception)
        # What librdkafka says of a setting when a client is made.
        bad = error.code() == KafkaError._INVALID_ARG  # noqa: SLF001
        _fail(f"{pipeline}: {error.name()}: {error.str()}", ExitCode.BAD_CONFIG if bad else ExitCode.FATAL)


def _work(loaded: LoadedPipeline, settings: Settings, *, until_drained: bool) -> None:
    limit = loaded.spec.dead_letters.limit
    watchdog = Watchdog(
        grace_s=settings.worker.grace_period_s,
        # The producer's calls are given up sooner (transaction.PATIENCE_S); this is for whatever else may not come back.
        call_limit_s=2 * settings.transaction_timeout_s + 30,
    )
    structlog.contextvars.bind_contextvars(pipeline=settings.pipeline, instance=settings.instance_id)
    with (
        watchdog.installed(),
        TimeBudget(loaded.transform, settings.worker.record_budget_ms, watchdog) as budget,
        Progress(settings) as progress,
    ):
        _log.info(
            "starting",
            version=WORKER_VERSION,
            transactional_id=settings.transactional_id,
            group=settings.group_id,
            bootstrap=settings.bootstrap,
            transform=loaded.transform.digest,
        )
        for name, meant in mistyped(WorkerSettings.model_fields).items():
            _log.warning("this environment variable stands for nothing", name=name, meant=meant)
        topics = Topics(settings, watchdog)
        loop = TransactionalLoop(
            as_member_for(settings, topics.check()),
            budget.run,
            loaded.transform.digest,
            DeadLetterLimit(limit.share, limit.window, limit.absolute),
            watchdog,
            progress.committed,
            topics,
        )
        try:
            drained = None
            if until_drained:
                ends = ends_of_sources(loop.source.consumer, settings, watchdog)
                drained = Drain(ends, loop.source.committed_offsets)
            loop.run(drained)
        except WorkerError as problem:
            raise topics.explained(problem) from problem
    _log.info("stopped", drained=drained is not None and not watchdog.stopping, **progress.totals())


def _fail(message: str, code: ExitCode) -> NoReturn:
    typer.echo(message, err=True)
    sys.exit(code.value)


def main() -> None:
    """Entry point of the console command."""
    if sys.argv[1:2] != ["run"]:
        _register_the_rest()
    app()


def _register_the_rest() -> None:
    """The commands beside `run`, which does without their imports: a worker that was killed is back a quarter of a second sooner."""
    from worker.commands import register  # noqa: PLC0415 - see above, as for the others
    from worker.commands.audit import CONTEXT, audit  # noqa: PLC0415

    register(app)
    app.command(context_settings=CONTEXT)(audit)
    try:
        from devkit.cli import broker  # noqa: PLC0415 - the devkit is an extra that production does without
        from devkit.demo import demo  # noqa: PLC0415
    except ImportError:
        pass
    else:
        app.command()(broker)
        app.command()(demo)
