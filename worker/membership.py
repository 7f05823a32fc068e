"""Static membership in the group (KIP-345) by default: who comes back after a kill has its place at once, and who stops leaves at once.

With the classic protocol only. With KIP-848 a static member that was killed keeps its successor out until its session ends
(UNRELEASED_INSTANCE_ID), which is no sooner than for a dynamic one.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import KafkaException

from worker.errors import ConsumerFencedError, FencedByTwinError, WorkerError
from worker.settings import STATIC_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Consumer

    from worker.settings import Settings
    from worker.watchdog import Watchdog

TWIN_FENCINGS = 3
TWIN_WINDOW_S = 60.0
"""Fenced so often in so short a time without a reason of our own, a twin is alive."""

REJOIN_PAUSE_S = 1.0
"""Before a fresh consumer joins: for the heartbeats of whoever may have our place."""

LEAVE_S = 2.0
"""How long to try to leave a group in order; its session timeout does the rest."""

_log = structlog.get_logger("reckon.membership")


class Fencings:
    """Tells a twin from ourselves when the group fences our static member (the same idea as E2).

    A member whose session has ended on its own side, as its coordinator was away, joins anew without a member id; a request of
    before, sent once more, then meets the new id and is fenced (librdkafka #3437). That is no twin, and a fresh consumer mends it. But
    whoever stood still meanwhile has to think that its instance was started again, and to leave its successor alone.
    """

    def __init__(self, settings: Settings, watchdog: Watchdog) -> None:
        self._instance_id = settings.instance_id
        self._watchdog = watchdog
        self._fenced: deque[float] = deque(maxlen=TWIN_FENCINGS)
        self._session_ended = False
        self._proven = time.monotonic()

    def session_ended(self) -> None:
        """To be called when librdkafka says that no answer of the coordinator came for a session timeout."""
        self._session_ended = True

    def proven(self) -> None:
        """A commit took place: nobody had our place until now."""
        self._proven = time.monotonic()

    def count(self, fenced: ConsumerFencedError) -> None:
        """A fencing, after a pause. FencedByTwinError when it was a twin's; else the group may be joined anew."""
        time.sleep(REJOIN_PAUSE_S)
        now = time.monotonic()
        by_ourselves, self._session_ended = self._session_ended, False
        stood_still = self._watchdog.woke_at > self._proven
        if not by_ourselves:
            self._fenced.append(now)
        twin = len(self._fenced) == TWIN_FENCINGS and now - self._fenced[0] < TWIN_WINDOW_S
        if stood_still or twin:
            raise FencedByTwinError(
                f"another live worker uses our instance id {self._instance_id} and has taken our place in the group. "
                f"Give each its own RECKON_INSTANCE_ID: {fenced}"
            ) from fenced
        _log.warning("fresh consumer", reason=str(fenced), session_ended=by_ourselves)


def is_static_by_default(settings: Settings) -> bool:
    """Whether the membership is static, and not because the user set a group.instance.id."""
    return STATIC_ID in settings.consumer and settings.origins.get(f"consumer.{STATIC_ID}") == "default"


def as_member_for(settings: Settings, sources: Mapping[str, int]) -> Settings:
    """The settings with a static id that holds for these source topics (name -> number of partitions) and no others.

    A static member that comes back is given its old assignment as it was. Where the sources have changed meanwhile, it would be given
    partitions of topics that the pipeline no longer reads, and new ones would be nobody's: it must come as somebody else.
    """
    if not is_static_by_default(settings):
        return settings
    digest = hashlib.sha256(repr((settings.pipeline, sorted(sources.items()))).encode()).hexdigest()[:8]
    return replace(settings, consumer={**settings.consumer, STATIC_ID: f"{settings.instance_id}-{digest}"})


def leave(consumer: Consumer) -> None:
    """Leave the group as a static member, before the consumer is closed. What comes of the last polls is thrown away.

    librdkafka's static members do not leave when they are closed, but they do when they unsubscribe (rd_kafka_cgrp_leave_maybe). One has
    left when it has no member id: at once where it has not joined; where the group is rebalancing, that has to end first. Alternative not
    taken: a LeaveGroup request by the instance id (KIP-345), which confluent-kafka's AdminClient cannot send.
    """
    deadline = time.monotonic() + LEAVE_S
    try:
        consumer.unsubscribe()
        while consumer.memberid() and time.monotonic() < deadline:
            consumer.consume(1000, 0.01)
    except (KafkaException, SystemError) as exception:  # a fatal error: fenced by a twin, which has our place now
        _log.warning("the group was not left", reason=str(exception))


def parse_group_metadata(metadata: bytes) -> tuple[str, int]:
    """(member id, generation) of what ``Consumer.consumer_group_metadata`` returns.

    What confluent-kafka hands over are librdkafka's bytes (rd_kafka_consumer_group_metadata_write): ``CGMDv2:``, generation (int32, native
    order), group id, NUL, member id, NUL, and the rest.
    """
    magic = b"CGMDv2:"
    if not metadata.startswith(magic):
        raise WorkerError(f"group metadata in an unknown form: {metadata[:7]!r}")
    (generation,) = struct.unpack_from("=i", metadata, len(magic))
    _, member, _ = metadata[len(magic) + 4 :].split(b"\0", 2)
    return member.decode(), generation
