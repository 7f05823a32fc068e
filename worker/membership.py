"""Static membership in the group (KIP-345) by default: who comes back after a kill has its place at once, and who stops leaves at once.

With the classic protocol only. With KIP-848 a static member that was killed keeps its successor out until its session ends
(UNRELEASED_INSTANCE_ID), which is no sooner than for a dynamic one.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import KafkaException

from worker.settings import STATIC_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Consumer

    from worker.settings import Settings

LEAVE_S = 2.0
"""How long to try to leave a group in order; its session timeout does the rest."""

_log = structlog.get_logger("reckon.membership")


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
