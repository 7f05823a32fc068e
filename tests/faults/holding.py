"""A proxy that understands as much of Kafka's protocol as it takes to hold back one request."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self

from devkit import Cluster
from devkit.ports import HOST, Port
from tests.faults.arena import second_listener

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from io import BufferedReader
    from types import TracebackType

JOIN_GROUP, END_TXN, TXN_OFFSET_COMMIT = 11, 26, 28


class Held:
    """The next request with an API key, and what follows it on its connection: waits in the proxy from when it has come."""

    def __init__(self, key: int) -> None:
        self.key = key
        self.came, self.answered = threading.Event(), threading.Event()
        """Whether it is held; whether the broker has answered it since."""
        self._free = threading.Event()
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._number: int | None = None

    def let_go(self) -> None:
        """To the broker."""
        self._free.set()

    def hang_up(self) -> None:
        """For the client its connection is lost; the broker gets the request all the same, once it is let go."""
        assert self._ends is not None, "it has not come yet"
        with contextlib.suppress(OSError):
            self._ends[0].shutdown(socket.SHUT_RDWR)

    def wait(self, request: bytes, client: socket.socket, broker: socket.socket) -> None:
        """In the thread of its connection, until it is let go."""
        self._ends, self._number = (client, broker), _number(request, 4)
        self.came.set()
        self._free.wait()

    def note(self, answer: bytes, broker: socket.socket) -> None:
        """Of any request, on any connection."""
        if self._ends is not None and self._ends[1] is broker and _number(answer, 0) == self._number:
            self.answered.set()


class HoldingProxy:
    """Passes connections to 127.0.0.1:`port` on to 127.0.0.1:`target_port`; a context manager, with two threads per connection."""

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._held: list[Held] = []
        self._sockets = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._sockets.enter_context(self._listener)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for held in self._held:
            held.let_go()
        self._sockets.close()

    def hold(self, key: int) -> Held:
        """The next request with this API key."""
        self._held.append(Held(key))
        return self._held[-1]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client = self._sockets.enter_context(self._listener.accept()[0])
                broker = self._sockets.enter_context(socket.create_connection((HOST, self._target)))
                for work in (self._requests, self._answers):
                    threading.Thread(target=work, args=(client, broker), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket) -> None:
        """Each has its length in four bytes before it, and begins with its API key, that key's version and its number."""
        with contextlib.suppress(OSError), client.makefile("rb") as stream:
            while (request := _next(stream)) is not None:
                for held in self._held:
                    if held.key == struct.unpack_from(">h", request)[0] and not held.came.is_set():
                        held.wait(request, client, broker)
                broker.sendall(struct.pack(">i", len(request)) + request)
        _hang_up(broker)

    def _answers(self, client: socket.socket, broker: socket.socket) -> None:
        """Each has its length in four bytes before it, and begins with the number of its request."""
        with contextlib.suppress(OSError), broker.makefile("rb") as stream:
            while (answer := _next(stream)) is not None:
                for held in self._held:
                    held.note(answer, broker)
                with contextlib.suppress(OSError):  # the client has hung up, or been hung up on
                    client.sendall(struct.pack(">i", len(answer)) + answer)
        _hang_up(client)


@contextlib.contextmanager
def broker_behind_proxy() -> Iterator[tuple[str, HoldingProxy]]:
    """The address of a broker, and a proxy before its second listener."""
    with contextlib.ExitStack() as stack:
        behind = stack.enter_context(contextlib.closing(Port()))
        proxy = stack.enter_context(HoldingProxy(behind.number))

        def listeners(settings: Mapping[str, str]) -> dict[str, str]:
            behind.before_start()
            return second_listener(settings, behind.number, proxy.port)

        yield stack.enter_context(Cluster(per_node=listeners)).bootstrap, proxy


def _next(stream: BufferedReader) -> bytes | None:
    head = stream.read(4)
    return stream.read(struct.unpack(">i", head)[0]) if len(head) == 4 else None


def _number(message: bytes, at: int) -> int:
    return int(struct.unpack_from(">i", message, at)[0])


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_WR)
