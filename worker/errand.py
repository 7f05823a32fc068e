"""Calls into librdkafka that may never come back, made by a thread that can be left behind with its client.

A transactional producer that has lost its way to its coordinator stays inside ``send_offsets_to_transaction``, which obeys no timeout
(rd_kafka_txn_op_req1 with RD_POLL_INFINITE), and nothing brings a thread back from there. Alternative not taken: let the watchdog end the
process, which costs a start and, where nobody starts it again, the worker.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class HungError(Exception):
    """A call did not come back in time. Its thread keeps what it holds until it does; nothing of it may be used any more."""


class Errands:
    """Makes one call at a time, in a thread of its own, while the caller waits. A hand-over costs some tens of microseconds."""

    def __init__(self) -> None:
        self._hire()

    def __del__(self) -> None:
        self._calls.put(None)  # its thread ends with it; SimpleQueue.put may be called from a finalizer

    def run(self, call: Callable[[], object], limit_s: float) -> None:
        """Raises what the call raises, and HungError where it is not back after ``limit_s``."""
        self._calls.put(call)
        try:
            error = self._results.get(timeout=limit_s)
        except queue.Empty:
            self._calls.put(None)  # its thread ends when the call is back
            self._hire()
            raise HungError from None
        if error is not None:
            raise error

    def _hire(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        threading.Thread(target=_work, args=(self._calls, self._results), name="errands", daemon=True).start()


def _work(
    calls: queue.SimpleQueue[Callable[[], object] | None], results: queue.SimpleQueue[BaseException | None]
) -> None:
    while (call := calls.get()) is not None:
        result: BaseException | None = None
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            result = error
        del call  # and with it, perhaps, the last hold on a client
        results.put(result)
        del result
