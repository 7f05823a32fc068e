"""A TCP proxy on the loopback interface that can be slow, cut connections, or pass nothing.

Own code, because what there is on PyPI drives a Go binary (toxiproxy) or cannot change while it runs (toxic-proxy).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self, TypeVar

from devkit.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

_T = TypeVar("_T")
_CHUNK = 256 * 1024  # bytes read at once
_WAITING = 16  # chunks on their way in one direction of one connection; beyond that the sender is held back, as by TCP's window
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: closing sends RST and drops what was not sent
_CALL_S = 60.0  # seconds for an order to the proxy's thread


class Proxy:
    """Passes connections to 127.0.0.1:`port` on to 127.0.0.1:`target_port`; a context manager, with a thread of its own.

    A target that refuses: the client's connection is accepted and reset. `port` is known before the `with` block, and listened
    on within it.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._socket = socket.create_server((HOST, 0))
        self.port: int = self._socket.getsockname()[1]
        self.bytes_passed = 0
        """Over both directions and all connections, handed to the kernel."""
        self.held_bytes = 0
        """Bytes that arrived while the proxy was a black hole, ever."""
        self.late_bytes = 0
        """Bytes that were sent on no sooner than the latency after they had come, ever."""
        self._latency_s = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._open = asyncio.Event()
        self._open.set()
        self._connections: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, sock=self._socket, limit=_CHUNK))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def slow(self, *, latency_s: float) -> None:
        """Every byte is on its way for `latency_s`, in both directions."""
        self._latency_s = latency_s

    def cut(self) -> int:
        """Reset all connections, on both sides; bytes on their way are lost. New ones are accepted. Returns how many were cut."""
        return self._call(self._cut())

    def black_hole(self) -> None:
        """Nothing passes either way, neither bytes nor ends of connections, until heal().

        New connections are accepted (the kernel does so), and silent. Bytes are kept and passed after heal(), also those of a client
        that has hung up meanwhile: what TCP's retransmissions do in a network that comes back.
        """
        self._call(self._set_open(False))

    def heal(self) -> None:
        """Pass everything, at once."""
        self._latency_s = 0.0
        self._call(self._set_open(True))

    def _call(self, work: Coroutine[None, None, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_S)

    async def _set_open(self, wanted: bool) -> None:  # noqa: FBT001 - for black_hole and heal
        (self._open.set if wanted else self._open.clear)()

    async def _end(self) -> None:
        self._server.close()
        await self._cut()

    async def _cut(self) -> int:
        found = list(self._connections)
        for task in found:
            task.cancel()
        await asyncio.gather(*found, return_exceptions=True)
        return len(found)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until both of its directions have ended, or one has failed, or it is cut."""
        task = asyncio.current_task()
        assert task is not None
        writers = self._connections[task] = [writer]
        try:
            there, back = await asyncio.open_connection(HOST, self._target_port, limit=_CHUNK)
            writers.append(back)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, back))
                both.create_task(self._pass(there, writer))
        except* (
            OSError,
            asyncio.CancelledError,
        ):  # refused, reset by either side, or cut: the other side learns it by a reset
            for each in writers:
                _reset(each)
        finally:
            del self._connections[task]
            for each in writers:
                each.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction. Reading and writing are two tasks, so that latency does not limit the throughput."""
        queue: asyncio.Queue[tuple[float, bytes | OSError]] = asyncio.Queue(_WAITING)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._receive(reader, queue))
            both.create_task(self._send(queue, writer))

    async def _receive(self, reader: asyncio.StreamReader, queue: asyncio.Queue[tuple[float, bytes | OSError]]) -> None:
        while True:
            data: bytes | OSError
            try:
                data = await reader.read(_CHUNK)
            except OSError as error:
                data = error  # a reset travels as bytes do: not through a black hole
            if not self._open.is_set() and isinstance(data, bytes):
                self.held_bytes += len(data)
            await queue.put((self._loop.time(), data))
            if not data or isinstance(data, OSError):
                return

    async def _send(self, queue: asyncio.Queue[tuple[float, bytes | OSError]], writer: asyncio.StreamWriter) -> None:
        while True:
            arrived, data = await queue.get()
            if (early := arrived + self._latency_s - self._loop.time()) > 0:
                await asyncio.sleep(early)
            if 0 < self._latency_s <= self._loop.time() - arrived and isinstance(data, bytes):
                self.late_bytes += len(data)
            await self._open.wait()
            if isinstance(data, OSError):
                raise data
            if not data:
                writer.write_eof()
                return
            self.bytes_passed += len(data)
            writer.write(data)
            await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
