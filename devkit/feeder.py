"""Produces orders at a bounded rate while something else goes on: a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaError, Message, Producer

from devkit.errors import DevkitError
from devkit.orders import orders

if TYPE_CHECKING:
    from devkit.orders import Kind, OrderRecord

_STEP = 200
_FLUSH_S = 30.0


class FeedError(DevkitError):
    """The orders could not be produced."""


class Feeder:
    """`n` orders to `topic`, spread evenly over about `seconds`. A context manager: entering starts, leaving stops and joins."""

    def __init__(self, bootstrap: str, topic: str, n: int, seconds: float, seed: int = 1) -> None:
        self.sent = 0
        self.kinds: Counter[Kind] = Counter()
        """What was produced, by what it was made as."""
        self._bootstrap = bootstrap
        self._topic = topic
        self._orders = orders(n, seed)
        self._rate = n / seconds
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        self._thread.join(_FLUSH_S + 5)

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
        start = time.monotonic()
        for order in self._orders:
            self._produce(producer, order)
            self.kinds[order.kind] += 1
            self.sent += 1
            if self.sent % _STEP == 0:
                producer.poll(0)
                if self._stop.wait(max(0.0, self.sent / self._rate - (time.monotonic() - start))):
                    return
        if left := producer.flush(_FLUSH_S):
            self._problem = self._problem or f"{left} orders were not acknowledged within {_FLUSH_S:g} s"

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
