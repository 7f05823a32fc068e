"""The proxy: what it passes, delays, keeps and cuts. Without Kafka."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from devkit.ports import HOST, Port
from tests.faults.proxy import Proxy
from tests.support.pipelines import in_background
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Echo:
    """A server that sends back what it gets, and hangs up when its client does."""

    def __init__(self) -> None:
        self._server = socket.create_server((HOST, 0))
        self.port: int = self._server.getsockname()[1]
        self.ended: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._echo, args=[self._server.accept()[0]], daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(1 << 18):
                    connection.sendall(data)
                self.ended.append("closed")
            except OSError as error:
                self.ended.append(type(error).__name__)

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def echo() -> Iterator[_Echo]:
    with contextlib.closing(_Echo()) as echo:
        yield echo


@pytest.fixture
def proxy(echo: _Echo) -> Iterator[Proxy]:
    with Proxy(echo.port) as proxy:
        yield proxy


def _connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection((HOST, proxy.port), timeout=PATIENCE_S)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = connection.recv(1 << 18)
        assert more, f"the connection ended after {len(data)} of {size} bytes"
        data += more
    return bytes(data)


def _said(connection: socket.socket, text: bytes) -> float:
    """Seconds until the echo of `text` was there."""
    began = time.monotonic()
    with in_background(lambda: connection.sendall(text)):
        assert text == _receive(connection, len(text))
    return time.monotonic() - began


def _quickest(connection: socket.socket, text: bytes, bound_s: float) -> float:
    """The shortest time that the echo took, of so many tries as it takes to be below the bound, 20 at most.

    A machine that is busy elsewhere makes any try slow. What is slow by itself is never quick.
    """
    times = [_said(connection, text)]
    while min(times) >= bound_s and len(times) < 20:
        times.append(_said(connection, text))
    return min(times)


def test_passes_bytes_and_the_end_of_a_connection(proxy: Proxy, echo: _Echo) -> None:
    """Megabytes arrive whole and in order, are counted once per direction, and a client that hangs up does so at the target."""
    data = bytes(range(256)) * 32768
    with _connect(proxy) as connection:
        with in_background(lambda: connection.sendall(data)):
            assert data == _receive(connection, len(data))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert proxy.bytes_passed == 2 * len(data)
    assert proxy.held_bytes == 0
    assert echo.ended == ["closed"]


def test_latency_is_added_in_both_directions_and_goes(proxy: Proxy) -> None:
    """A round trip takes twice the latency, however much is under way; healed, it does not."""
    with _connect(proxy) as connection:
        proxy.slow(latency_s=0.2)
        assert 0.4 <= _quickest(connection, b"a", 1.5) < 1.5
        # Eight chunks or more: one after the other they would take 1.8 s.
        assert 0.4 <= _quickest(connection, bytes(2_000_000), 1.5) < 1.5
        proxy.heal()
        assert _quickest(connection, b"b", 0.4) < 0.4


def test_cut_resets_both_sides_and_accepts_anew(proxy: Proxy, echo: _Echo) -> None:
    """Both ends of both connections see a reset; the next connection works."""
    with _connect(proxy) as one, _connect(proxy) as two:
        _said(one, b"a")
        _said(two, b"b")
        assert proxy.cut() == 2
        for each in (one, two):
            with pytest.raises(ConnectionResetError):
                each.recv(1)
    await_true(lambda: len(echo.ended) == 2, "the target saw the ends")
    assert echo.ended == ["ConnectionResetError"] * 2
    assert proxy.cut() == 0
    with _connect(proxy) as three:
        _said(three, b"c")


def test_a_black_hole_keeps_bytes_until_healed(proxy: Proxy) -> None:
    """Nothing comes back while it lasts; then all of it does, and what was held is counted."""
    with _connect(proxy) as old:
        _said(old, b"a")
        passed = proxy.bytes_passed
        proxy.black_hole()
        with _connect(proxy) as new:
            old.sendall(b"old")
            new.sendall(b"new")
            await_true(lambda: proxy.held_bytes == 6, "six bytes held")
            new.settimeout(0.2)
            with pytest.raises(TimeoutError):
                new.recv(1)
            assert passed == proxy.bytes_passed
            proxy.heal()
            new.settimeout(PATIENCE_S)
            assert _receive(old, 3) == b"old"
            assert _receive(new, 3) == b"new"


def test_what_a_client_sent_before_it_hung_up_arrives_after_the_black_hole(proxy: Proxy, echo: _Echo) -> None:
    """A delayed request of a client that is gone: the target gets bytes and end late, not never, and not early."""
    with _connect(proxy) as connection:
        _said(connection, b"a")
        passed = proxy.bytes_passed
        proxy.black_hole()
        connection.sendall(b"late")
        await_true(lambda: proxy.held_bytes == 4, "four bytes held")
    assert echo.ended == []
    proxy.heal()
    await_true(lambda: echo.ended, "the target saw the end")
    assert proxy.bytes_passed >= passed + 4


def test_a_target_that_is_down_resets_the_client() -> None:
    """Nobody listens at the target: the client learns it at once, and the proxy goes on. The port is held, so that nobody else takes it."""
    with contextlib.closing(Port()) as nobody, Proxy(nobody.number) as proxy:
        for _ in range(2):
            with pytest.raises(ConnectionResetError), _connect(proxy) as connection:
                connection.recv(1)
