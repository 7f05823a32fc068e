"""Reserved ports."""

from __future__ import annotations

import contextlib
import socket
import sys

import pytest

from devkit.errors import PortTakenError
from devkit.ports import HOST, Port, accepts


def test_the_os_chooses_distinct_ports() -> None:
    """Each reservation is another port, and nothing listens there yet."""
    with contextlib.closing(Port()) as first, contextlib.closing(Port()) as second:
        assert first.number != second.number
        assert not accepts(first.number)


def test_taken_port_is_named() -> None:
    """A port on which someone listens is refused by its number."""
    with socket.create_server((HOST, 0)) as server:
        number = server.getsockname()[1]
        assert accepts(number)
        with pytest.raises(PortTakenError, match=f"port {number} on 127.0.0.1 is in use by another program"):
            Port(number)


@pytest.mark.skipif(sys.platform != "linux", reason="a held reservation lets a server in on Linux only")
def test_a_server_starts_on_a_reserved_port() -> None:
    """What a broker does: bind with SO_REUSEADDR and listen, while the reservation is held; and again later."""
    with contextlib.closing(Port()) as port:
        for _ in range(2):
            port.before_start()
            with socket.create_server((HOST, port.number)):
                assert accepts(port.number)
            assert not accepts(port.number)
