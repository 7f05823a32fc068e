"""Client settings that are the guarantee, or the worker's own to set: nobody else can."""

from __future__ import annotations

from typing import Any, Final

from worker.consistency import plain

CONSUMER_PINNED: Final[dict[str, Any]] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
PRODUCER_PINNED: Final[dict[str, Any]] = {
    "acks": "all",
    "enable.idempotence": True,
    "delivery.report.only.error": True,
    "allow.auto.create.topics": False,
    "retry.backoff.ms": 100,  # transaction.QUICK_END_S rests on it (E3)
}
PINNED: Final = {"consumer": CONSUMER_PINNED, "producer": PRODUCER_PINNED}
ALIASES: Final = {
    "request.required.acks": "acks",
    "auto.commit.enable": "enable.auto.commit",
    "metadata.broker.list": "bootstrap.servers",
}
_OURS: Final = {
    "transactional.id": "it is made of the pipeline's name and RECKON_INSTANCE_ID",
    "group.id": "set group_id in the pipeline file or RECKON_GROUP_ID",
    "auto.offset.reset": "set source.start in the pipeline file to earliest or latest",
}


def refusal(kind: str, given_name: str, value: object, origin: str | None = None) -> str | None:
    """Why a setting of the client `kind` cannot be; None where it can. `origin`: told together with the value, where it is given."""
    name = ALIASES.get(given_name, given_name)
    where = f" ({origin})" if origin else ""
    if name in _OURS:
        return f"{name}{where} cannot be set: {_OURS[name]}"
    pinned = PINNED[kind]
    if name in pinned and not _same(name, value, pinned[name]):
        told = f"{name}={value}{where}" if origin else f"this value of {name}"
        return f"{told} would break exactly-once: it is pinned to {plain(pinned[name])}; leave it out"
    return None


def _same(name: str, given: object, pinned: object) -> bool:
    return plain(given).lower() == plain(pinned) or (name == "acks" and plain(given) == "-1")
