"""Who we are in the group, and static membership (KIP-345) by default: who comes back after a kill has its place at once, and who stops
leaves at once.

Static with the classic protocol only. With KIP-848 a static member that was killed keeps its successor out until its session ends
(UNRELEASED_INSTANCE_ID), which is no sooner than for a dynamic one.
"""

from __future__ import annotations

import hashlib
import struct
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import KafkaException

from worker.errors import WorkerError
from worker.settings import STATIC_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import Consumer

    from worker.settings import Settings

LEAVE_S = 2.0
"""How long to try to leave a group in order; its session timeout does the rest."""

_log = structlog.get_logger("reckon.membership")


class NotAMemberError(Exception):
    """The group does not know us just now, or not as who we were when it gave us our partitions; a poll mends it."""


class Membership:
    """As which member of which generation we own what we own (DECISIONS 26).

    ``metadata`` is ``Consumer.consumer_group_metadata``, called anew each time and never cached (T3).
    """

    def __init__(self, settings: Settings, metadata: Callable[[], bytes]) -> None:
        self._classic = is_classic(settings)
        self._metadata = metadata
        self._joined: tuple[str, int] | None = None
        """Member id and generation with which the last assignment came."""

    def note(self) -> bool:
        """To be called with every assignment, as every generation brings one, if only an empty one. Returns whether we are another member
        than at the last one.
        """
        joined = parse_group_metadata(self._metadata())
        another = self._joined is not None and self._joined[0] != joined[0]
        self._joined = joined
        return another

    def for_commit(self) -> bytes:
        """The group metadata for one commit.

        NotAMemberError when it names no member or no generation: brokers would accept such a commit unfenced. So when it names another
        member or generation than gave us our partitions: with the classic protocol librdkafka joins anew in the background, while our batch
        is worked on, and a broker checks member and generation, not who owns what. A static member that was expelled comes back so with
        a batch of partitions that others have read on. KIP-848's epochs rise without a word to us; there the broker waits until we have
        given a partition up.
        """
        metadata = self._metadata()
        member, generation = parse_group_metadata(metadata)
        if not member or generation < 0:
            raise NotAMemberError(f"not a member of the group (member id {member!r}, generation {generation})")
        if self._classic and (member, generation) != self._joined:
            raise NotAMemberError(
                f"the group has moved on to generation {generation}; our partitions are of {self._joined}"
            )
        return metadata


def is_classic(settings: Settings) -> bool:
    """Whether the group is coordinated by its members, and not by the broker (KIP-848)."""
    return bool(settings.consumer.get("group.protocol", "classic") == "classic")


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


def leave(consumer: Consumer) -> bool:
    """Leave the group as a static member, before the consumer is closed or joins anew. What comes of the last polls is thrown away.
    Returns whether we have left.

    librdkafka's static members do not leave when they are closed, but they do when they unsubscribe (rd_kafka_cgrp_leave_maybe). One has
    left when it has no member id: at once where it has not joined; where the group is rebalancing, that has to end first. Alternative not
    taken: a LeaveGroup request by the instance id (KIP-345), which confluent-kafka's AdminClient cannot send.
    """
    deadline = time.monotonic() + LEAVE_S
    try:
        consumer.unsubscribe()
        while consumer.memberid():
            if time.monotonic() >= deadline:
                return False
            consumer.consume(1000, 0.01)
    except (KafkaException, SystemError) as exception:  # a fatal error: fenced by a twin, which has our place now
        _log.warning("the group was not left", reason=str(exception))
        return False
    return True


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
