"""Two requests of Kafka's protocol, each on a socket of its own: confluent-kafka has no call for the one and no clock for the other."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING

from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterable

ONGOING = "Ongoing"
"""The coordinator's word for a transaction that has partitions or offsets in it and is not being ended."""

_API_VERSIONS, _DESCRIBE_TRANSACTIONS = 18, 65
_NOT_FOUND = 105
_TIMEOUT_S = 0.5  # a paused broker accepts connections and says nothing
_PAUSE_S = 0.1


def round_trip_s(address: str) -> float:
    """Seconds from an ApiVersions request (version 0) to the whole of its answer, on a new connection. OSError without an answer."""
    with _connected(address, PATIENCE_S) as connection:
        began = time.monotonic()
        _ask(connection, _API_VERSIONS, b"")
        return time.monotonic() - began


def quickest_round_trip_s(address: str, bound_s: float) -> float:
    """Of three, and of more where none is below the bound: a machine that is busy makes some of them slow, slow ways make all."""
    deadline = time.monotonic() + PATIENCE_S
    quickest = min(round_trip_s(address) for _ in range(3))
    while quickest >= bound_s and time.monotonic() < deadline:
        quickest = min(quickest, round_trip_s(address))
    return quickest


def transaction_state(addresses: Iterable[str], transactional_id: str, patience_s: float = 0.0) -> str | None:
    """What its coordinator says of the transaction: "Ongoing", "CompleteCommit", ...; None where none of these brokers says so in time.

    DescribeTransactions (KIP-664), version 0, to one broker after the other: whoever does not coordinate the id says so.
    """
    deadline = time.monotonic() + patience_s
    while True:
        for address in addresses:
            try:
                with _connected(address, _TIMEOUT_S) as connection:
                    name = transactional_id.encode()
                    answer = _ask(connection, _DESCRIBE_TRANSACTIONS, b"\0\2" + bytes([len(name) + 1]) + name + b"\0")
            except OSError:
                continue
            if (state := _state_in(answer)) is not None:
                return state
        if time.monotonic() > deadline:
            return None
        time.sleep(_PAUSE_S)


def _connected(address: str, timeout_s: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout_s)


def _ask(connection: socket.socket, key: int, rest: bytes) -> bytes:
    """The answer without its length. ``rest``: what follows the client id; all of it is version 0."""
    request = struct.pack(">hhih6s", key, 0, 1, 6, b"faults") + rest
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            raise ConnectionResetError("the broker hung up")
        data += more
    return bytes(data)


def _state_in(answer: bytes) -> str | None:
    """Correlation id, tags, throttle time, number of states + 1; of the state: error, length + 1 of the id, id, the same of its name.

    No name here is longer than 126 bytes, so that each length is one byte.
    """
    (error,) = struct.unpack_from(">h", answer, 10)
    if error == _NOT_FOUND:
        return "not known"
    if error:
        return None
    at = 12 + answer[12]
    return answer[at + 1 : at + answer[at]].decode()
