"""The receipt: what one transaction did, written inside that transaction to ``<name>.receipts``.

The audit lives on it, so its schema is versioned. The value is one JSON object (keys as in ``Receipt``), the record's key is the
transactional id. Read with ``read_committed``, the receipts of a pipeline tile every source partition: each range begins where the one
before it ended, whoever wrote it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import orjson

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class PartitionReceipt:
    """What became of one range of one source partition.

    ``read == (inputs that have outputs) + filtered + dead_lettered``. ``to - from_`` may exceed ``read``: offsets of commit markers, of
    aborted records and of records that compaction removed are never read.
    """

    topic: str
    partition: int
    from_: int
    """First offset of the range."""
    to: int
    """The offset after the range's last record: committed for the group in the same transaction."""
    read: int
    """Records read."""
    filtered: int
    """Records that yielded no output on purpose."""
    dead_lettered: int
    """Records that went to the dead letters."""
    written: dict[str, int] = field(default_factory=dict)
    """Outputs per topic; dead letters and receipts not counted."""
    topic_id: str | None = None
    """Id of the source topic (KIP-516): created again, a topic has another one. None: the broker did not tell."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """One committed transaction."""

    pipeline: str
    transactional_id: str
    incarnation: str
    """A random UUID per worker process; another one after a commit of unknown outcome that moved offsets."""
    sequence: int
    """Counts the committed transactions of this incarnation from 1, without a gap."""
    transform: str
    """Digest of the transform, `sha256:<hex>`: another digest means that other rules were at work."""
    worker: str
    """Version of the worker."""
    time_ms: int
    """When the transaction was about to commit, milliseconds since the epoch, by the worker's clock."""
    partitions: tuple[PartitionReceipt, ...]
    schema: int = SCHEMA
    lineage: bool = True
    """Whether outputs carry the lineage header. Receipts of workers that did not say so have no such field: theirs do."""

    def encode(self) -> bytes:
        """The record's value."""
        value = asdict(self)
        for part in value["partitions"]:
            part["from"] = part.pop("from_")
        return orjson.dumps(value)

    @classmethod
    def decode(cls, value: bytes) -> Receipt:
        """The receipt in a record's value; ValueError, KeyError or TypeError where it is none of this schema."""
        fields = orjson.loads(value)
        if not isinstance(fields, dict):
            raise TypeError(f"receipt is a {type(fields).__name__}, an object was expected")
        if fields.get("schema") != SCHEMA:
            raise ValueError(f"receipt of schema {fields.get('schema')}, {SCHEMA} was expected")
        partitions = tuple(
            PartitionReceipt(from_=part.pop("from"), **part) for part in (dict(p) for p in fields.pop("partitions"))
        )
        return cls(partitions=partitions, **fields)
