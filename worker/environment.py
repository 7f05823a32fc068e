"""What the environment says (twelve factors, III): client settings, and names that are probably mistyped."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

PREFIX = "RECKON_"
CLIENTS = ("KAFKA_", "CONSUMER_", "PRODUCER_")

_ALIKE = 0.8
"""As difflib measures it. Not lower: a pipeline file may refer to variables of any name, and Kubernetes sets some for every service."""


def client_settings(infix: str) -> dict[str, str]:
    """Name as librdkafka has it -> value, of the variables that begin with ``RECKON_`` and the infix."""
    prefix = PREFIX + infix
    return {_client_name(name[len(prefix) :]): value for name, value in os.environ.items() if name.startswith(prefix)}


def mistyped(settings: Collection[str]) -> dict[str, str]:
    """Variables that stand for nothing, and the one that is probably meant. ``settings``: the worker's own, without the prefix."""
    known = [PREFIX + name.upper() for name in settings]
    found = {}
    for name in os.environ:
        if name.startswith(PREFIX) and name not in known and not name.startswith(tuple(PREFIX + c for c in CLIENTS)):
            for meant in difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE):
                found[name] = meant
    return found


def _client_name(text: str) -> str:
    name = text.lower().replace("_", ".")
    return "log_level" if name == "log.level" else name  # the one name of librdkafka's with an underscore
