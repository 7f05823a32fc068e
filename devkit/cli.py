"""`reckon broker`: a Kafka cluster on this machine until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from pathlib import Path  # noqa: TC003 - typer reads annotations at run time
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from devkit.cluster import Cluster
from devkit.errors import DevkitError

if TYPE_CHECKING:
    from types import FrameType


def broker(
    nodes: Annotated[int, typer.Option(help="1, or 3 to see what happens when one fails.")] = 1,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65533, help="Port of node 1, the next nodes on the next ports. [default: a free one]"),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder to keep topics in from one run to the next. [default: none kept]")
    ] = None,
) -> None:
    """Run a real Kafka broker on this machine, reachable from this machine only, until Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        with Cluster(nodes, port=port, data=data) as cluster:
            typer.echo(_welcome(cluster))
            _watch(cluster)
    except KeyboardInterrupt:
        typer.echo("broker stopped")
    except DevkitError as e:
        typer.echo(f"error: {e}", err=True)
        raise typer.Exit(1) from e


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _welcome(cluster: Cluster) -> str:
    lines = [f"broker ready: {cluster.bootstrap}"]
    if len(cluster.nodes) > 1:
        lines += [f"  node {node.id}: {node.address}, process {node.pid}" for node in cluster.nodes]
    return "\n".join(
        [
            *lines,
            "",
            "In another terminal:",
            f"  RECKON_BOOTSTRAP_SERVERS={cluster.bootstrap} reckon run config/pipelines/orders.yaml",
            "",
            "Ctrl-C stops it.",
        ]
    )


def _watch(cluster: Cluster) -> NoReturn:
    """Wait for a signal; raise BrokerDiedError when a cluster of one loses its node.

    Of three nodes one may be killed by whoever tries that out; the others serve on.
    """
    never = threading.Event()
    while True:
        dead = [node for node in cluster.nodes if not node.alive]
        if len(dead) * 2 > len(cluster.nodes):
            raise dead[-1].failure()
        never.wait(0.5)
