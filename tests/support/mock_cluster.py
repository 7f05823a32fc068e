"""librdkafka's mock cluster, driven through the C functions of the very library that confluent-kafka ships.

Ordinary clients connect to ``MockCluster.bootstrap``; the test pushes the replies that they get. The mock knows groups, transactions and
their markers. It knows neither read_committed nor stored transactional offsets (a TxnOffsetCommit is acknowledged and forgotten), so it
serves error classes and nothing more. ``committed_values`` decides by the markers itself, without any code of ours or of librdkafka.

Functions: rdkafka_mock.h. API keys and record batches: Kafka's protocol guide, https://kafka.apache.org/protocol.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

import confluent_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType


class Api(IntEnum):
    """The requests that matter here."""

    PRODUCE = 0
    FETCH = 1
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS = 24
    ADD_OFFSETS = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


@dataclass(frozen=True, slots=True)
class Reply:
    """What the broker answers to one request: an error code of Kafka (0: none; _TRANSPORT: the connection is cut), after ``delay_ms``.

    A request without an error is carried out at once, whenever its answer comes.
    """

    error: int = 0
    delay_ms: int = 0


def _library() -> ctypes.CDLL:
    """The librdkafka that confluent_kafka has loaded: bundled by the wheels, the system's otherwise."""
    package = Path(confluent_kafka.__file__).parent
    bundled = [*package.parent.glob("confluent_kafka.libs/librdkafka*"), *package.glob(".dylibs/librdkafka*")]
    for name in (*map(str, bundled), ctypes.util.find_library("rdkafka")):
        if name is not None:
            library = ctypes.CDLL(name)
            if library.rd_kafka_version() == confluent_kafka.libversion()[1]:
                return library
    raise RuntimeError(f"no librdkafka {confluent_kafka.libversion()[0]} beside {package} nor on the system")


_POINTER, _TEXT, _INT, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_size_t
_SHORT, _NUMBER = ctypes.c_int16, ctypes.c_int
_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "rd_kafka_new": (_POINTER, [_NUMBER, _POINTER, _TEXT, _SIZE]),
    "rd_kafka_destroy": (None, [_POINTER]),
    "rd_kafka_mock_cluster_new": (_POINTER, [_POINTER, _NUMBER]),
    "rd_kafka_mock_cluster_destroy": (None, [_POINTER]),
    "rd_kafka_mock_cluster_bootstraps": (_TEXT, [_POINTER]),
    "rd_kafka_mock_topic_create": (_NUMBER, [_POINTER, _TEXT, _NUMBER, _NUMBER]),
    "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [_POINTER, _INT]),
    # Variadic: the pushed replies follow.
    "rd_kafka_mock_broker_push_request_error_rtts": (_NUMBER, [_POINTER, _INT, _SHORT, _SIZE]),
    "rd_kafka_mock_partition_push_request_errors": (_NUMBER, [_POINTER, _TEXT, _INT, _SHORT, _SIZE]),
    "rd_kafka_mock_broker_error_stack_cnt": (_NUMBER, [_POINTER, _INT, _SHORT, ctypes.POINTER(_SIZE)]),
    "rd_kafka_mock_start_request_tracking": (None, [_POINTER]),
    "rd_kafka_mock_get_requests": (ctypes.POINTER(_POINTER), [_POINTER, ctypes.POINTER(_SIZE)]),
    "rd_kafka_mock_request_api_key": (_SHORT, [_POINTER]),
    "rd_kafka_mock_request_destroy_array": (None, [ctypes.POINTER(_POINTER), _SIZE]),
}
_PRODUCER = 0
_BROKER = 1
"""One broker: its requests have one order, and it is every coordinator and leader."""


class MockCluster:
    """One broker on a loopback port, for the time of a ``with`` block. ``topics``: name -> number of partitions."""

    def __init__(self, topics: dict[str, int]) -> None:
        self._topics = dict(topics)
        self._c = _library()
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._c, name)
            function.restype, function.argtypes = result, arguments

    def __enter__(self) -> Self:
        message = ctypes.create_string_buffer(512)
        self._handle = self._c.rd_kafka_new(_PRODUCER, None, message, len(message))
        if not self._handle:
            raise RuntimeError(f"rd_kafka_new: {message.value.decode()}")
        self._cluster = self._c.rd_kafka_mock_cluster_new(self._handle, 1)
        with self._kept_awake():
            self._c.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
            for topic, partitions in self._topics.items():
                _succeed(self._c.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1))
        self._c.rd_kafka_mock_start_request_tracking(self._cluster)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._kept_awake():
            self._c.rd_kafka_mock_cluster_destroy(self._cluster)
        self._c.rd_kafka_destroy(self._handle)

    @contextmanager
    def _kept_awake(self) -> Iterator[None]:
        """The mock's thread now and then misses that it was given an order and sleeps on for a second; a connection wakes it."""
        host, _, port = self.bootstrap.partition(":")
        done = threading.Event()

        def wake() -> None:
            while not done.wait(0.01):
                with suppress(OSError):
                    socket.create_connection((host, int(port)), timeout=1).close()

        thread = threading.Thread(target=wake)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    @property
    def bootstrap(self) -> str:
        """What clients take as bootstrap.servers."""
        address: bytes = self._c.rd_kafka_mock_cluster_bootstraps(self._cluster)
        return address.decode()

    def inject(self, api: Api, *replies: Reply | int) -> None:
        """The next requests of this kind get these replies, in this order; a plain number is an error code."""
        flat: list[ctypes.c_int] = []
        for reply in replies:
            full = reply if isinstance(reply, Reply) else Reply(reply)
            flat += [ctypes.c_int(full.error), ctypes.c_int(full.delay_ms)]
        _succeed(self._c.rd_kafka_mock_broker_push_request_error_rtts(self._cluster, _BROKER, api, len(replies), *flat))

    def inject_produce(self, topic: str, partition: int, *errors: int) -> None:
        """The next produce requests with records for this partition get these errors for it; 0 lets one pass."""
        _succeed(
            self._c.rd_kafka_mock_partition_push_request_errors(
                self._cluster, topic.encode(), partition, Api.PRODUCE, len(errors), *map(ctypes.c_int, errors)
            )
        )

    def unused(self, api: Api) -> int:
        """How many injected replies no request has taken yet."""
        count = ctypes.c_size_t()
        _succeed(self._c.rd_kafka_mock_broker_error_stack_cnt(self._cluster, _BROKER, api, ctypes.byref(count)))
        return count.value

    def requests(self, *apis: Api) -> list[Api]:
        """The requests of these kinds since the start, in the order in which the broker took them."""
        count = ctypes.c_size_t()
        found = self._c.rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        keys = [self._c.rd_kafka_mock_request_api_key(found[i]) for i in range(count.value)]
        self._c.rd_kafka_mock_request_destroy_array(found, count)
        return [Api(key) for key in keys if key in apis]

    def batches(self, topic: str, partition: int) -> int:
        """How many batches the partition holds, markers too. A Fetch is answered with one of them."""
        return len(self._fetch(topic, partition))

    def committed_values(self, topic: str) -> list[bytes]:
        """The values in the topic that a read_committed reader sees: those before a commit marker of their producer."""
        return [
            value for partition in range(self._topics[topic]) for value in _committed(self._fetch(topic, partition))
        ]

    def written_values(self, topic: str) -> list[bytes]:
        """All values in the topic, whatever became of their transactions."""
        return [
            value
            for partition in range(self._topics[topic])
            for batch in self._fetch(topic, partition)
            if not batch.control
            for value in batch.values
        ]

    def _fetch(self, topic: str, partition: int) -> list[_Batch]:
        """The whole partition, by Fetch requests of version 4."""
        host, _, port = self.bootstrap.partition(":")
        batches: list[_Batch] = []
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            while True:
                offset = batches[-1].end if batches else 0
                more = [b for b in _decode(_fetch_once(connection, topic, partition, offset)) if b.end > offset]
                if not more:
                    return batches
                batches += more


def _succeed(code: int) -> None:
    if code:
        raise RuntimeError(f"the mock cluster refused: {confluent_kafka.KafkaError(code).str()}")


@dataclass(frozen=True, slots=True)
class _Batch:
    producer: tuple[int, int]
    """(producer id, epoch)."""
    transactional: bool
    control: bool
    end: int
    """The offset after its last record."""
    keys: list[bytes]
    values: list[bytes]


_COMMIT_MARKER = 1


def _committed(batches: Sequence[_Batch]) -> list[bytes]:
    """Kafka's own rule, applied to a whole log: a transactional batch counts when its producer's next marker is a commit."""
    found: list[bytes] = []
    for index, batch in enumerate(batches):
        if batch.control:
            continue
        marker = next((b for b in batches[index:] if b.control and b.producer == batch.producer), None)
        if not batch.transactional or (marker is not None and _marker_type(marker) == _COMMIT_MARKER):
            found += batch.values
    return found


def _marker_type(marker: _Batch) -> int:
    _, kind = struct.unpack(">hh", marker.keys[0])
    return int(kind)


def _fetch_once(connection: socket.socket, topic: str, partition: int, offset: int) -> bytes:
    """The record batches from ``offset`` on, as one Fetch (version 4) answers."""
    name = topic.encode()
    header = struct.pack(">hhih", Api.FETCH, 4, 1, -1)
    body = struct.pack(">iiiib", -1, 10, 0, 1 << 24, 0)  # replica, wait, min bytes, max bytes, read_uncommitted
    body += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iiqi", 1, partition, offset, 1 << 24)
    request = header + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    answer = _receive(connection, size)
    at = 4 + 4 + 4 + 2 + len(name) + 4  # correlation id, throttle time, topics, name, partitions
    _, error, _, _, aborted = struct.unpack_from(">ihqqi", answer, at)
    _succeed(error)
    at += 26 + 16 * max(aborted, 0)
    (length,) = struct.unpack_from(">i", answer, at)
    return answer[at + 4 : at + 4 + max(length, 0)]


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the mock broker closed the connection")
        data += part
    return data


def _decode(data: bytes) -> Iterator[_Batch]:
    """Record batches of version 2, uncompressed."""
    at = 0
    while at + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        if at + 12 + length > len(data):
            return
        attributes, last = struct.unpack_from(">hi", data, at + 21)
        if attributes & 7:
            raise ValueError("compressed records: set compression.type to none")
        pid, epoch, _, count = struct.unpack_from(">qhii", data, at + 43)
        keys, values = [], []
        position = at + 61
        for _ in range(count):
            size, position = _varint(data, position)
            end = position + size
            position += 1
            for _ in ("timestamp delta", "offset delta"):
                _, position = _varint(data, position)
            key, position = _bytes(data, position)
            value, position = _bytes(data, position)
            keys.append(key)
            values.append(value)
            position = end
        yield _Batch((pid, epoch), bool(attributes & 16), bool(attributes & 32), base + last + 1, keys, values)
        at += 12 + length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(zigzag number, position after it)."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    return (data[at : at + size], at + size) if size >= 0 else (b"", at)
