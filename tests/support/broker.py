"""Which broker the tests use: RECKON_TEST_BOOTSTRAP, else a container, else the devkit's own."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devkit import Cluster
from devkit.admin import admin_client, await_group_coordinators, registered_brokers
from devkit.admin import create_topics as devkit_create_topics
from devkit.ports import HOST, Port
from devkit.properties import INTERNAL_PARTITIONS, node_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_DEFAULT_IMAGE = "apache/kafka:4.3.1"
_START_TIMEOUT = 60.0  # seconds


@dataclass(frozen=True)
class Choice:
    """A broker not started yet: what it is, for people, and the context that runs it and yields its address."""

    description: str
    run: Callable[[], contextlib.AbstractContextManager[str]]


def choose_broker() -> Choice:
    if address := os.environ.get("RECKON_TEST_BOOTSTRAP"):
        return Choice(f"{address} (RECKON_TEST_BOOTSTRAP)", lambda: contextlib.nullcontext(address))
    image = os.environ.get("RECKON_TEST_KAFKA_IMAGE", _DEFAULT_IMAGE)
    if problem := _container_problem(image):
        return Choice(f"embedded ({problem})", _embedded)
    return Choice(f"container of {image}", lambda: _container(image))


def _container_problem(image: str) -> str | None:
    """Why no container of `image` can be run, None when it can. Nothing is pulled: tests do not wait for that."""
    try:
        import docker  # type: ignore[import-untyped] # noqa: PLC0415 - it need not be there
    except ImportError:
        return "no testcontainers package"
    try:
        client = docker.from_env(timeout=5)
    except docker.errors.DockerException:
        return "no Docker engine"
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        return f"no local image {image}"
    except docker.errors.DockerException:
        return "no Docker engine"
    finally:
        client.close()
    return None


@contextlib.contextmanager
def _embedded() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap


@contextlib.contextmanager
def _container(image: str) -> Iterator[str]:
    """The broker of the image with the settings of the embedded one.

    The broker dials its own advertised address to end transactions: the host's port is of no use to it inside the
    container, hence a second listener for itself.
    """
    from testcontainers.core.config import testcontainers_config  # noqa: PLC0415
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415

    testcontainers_config.ryuk_disabled = True  # its image would have to be pulled; the `with` removes the container
    with contextlib.closing(Port()) as port:
        container = DockerContainer(image)
        container.ports["9092/tcp"] = (HOST, port.number)  # type: ignore[assignment] # docker's form for one interface
        for name, value in _container_properties(port.number).items():
            container.with_env("KAFKA_" + name.upper().replace(".", "_"), value)
        port.close()
        with container:
            address = f"{HOST}:{port.number}"
            _await_broker(address)
            yield address


def _container_properties(port: int) -> dict[str, str]:
    properties = node_properties(1, [(9092, 9093)], Path("unused"))
    del properties["log.dirs"]  # the image knows where it may write
    return properties | {
        "listeners": "PLAINTEXT://:9092,INTERNAL://localhost:9094,CONTROLLER://localhost:9093",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},INTERNAL://localhost:9094",
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
        "controller.quorum.voters": "1@localhost:9093",
    }


def _await_broker(address: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT
    admin = admin_client(address)
    while not registered_brokers(admin):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the container's broker at {address} did not answer within {_START_TIMEOUT:g} s")
        time.sleep(0.1)  # a refused connection answers at once: no busy loop
    await_group_coordinators(address, INTERNAL_PARTITIONS, deadline - time.monotonic())


def unique(prefix: str) -> str:
    """A name that no other test has used: topics and groups of one broker are shared by all of them."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def create_topics(
    bootstrap: str, topics: Mapping[str, int], config: Mapping[str, str] | None = None, *, replicas: int = 1
) -> None:
    """Create topics (name -> partitions) and wait until they are usable."""
    devkit_create_topics(admin_client(bootstrap), topics, replicas, config, timeout=60.0)
