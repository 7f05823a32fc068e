"""What an administrator does to topics and brokers under test; each call returns when the broker that is asked knows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import (  # type: ignore[attr-defined] # its stubs export less than it does
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourceType,
)

from devkit.admin import admin_client
from devkit.reader import Reader
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Mapping


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    """So many partitions for a topic that has fewer."""
    admin = admin_client(bootstrap)  # held: its answers die with it
    (future,) = admin.create_partitions([NewPartitions(topic, total)]).values()
    future.result(PATIENCE_S)
    # The controller's word is out before the broker has heard it: until then what is produced for them fails, for want of a partition.
    with Reader(bootstrap) as reader:
        await_true(lambda: len(reader.partitions_of([topic])) == total, f"{topic} has {total} partitions")


def set_topic(bootstrap: str, topic: str, settings: Mapping[str, str]) -> None:
    """Settings of a topic; an empty value takes the setting away."""
    _alter(bootstrap, ConfigResource(ResourceType.TOPIC, topic, incremental_configs=_entries(settings)))

    def known() -> bool:
        own = settings_of(bootstrap, topic)
        return all(own.get(name, "") == value for name, value in settings.items())

    await_true(known, f"the broker has the settings {settings} of {topic}")


def settings_of(bootstrap: str, topic: str) -> dict[str, str]:
    """The settings that the topic itself was given."""
    admin = admin_client(bootstrap)  # held: its answers die with it
    (answer,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    entries = answer.result(PATIENCE_S).values()
    return {each.name: each.value for each in entries if each.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}


def set_broker(bootstrap: str, settings: Mapping[str, str]) -> None:
    """Settings of the one broker of a cluster, node 1. Here the controller's word must do: the broker follows a moment later."""
    _alter(bootstrap, ConfigResource(ResourceType.BROKER, "1", incremental_configs=_entries(settings)))


def _entries(settings: Mapping[str, str]) -> list[ConfigEntry]:
    to, off = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    return [ConfigEntry(name, value, incremental_operation=to if value else off) for name, value in settings.items()]


def _alter(bootstrap: str, resource: ConfigResource) -> None:
    admin = admin_client(bootstrap)
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(PATIENCE_S)
