"""A broker with two doors: one for the tests' own tools, who may do everything, and one with passwords (SCRAM) and ACLs for workers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Self

from confluent_kafka.admin import (  # type: ignore[attr-defined] # its stubs export less than it does
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
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

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devkit.node import Node
    from tests.support.pipelines import Scene

PASSWORD = "open-sesame"
_ANSWER_S = 20.0
_ITERATIONS = 4096  # the fewest that Kafka takes

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
        self._ports[0].close()  # the devkit reserves the port that it is given by itself
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
        """From now on new connections need it; those that are there stay."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, _ITERATIONS)
        change = UserScramCredentialUpsertion(user, info, password.encode())
        (future,) = self.admin.alter_user_scram_credentials([change], request_timeout=_ANSWER_S).values()
        future.result(_ANSWER_S)

    def allow(self, user: str, rights: Iterable[Right]) -> None:
        for future in self.admin.create_acls([_binding(user, *right) for right in rights]).values():
            future.result(_ANSWER_S)

    def forbid(self, user: str, rights: Iterable[Right]) -> None:
        """Take rights away; they must have been there."""
        for right in rights:
            kind, name, operation = right
            found = AclBindingFilter(
                kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW
            )
            (future,) = self.admin.delete_acls([found]).values()
            assert len(future.result(_ANSWER_S)) == 1, f"{user} had no right {right}"


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
