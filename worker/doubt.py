"""Whether a request of a transaction may have been sent twice.

librdkafka lacks KIP-890's client part: an EndTxn that was delayed and sent again could end a *later* transaction of the same epoch (E3,
#5423), a TxnOffsetCommit could put its older offsets into one. It does not say when it sends one again; how long the call took and what
broke meanwhile tell where it cannot have.
"""

from __future__ import annotations

import time

SLOW_END_S = 1.0
"""What took longer may have been sent twice."""

QUICK_END_S = 0.05
"""What took less was not sent twice: librdkafka waits for retry.backoff.ms (100 ms, 20 % less by jitter) first, with offsets for 500 ms
(rd_kafka_txn_handle_TxnOffsetCommit)."""

_TO_COORDINATOR, _ESTABLISHED = "[thrd:TxnCoordinator]", "in state UP"
"""In log lines of the connection to the transaction coordinator (rd_kafka_txns_init), and of one to any broker that was there. Not of the
attempts at a broker that is away, which fail every second."""

UNSURE_S = 30.0 + SLOW_END_S
"""librdkafka reports a broken connection and suppresses its repetitions for 30 s (rd_kafka_broker_set_error)."""


class Doubt:
    """Of one producer."""

    def __init__(self) -> None:
        self._broken = float("-inf")
        self.lost_coordinator = False
        """Whether a connection broke that may have been to a coordinator, the transaction's or the group's. They may have moved, and
        librdkafka does not always look for them: the next transaction would hang in send_offsets_to_transaction until it is given up
        (DECISIONS 25)."""

    def note_broken_connection(self, line: str = "") -> None:
        """To be called for every broken connection that librdkafka tells of, with its log line, if there is one."""
        self._broken = time.monotonic()
        self.lost_coordinator |= _TO_COORDINATOR in line or _ESTABLISHED in line

    def sent_twice(self, took_s: float, calls: int) -> bool:
        """Whether the request that was answered after ``took_s`` and so many calls may be on its way once more."""
        return calls > 1 or took_s > SLOW_END_S or (self.troubled() and took_s > QUICK_END_S)

    def troubled(self) -> bool:
        """Whether a connection broke of late."""
        return time.monotonic() - self._broken < UNSURE_S
