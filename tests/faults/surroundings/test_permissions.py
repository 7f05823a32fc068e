"""ACLs: each right that the worker needs is missed once, at the start and while it runs. The broker is Kafka's own authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined] # its stubs export less than it does

from tests.faults.surroundings.secured import credentials, guard, needed
from tests.faults.surroundings.trouble import delete_topic, ending, text
from tests.support.pipelines import Scene, events
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.surroundings.secured import SecuredCluster

pytestmark = pytest.mark.xdist_group("secured broker")
LONG = pytest.mark.long

LACKS = {
    "read source": "our user lacks the right Read on source topic {source}",
    "read group": "our user lacks the right Read on group {name}",
    "write sink": "our user lacks the right Write on sink topic {sink}",
    "write dead letters": "our user lacks the right Write on dead-letter topic {dead_letters}",
    "write receipts": "our user lacks the right Write on receipt topic {receipts}",
    "write transactional id": "our user lacks the rights Write and Describe on transactional id {name}/one",
}
"""A right that is missing -> the line that says so."""

UNSEEN = {
    "read source": "source topic {source} may not be seen by our user: grant Read",
    "write sink": "sink topic {sink} may not be seen by our user: grant Write",
    "write dead letters": "our user can neither see topic {dead_letters} nor create it: where it exists, grant Write on it; ",
    "write receipts": "our user can neither see topic {receipts} nor create it: where it exists, grant Write on it; ",
}
"""The same where the user may not even describe the topic, as is usual: Kafka then answers as if it did not exist."""

IN_SHORT = {"write sink", "read group"}
"""Of the rights these are in `make test`."""


def rights(table: dict[str, str]) -> list[object]:
    return [pytest.param(right, marks=() if right in IN_SHORT else LONG) for right in table]


@pytest.fixture
def scene(secured: SecuredCluster, tmp_path: Path) -> Iterator[Scene]:
    with Scene(secured.bootstrap, tmp_path, partitions=1, sinks=1, records=50) as scene:
        guard(scene)
        scene.produce(200)
        yield scene
    del scene.reader


def meant(table: dict[str, str], right: str, scene: Scene) -> str:
    names = {name: getattr(scene, name) for name in ("name", "source", "sink", "dead_letters", "receipts")}
    return table[right].format(**names)


@pytest.mark.parametrize("right", rights(LACKS))
def test_a_right_that_is_missing_at_the_start(secured: SecuredCluster, scene: Scene, right: str) -> None:
    """Exit code 2, the right and what it is on are named; nothing was committed and nothing can be read. Granted, all is exactly once: the
    rights in docs/running.md are enough."""
    user, every = secured.user(), needed(scene)
    kind, name, _ = every[right]
    others = [each for short, each in every.items() if short != right]
    # Whoever may describe a topic gets by the look at the topics; whoever may not gets no further (the next test).
    describes = right in UNSEEN
    secured.allow(user, [*others, *([(kind, name, AclOperation.DESCRIBE)] if describes else [])])
    worker = scene.worker(env=credentials(secured, user))
    code, message = ending(worker)
    assert code == 2, message
    assert message.splitlines()[-1] == meant(LACKS, right, scene)
    assert "AUTHORIZATION_FAILED" in message.splitlines()[0]
    assert (scene.committed(), scene.outputs(), scene.receipt_values()) == ({}, [], [])

    secured.allow(user, [every[right]])
    scene.drain(env=credentials(secured, user))
    assert scene.problems() == []


@pytest.mark.parametrize("right", rights(UNSEEN))
def test_a_topic_that_the_user_may_not_see(secured: SecuredCluster, scene: Scene, right: str) -> None:
    """It is not called missing, which it is not. Exit code 2."""
    user, every = secured.user(), needed(scene)
    secured.allow(user, [each for short, each in every.items() if short != right])
    code, message = ending(scene.worker(env=credentials(secured, user)))
    assert code == 2
    assert message.startswith(meant(UNSEEN, right, scene))

    secured.allow(user, [every[right]])
    scene.drain(env=credentials(secured, user))
    assert scene.problems() == []


@pytest.mark.parametrize("right", [pytest.param(r, marks=() if r == "write sink" else LONG) for r in LACKS])
def test_a_right_that_is_taken_away_while_the_worker_runs(secured: SecuredCluster, scene: Scene, right: str) -> None:
    """Exit code 2 with the right's name; what was committed stays, what was not comes when the right is back."""
    user, every = secured.user(), needed(scene)
    secured.allow(user, every.values())
    worker = scene.worker(env=credentials(secured, user))
    await_true(lambda: sum(scene.committed().values()) >= 200, "it works", PATIENCE_S)
    secured.forbid(user, [every[right], *([every["describe transactional id"]] if "transactional" in right else [])])
    scene.produce(100)
    code, message = ending(worker)
    assert code == 2, message
    assert message.splitlines()[-1] in (
        meant(LACKS, right, scene),
        meant(UNSEEN, right, scene).partition(" nor create")[0] if right in UNSEEN else "",
        *(
            f"{role} may not be seen by our user: grant Write"
            for role in (f"dead-letter topic {scene.dead_letters}", f"receipt topic {scene.receipts}")
        ),
    )
    assert len(text(worker).splitlines()) < 60
    assert 200 <= sum(scene.committed().values()) < 300, "batches without a record for a dead letters topic go through"

    secured.allow(user, [every[right], every["describe transactional id"]])
    scene.drain(env=credentials(secured, user))
    assert scene.problems() == []


@LONG
def test_the_right_to_create_is_enough_for_the_workers_own_topics(secured: SecuredCluster, scene: Scene) -> None:
    """Dead letters and receipts that do not exist: without Create exit code 2; with it they are created."""
    user, every = secured.user(), needed(scene)
    own = [scene.dead_letters, scene.receipts]
    for topic in own:
        delete_topic(secured.bootstrap, topic)
    secured.allow(
        user, [right for short, right in every.items() if short not in ("write dead letters", "write receipts")]
    )
    code, message = ending(scene.worker(env=credentials(secured, user)))
    assert code == 2
    assert message.startswith(meant(UNSEEN, "write dead letters", scene))
    assert message.endswith("else create it by hand, or grant Create too")

    secured.allow(user, [(every["write sink"][0], topic, AclOperation.CREATE) for topic in own])
    secured.allow(user, [every["write dead letters"], every["write receipts"]])
    worker = scene.drain(env=credentials(secured, user))
    assert own == [event["topic"] for event in events(worker, "created")]
    assert scene.problems() == []
