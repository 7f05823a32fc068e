"""A broker with two doors: one for the tests' own tools, who may do everything, and one with passwords (SCRAM) and ACLs for workers."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # its stubs export less than it does
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from devkit import Cluster
from devkit.admin import admin_client
from devkit.ports import HOST, Port
from tests.support.broker import unique
from tests.support.waiting import PATIENCE_S, await_true

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devkit.node import Node
    from tests.support.pipelines import Scene

PASSWORD = "open-sesame"
_ITERATIONS = 4096  # the fewest that Kafka takes

_silent = logging.Logger("turned away")  # noqa: LOG001 - a client's alone: that it is turned away at first is no news
_silent.addHandler(logging.NullHandler())

# A pipeline file's way to give credentials: no secret in it.
KAFKA_SECTION = """\
kafka:
  bootstrap.servers: "${RECKON_BOOTSTRAP_SERVERS}"
  security.protocol: SASL_PLAINTEXT
  sasl.mechanisms: SCRAM-SHA-256
  sasl.username: "${KAFKA_USER}"
  sasl.password: "${KAFKA_PASSWORD}"
"""

Right = tuple[ResourceType, str, AclOperation]
"""(TOPIC, GROUP or TRANSACTIONAL_ID; its name; what may be done)."""


class SecuredCluster:
    """One node. `bootstrap`: PLAINTEXT, whose anonymous user is a super user; `guarded`: SASL_PLAINTEXT, whose users have ACLs."""

    def __init__(self) -> None:
        # The devkit's listeners and one more; ports of our own, because the whole list has to be named.
        self._ports = [Port() for _ in range(3)]
        plain, guarded, controller = (port.number for port in self._ports)
        self.guarded = f"{HOST}:{guarded}"
        self._cluster = Cluster(
            port=plain,
            properties={
                "listeners": f"PLAINTEXT://{HOST}:{plain},GUARDED://{self.guarded},CONTROLLER://{HOST}:{controller}",
                "advertised.listeners": f"PLAINTEXT://{HOST}:{plain},GUARDED://{self.guarded}",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
                "controller.quorum.voters": f"1@{HOST}:{controller}",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.guarded.scram-sha-256.sasl.jaas.config": (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                ),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
            },
        )
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for port in self._ports:
            self._held.callback(port.close)
        # The devkit reserves the port that it is given: on Linux beside us, so that nobody comes between.
        self._ports[0].before_start()
        self._held.enter_context(self._cluster)
        self.admin = admin_client(self.bootstrap)
        return self

    def __exit__(self, *_exc: object) -> None:
        del self.admin
        self._held.close()

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    @property
    def node(self) -> Node:
        return self._cluster.nodes[0]

    def user(self, password: str = PASSWORD) -> str:
        """A new user without rights; its name."""
        name = unique("user")
        self.set_password(name, password)
        return name

    def set_password(self, user: str, password: str) -> None:
        """From now on new connections need it; those that are there stay. Returns when the broker lets in whoever has it."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, _ITERATIONS)
        change = UserScramCredentialUpsertion(user, info, password.encode())
        (future,) = self.admin.alter_user_scram_credentials([change], request_timeout=PATIENCE_S).values()
        future.result(PATIENCE_S)  # the controller's; the broker hears of it a moment later, and so it is with rights
        await_true(lambda: self._lets_in(user, password), f"{user} is let in", PATIENCE_S)

    def _lets_in(self, user: str, password: str) -> bool:
        config: dict[str, Any] = {
            "bootstrap.servers": self.guarded,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": password,
            "error_cb": lambda _error: None,
        }
        client = AdminClient(config, logger=_silent)
        try:
            client.list_topics(timeout=5)
        except KafkaException:
            return False
        return True

    def allow(self, user: str, rights: Iterable[Right]) -> None:
        """Returns when the broker knows of them."""
        wanted = [_binding(user, *right) for right in rights]
        for future in self.admin.create_acls(wanted).values():
            future.result(PATIENCE_S)
        await_true(lambda: set(wanted) <= self._rights_of(user), f"{user} has its rights", PATIENCE_S)

    def _rights_of(self, user: str) -> set[AclBinding]:
        """By the word of the broker's authorizer."""
        every: Any = None  # as its stubs do not say
        asked = AclBindingFilter(
            ResourceType.ANY,
            every,
            ResourcePatternType.ANY,
            f"User:{user}",
            every,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        return set(self.admin.describe_acls(asked).result(PATIENCE_S))

    def forbid(self, user: str, rights: Iterable[Right]) -> None:
        """Take rights away; they must have been there. Returns when the broker knows of it."""
        rights = list(rights)
        for right in rights:
            kind, name, operation = right
            found = AclBindingFilter(
                kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW
            )
            (future,) = self.admin.delete_acls([found]).values()
            assert len(future.result(PATIENCE_S)) == 1, f"{user} had no right {right}"
        gone = {_binding(user, *right) for right in rights}
        await_true(lambda: not gone & self._rights_of(user), f"{user} has lost its rights", PATIENCE_S)


def _binding(user: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def needed(scene: Scene, instance: str = "one") -> dict[str, Right]:
    """The rights that docs/running.md names for a worker whose topics exist, by short names of ours."""
    topic, write = ResourceType.TOPIC, AclOperation.WRITE
    return {
        "read source": (topic, scene.source, AclOperation.READ),
        "read group": (ResourceType.GROUP, scene.name, AclOperation.READ),
        "write sink": (topic, scene.sink, write),
        "write dead letters": (topic, scene.dead_letters, write),
        "write receipts": (topic, scene.receipts, write),
        "write transactional id": (ResourceType.TRANSACTIONAL_ID, f"{scene.name}/{instance}", write),
        "describe transactional id": (
            ResourceType.TRANSACTIONAL_ID,
            f"{scene.name}/{instance}",
            AclOperation.DESCRIBE,
        ),
    }


def guard(scene: Scene) -> None:
    """Let the pipeline file take its credentials from the environment."""
    text = scene.path.read_text()
    plain = 'kafka: {bootstrap.servers: "${RECKON_BOOTSTRAP_SERVERS}"}\n'
    assert plain in text
    scene.path.write_text(text.replace(plain, KAFKA_SECTION))


def credentials(cluster: SecuredCluster, user: str, password: str = PASSWORD) -> dict[str, str]:
    """What a worker's environment needs."""
    return {"RECKON_BOOTSTRAP_SERVERS": cluster.guarded, "KAFKA_USER": user, "KAFKA_PASSWORD": password}
