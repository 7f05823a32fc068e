"""Produces orders at a bounded rate while something else goes on: a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaError, Message, Producer

from devkit.errors import DevkitError
from devkit.orders import orders

if TYPE_CHECKING:
    from devkit.orders import Kind, OrderRecord

_TICK_S = 0.02
"""From one handful of orders to the next."""

_AT_ONCE = 0.4
"""The share of the orders that come at the full rate whatever happens."""

_RESERVE_S = 120.0
"""So long the rest lasts at the slow rate."""

_FLUSH_S = 60.0


class FeedError(DevkitError):
    """The orders could not be produced."""


class Feeder:
    """`n` orders to `topic`, `n / seconds` of them in a second. A context manager: entering starts, leaving stops and joins.

    From four tenths of them on they come slowly until `hurry`: so there is work for as long as it takes to catch a worker at it, however
    slow the machine is.
    """

    def __init__(self, bootstrap: str, topic: str, n: int, seconds: float, seed: int = 1) -> None:
        self.sent = 0
        self.kinds: Counter[Kind] = Counter()
        """What was produced, by what it was made as."""
        self._bootstrap = bootstrap
        self._topic = topic
        self._orders = orders(n, seed)
        self._n = n
        self._rate = n / seconds
        self._problem = ""
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        self._thread.join(_FLUSH_S + 5)

    def hurry(self) -> None:
        """The rest at the full rate."""
        self._hurry.set()

    @property
    def done(self) -> bool:
        """Whether everything was produced and acknowledged. FeedError when that has failed."""
        if self._problem:
            raise FeedError(f"orders could not be produced to {self._topic}: {self._problem}")
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._feed()
        except Exception as error:  # noqa: BLE001 - kept for the thread that asks whether we are done
            self._problem = repr(error)

    def _feed(self) -> None:
        # A local, so that it is gone with the thread: one left over would complain when the broker ends.
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 5,
                "partitioner": "murmur2_random",
                "delivery.report.only.error": True,
                "on_delivery": self._undelivered,
            }
        )
        due = time.monotonic()
        while self.sent < self._n:
            rate = self._rate_now()
            handful = list(islice(self._orders, max(1, round(rate * _TICK_S))))
            for order in handful:
                self._produce(producer, order)
                self.kinds[order.kind] += 1
                self.sent += 1
            producer.poll(0)
            # What a busy machine has kept us from is made up for at the full rate only: the reserve is not to be spent on that.
            due = (due if rate == self._rate else max(due, time.monotonic())) + len(handful) / rate
            if self._stop.wait(max(0.0, due - time.monotonic())):
                return
        if left := producer.flush(_FLUSH_S):
            self._problem = self._problem or f"{left} orders were not acknowledged within {_FLUSH_S:g} s"

    def _rate_now(self) -> float:
        """Orders a second."""
        if self.sent < _AT_ONCE * self._n or self._hurry.is_set():
            return self._rate
        return min(self._rate, (1 - _AT_ONCE) * self._n / _RESERVE_S)

    def _produce(self, producer: Producer, order: OrderRecord) -> None:
        rest: dict[str, Any] = {"timestamp": order.timestamp_ms, "headers": order.headers}
        while not self._stop.is_set():
            try:
                producer.produce(self._topic, order.value, order.key, **rest)
            except BufferError:
                producer.poll(0.05)
            else:
                return

    def _undelivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._problem = self._problem or str(error)
