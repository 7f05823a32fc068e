"""Fixtures for tests on a real broker. With xdist all workers share the broker that the controlling process runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from devkit import Cluster
from tests.support.broker import Choice, choose_broker
from tests.support.pipelines import Scene

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# No test fails for its speed: on a busy machine a first call may take seconds, and drawing examples too. Nor by chance: the same
# examples each time, and none that an earlier run has left behind. New ones are tried by --hypothesis-profile=search and `make fuzz`.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("reckon", settings.get_profile("search"), derandomize=True)
settings.load_profile("reckon")

_choice = pytest.StashKey[Choice]()
_running = pytest.StashKey[tuple[contextlib.ExitStack, str]]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[_choice] = choose_broker()


def pytest_report_header(config: pytest.Config) -> list[str]:
    choice = config.stash.get(_choice, None)  # none in a worker, whose header nobody sees
    return [f"broker: {choice.description}"] if choice else []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails shows what the workers of its scene said."""
    report = yield
    if report.failed:
        for scene in getattr(item, "funcargs", {}).values():
            if isinstance(scene, Scene):
                report.sections += [("worker", worker.tail(40)) for worker in scene.workers]
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by xdist in the controlling process for each worker: give it the address of the shared broker.

    The workers cannot start it when first needed, as a single process does below: it must outlive all of them.
    """
    node.workerinput["bootstrap"] = _start(node.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _running in config.stash:
        config.stash[_running][0].close()


def _start(config: pytest.Config) -> str:
    if _running not in config.stash:
        stack = contextlib.ExitStack()
        config.stash[_running] = stack, stack.enter_context(config.stash[_choice].run())
    return config.stash[_running][1]


@pytest.fixture(scope="session")
def bootstrap(pytestconfig: pytest.Config) -> str:
    """The address of a running broker; its one-replica topics are shared with every other test: use unique names."""
    workerinput: dict[str, str] | None = getattr(pytestconfig, "workerinput", None)
    return workerinput["bootstrap"] if workerinput else _start(pytestconfig)


@pytest.fixture(scope="module")
def _module_cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(_module_cluster: Cluster) -> Cluster:
    """A one-node cluster of the test module's own, which a test may kill, pause and stop: whole again for the next one."""
    for node in _module_cluster.nodes:
        node.resume()
        node.start()
    return _module_cluster
