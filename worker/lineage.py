"""The header that says which source record an output came from.

Form: name ``reckon.source``, value UTF-8 text ``topic/partition/offset/index``, e.g. ``shop.orders/3/4711/0``: the index counts
the outputs of that one record from 0. Topic names cannot contain a slash. Spark reads it natively with
``split(cast(value AS string), '/')``. No other form was measurably cheaper (DECISIONS.md, 4), and people can read this one in any
tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from transforms.records import HeaderList, Output

HEADER = "reckon.source"

Message: TypeAlias = "tuple[str, bytes | None, bytes | None, int, None, None, int, HeaderList | None]"
"""The positional arguments of ``Producer.produce``: (topic, value, key, partition, callback, on_delivery, timestamp, headers)."""

_BY_KEY = -1
"""RD_KAFKA_PARTITION_UA: the partitioner chooses by key."""


def stamped(topic: str, partition: int, outputs: Iterable[Output]) -> list[Message]:
    """Messages with the lineage header, for outputs of records of one source partition.

    A lineage header of an upstream pipeline is replaced: it names the record's grandparent.
    """
    prefix = f"{topic}/{partition}/"
    return [
        (
            to,
            value,
            key,
            _BY_KEY,
            None,
            None,
            timestamp,
            [(HEADER, f"{prefix}{record.offset()}/{index}")]
            if headers is None
            else [*_without_lineage(headers), (HEADER, f"{prefix}{record.offset()}/{index}")],
        )
        for to, value, key, headers, timestamp, record, index in outputs
    ]


def unstamped(outputs: Iterable[Output]) -> list[Message]:
    """Messages without a lineage header of ours; an upstream pipeline's is taken off, because it would lie."""
    return [
        (to, value, key, _BY_KEY, None, None, timestamp, None if headers is None else _without_lineage(headers))
        for to, value, key, headers, timestamp, _, _ in outputs
    ]


def _without_lineage(headers: HeaderList) -> HeaderList:
    return [header for header in headers if header[0] != HEADER]
