"""A real Kafka broker for laptops, tests and the demo: `with Cluster() as cluster: ... cluster.bootstrap`."""

from devkit.cluster import Cluster
from devkit.errors import (
    BrokerDiedError,
    BrokerTimeoutError,
    DevkitError,
    JarsError,
    JavaMissingError,
    PortTakenError,
)
from devkit.node import Node

__all__ = [
    "BrokerDiedError",
    "BrokerTimeoutError",
    "Cluster",
    "DevkitError",
    "JarsError",
    "JavaMissingError",
    "Node",
    "PortTakenError",
]
