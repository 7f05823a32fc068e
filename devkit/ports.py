"""Loopback ports for brokers: chosen by the OS, known before the broker starts, held while a node is down."""

from __future__ import annotations

import errno
import socket
import sys

from devkit.errors import PortTakenError

HOST = "127.0.0.1"

# On Linux two sockets may be bound to one port when both set SO_REUSEADDR and at most one listens, as Java's server
# sockets do. So a reservation stays bound, never listening, for the life of the cluster: while a node starts or is
# down, the kernel gives its port neither to another bind(0) nor to a client that connects (which could even connect
# to itself). Elsewhere such a socket would keep the broker out, and the port is let go just before a start.
_HOLD = sys.platform == "linux"


class Port:
    """A reserved port of the loopback interface; `number` is 1..65535."""

    def __init__(self, number: int = 0) -> None:
        """Reserve `number`, or with 0 one that the OS chooses. Raises PortTakenError when it is in use."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, number))
        except OSError as e:
            self._socket.close()
            if e.errno == errno.EADDRINUSE:
                raise PortTakenError(f"port {number} on {HOST} is in use by another program; name another one") from e
            raise PortTakenError(f"port {number} on {HOST} cannot be used: {e.strerror}") from e
        self.number: int = self._socket.getsockname()[1]

    def before_start(self) -> None:
        """Let the broker have the port."""
        if not _HOLD:
            self._socket.close()

    def close(self) -> None:
        self._socket.close()


def accepts(port: int) -> bool:
    """Whether something accepts connections on the loopback port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0
