"""A proxy that understands as much of Kafka's protocol as it takes to hold back one request."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self

from devkit.ports import HOST

if TYPE_CHECKING:
    from io import BufferedReader
    from types import TracebackType

JOIN_GROUP = 11


class HoldingProxy:
    """Passes connections to 127.0.0.1:`port` on to 127.0.0.1:`target_port`; a context manager, with two threads per connection.

    After `hold(key)` the next request with this API key waits for `let_go()`, and so does what follows it on its connection.
    """

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.holding = threading.Event()
        """Set once a request is held."""
        self._key: int | None = None
        self._free = threading.Event()
        self._sockets = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._sockets.enter_context(self._listener)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._free.set()
        self._sockets.close()

    def hold(self, key: int) -> None:
        self._key = key

    def let_go(self) -> None:
        self._free.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client = self._sockets.enter_context(self._listener.accept()[0])
                broker = self._sockets.enter_context(socket.create_connection((HOST, self._target)))
                for work, one, other in ((self._requests, client, broker), (_pass, broker, client)):
                    threading.Thread(target=work, args=(one, other), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket) -> None:
        """Requests, each with its length in four bytes before it; the first two bytes of a request are its API key."""
        with contextlib.suppress(OSError), client.makefile("rb") as stream:
            while (request := _next(stream)) is not None:
                (key,) = struct.unpack_from(">h", request)
                if key == self._key:
                    self._key = None
                    self.holding.set()
                    self._free.wait()
                broker.sendall(struct.pack(">i", len(request)) + request)
        _hang_up(broker)


def _next(stream: BufferedReader) -> bytes | None:
    head = stream.read(4)
    return stream.read(struct.unpack(">i", head)[0]) if len(head) == 4 else None


def _pass(broker: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := broker.recv(65536):
            client.sendall(data)
    _hang_up(client)


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_WR)
