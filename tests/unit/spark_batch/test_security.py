"""librdkafka's settings as options of the Java client: nothing gets lost, nothing secret is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_batch.errors import BadArgumentsError
from spark_batch.security import client_settings, java_options
from transforms.spec import Pipeline, Sink, Source

if TYPE_CHECKING:
    from pathlib import Path

CHAIN = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"
SCRAM = {"security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "ann"}


def options(**more: str) -> dict[str, str]:
    return java_options({"bootstrap.servers": "b:9092", **{k.replace("_", "."): v for k, v in more.items()}})


def test_settings_come_from_the_file_and_the_environment() -> None:
    """The consumer's view: `kafka`, then `consumer`, then RECKON_KAFKA_*, then RECKON_CONSUMER_*; aliases as librdkafka has them."""
    spec = Pipeline(
        name="shop",
        source=Source(topics=["in"]),
        sink=Sink(topic="out"),
        kafka={"metadata.broker.list": "a:1", "client.id": "file", "sasl.mechanism": "PLAIN", "sasl.username": "file"},
        consumer={"client.id": "consumer", "enable.ssl.certificate.verification": True},
        producer={"client.id": "producer"},
    )
    env = {
        "RECKON_KAFKA_SASL_USERNAME": "env",
        "RECKON_CONSUMER_SASL_PASSWORD": "pass",
        "RECKON_PRODUCER_LINGER_MS": "1",
    }
    assert client_settings(spec, env) == {
        "bootstrap.servers": "a:1",
        "client.id": "consumer",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "env",
        "sasl.password": "pass",
        "enable.ssl.certificate.verification": "true",
    }


def test_what_tunes_the_worker_is_left_out() -> None:
    expected = {"bootstrap.servers": "b:9092", "client.id": "c", "client.rack": "r"}
    assert options(client_id="c", client_rack="r", fetch_queue_backoff_ms="5", group_protocol="classic") == expected


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("a, b:1", "a:9092,b:1"),
        ("[::1]", "[::1]:9092"),
        ("[::1]:5,SSL://a", "[::1]:5,SSL://a:9092"),
    ],
)
def test_a_server_without_a_port_has_librdkafkas_default(servers: str, expected: str) -> None:
    assert java_options({"bootstrap.servers": servers})["bootstrap.servers"] == expected


def test_scram() -> None:
    """Quotes and backslashes of a password survive Java's reading of the JAAS line."""
    password = 'a "b\\c'
    assert java_options({"bootstrap.servers": "b:1", **SCRAM, "sasl.password": password}) == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="a \\"b\\\\c";',
    }


def test_kerberos() -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.kerberos.service.name": "kafka"}
    given |= {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "p@R", "sasl.kerberos.kinit.cmd": "kinit"}
    assert java_options({"bootstrap.servers": "b:1", **given}) == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "sasl.mechanism": "GSSAPI",
        "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
        'useKeyTab="true" storeKey="true" keyTab="/k" principal="p@R";',
    }


def test_certificates_travel_as_text(tmp_path: Path) -> None:
    """Executors on other machines do not have the files."""
    for name, text in (("ca", CHAIN), ("chain", CHAIN), ("key", KEY)):
        (tmp_path / name).write_text(text)
    given = {
        "security.protocol": "ssl",
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.certificate.location": str(tmp_path / "chain"),
        "ssl.key.location": str(tmp_path / "key"),
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert java_options({"bootstrap.servers": "b:1", **given}) == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CHAIN,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": CHAIN,
        "ssl.keystore.key": KEY,
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert options(ssl_ca_pem=CHAIN)["ssl.truststore.certificates"] == CHAIN


def test_a_pkcs12_store_stays_a_file() -> None:
    assert options(ssl_keystore_location="/s.p12", ssl_keystore_password="w") == {
        "bootstrap.servers": "b:9092",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "/s.p12",
        "ssl.keystore.password": "w",
        "ssl.key.password": "w",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl.crl.location": "x"}, "ssl.crl.location: the audit's Java client has nothing equal"),
        ({"sasl.oauthbearer.method": "oidc"}, "sasl.oauthbearer.method: the audit's Java client has nothing equal"),
        (
            {"security.protocol": "sasl_ssl", "sasl.mechanisms": "OAUTHBEARER"},
            "sasl.mechanisms=OAUTHBEARER: expected one of GSSAPI, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (SCRAM, "sasl.password is missing: the SASL mechanism needs it"),
        ({"ssl.key.pem": KEY}, "ssl.certificate.location and ssl.key.location: one is there without the other"),
        (
            {"ssl.key.pem": KEY.replace("PRIVATE", "RSA PRIVATE"), "ssl.certificate.pem": CHAIN},
            "ssl.key: Java reads PKCS#8 keys only: convert it by `openssl pkcs8 -topk8`",
        ),
        (
            {"enable.ssl.certificate.verification": "false"},
            "enable.ssl.certificate.verification=false: Java always verifies; give ssl.ca.location",
        ),
        (
            {"ssl.ca.location": "/not/there"},
            "ssl.ca.location=/not/there: [Errno 2] No such file or directory: '/not/there', a PEM file was expected",
        ),
    ],
)
def test_what_java_cannot_do_is_an_error(given: dict[str, str], message: str) -> None:
    """Left out, it would make the audit less safe than the worker."""
    with pytest.raises(BadArgumentsError) as caught:
        java_options({"bootstrap.servers": "b:1", **given})
    assert str(caught.value) == f"client setting {message}"


def test_every_problem_is_told_and_no_secret() -> None:
    given = {
        **SCRAM,
        "sasl.mechanisms": "LDAP",
        "sasl.password": "geheim",
        "ssl.engine.id": "e",
        "ssl.key.pem": "geheim",
    }
    with pytest.raises(BadArgumentsError) as caught:
        java_options({"bootstrap.servers": "b:1", **given})
    assert [line.split()[2].split("=")[0] for line in str(caught.value).splitlines()] == [
        "ssl.engine.id:",
        "sasl.mechanisms",
        "ssl.certificate.location",
    ]
    assert "geheim" not in str(caught.value)
