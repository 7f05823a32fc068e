"""Tells a twin, a live worker with our identity, from fencings that we brought about ourselves: of the producer (E2), of the consumer."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import structlog

from worker.errors import ConsumerFencedError, FencedByTwinError, Outcome, TransactionError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.settings import Settings
    from worker.watchdog import Watchdog

TWIN_FENCINGS = 3
"""Fenced so often in so short a time without a reason of our own, a twin is alive."""

TWIN_WINDOW_S = 60.0
"""So short a time for consumers. For producers two transaction timeouts: our own timeouts fence once per timeout at most."""

REJOIN_PAUSE_S = 1.0
"""Before a fresh consumer joins: for the heartbeats of whoever may have our place."""

_log = structlog.get_logger("reckon.fencings")


class _Fencings:
    """The last TWIN_FENCINGS of them."""

    def __init__(self, window_s: float) -> None:
        self.window_s = window_s
        self._at: deque[float] = deque(maxlen=TWIN_FENCINGS)

    def too_many(self) -> bool:
        """Counts one more; whether there were TWIN_FENCINGS within the window."""
        self._at.append(time.monotonic())
        return len(self._at) == TWIN_FENCINGS and self._at[-1] - self._at[0] < self.window_s


class ProducerFencings:
    """``what_is_wrong``: a line for each topic that cannot be used: outputs to it time out, and with them the transactions."""

    def __init__(self, settings: Settings, what_is_wrong: Callable[[], list[str]]) -> None:
        self._transactional_id = settings.transactional_id
        self._what_is_wrong = what_is_wrong
        self._fencings = _Fencings(2 * settings.transaction_timeout_s)

    def count(self, error: TransactionError) -> None:
        """A producer is done. WorkerError where another one will not mend it, FencedByTwinError where it was a twin's doing."""
        if error.outcome is Outcome.FATAL:
            raise WorkerError(str(error)) from error
        if error.outcome is Outcome.FENCED and self._fencings.too_many() and not self._excused():
            raise FencedByTwinError(
                f"fenced {TWIN_FENCINGS} times within {self._fencings.window_s:g} s: another live worker uses transactional.id "
                f"{self._transactional_id}. Give each its own RECKON_INSTANCE_ID"
            ) from error
        _log.warning("fresh producer", reason=str(error), outcome=error.outcome.name)

    def _excused(self) -> bool:
        """Whether topics that are gone explain the fencings."""
        wrong = self._what_is_wrong()
        if wrong:
            _log.error("fenced again and again", wrong=wrong)
        return bool(wrong)


class ConsumerFencings:
    """Tells a twin from ourselves when the group fences our static member (the same idea as E2).

    A member whose session has ended on its own side, as its coordinator was away, joins anew without a member id; a request of
    before, sent once more, then meets the new id and is fenced (librdkafka #3437). That is no twin, and a fresh consumer mends it. But
    whoever stood still just before has to think that its instance was started again, and to leave its successor alone: that one shows
    at the first heartbeats after waking, so that a fencing long afterwards is none of its doing.
    """

    def __init__(self, settings: Settings, watchdog: Watchdog) -> None:
        self._instance_id = settings.instance_id
        self._watchdog = watchdog
        # With KIP-848 the session timeout is the broker's, 45 s by default.
        self._successor_shows_s = 2 * int(settings.consumer.get("session.timeout.ms", 45_000)) / 1000
        self._fencings = _Fencings(TWIN_WINDOW_S)
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
        by_ourselves, self._session_ended = self._session_ended, False
        woke_at = self._watchdog.woke_at
        stood_still = woke_at > self._proven and time.monotonic() - woke_at <= self._successor_shows_s
        twin = not by_ourselves and self._fencings.too_many()
        if stood_still or twin:
            raise FencedByTwinError(
                f"another live worker uses our instance id {self._instance_id} and has taken our place in the group. "
                f"Give each its own RECKON_INSTANCE_ID: {fenced}"
            ) from fenced
        _log.warning("fresh consumer", reason=str(fenced), session_ended=by_ourselves)
