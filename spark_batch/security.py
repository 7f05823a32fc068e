"""Client settings of the pipeline file and the environment (librdkafka's names), as options of the Java client that Spark has.

Connection and security pass; what tunes the worker's consumer or producer does not concern an audit. A security setting that has no
equal in the Java client is an error: left out silently, it would make the audit less safe than the worker, or fail later and darkly.

Names and values: librdkafka's CONFIGURATION.md; Kafka's documentation of `ssl.*` (PEM: KIP-651) and `sasl.jaas.config` (KIP-85).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from spark_batch.errors import BadArgumentsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transforms.spec import Pipeline

_SECURITY = ("security.", "sasl.", "ssl.", "ssl_", "enable.ssl.", "enable.sasl.", "https.")
_ALIASES = {"metadata.broker.list": "bootstrap.servers", "sasl.mechanism": "sasl.mechanisms"}
_SAME = ("client.id", "client.rack", "client.dns.lookup", "sasl.kerberos.service.name")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
_WITHOUT_MEANING = frozenset({"sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin"})
"""Java logs in with the keytab by itself."""
_KNOWN = frozenset(
    {
        "security.protocol",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "sasl.kerberos.service.name",
        "sasl.kerberos.principal",
        "sasl.kerberos.keytab",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.key.location",
        "ssl.key.pem",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
        *_WITHOUT_MEANING,
    }
)


def client_settings(spec: Pipeline, env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the worker's consumer connects with, by librdkafka's names: the pipeline file, the environment over it (worker/settings.py)."""

    def from_env(prefix: str) -> dict[str, str]:
        return {k[len(prefix) :].lower().replace("_", "."): v for k, v in env.items() if k.startswith(prefix)}

    layers = (spec.kafka, spec.consumer, from_env("RECKON_KAFKA_"), from_env("RECKON_CONSUMER_"))
    settings = {"bootstrap.servers": "127.0.0.1:9092"}
    for layer in layers:
        for name, value in layer.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            settings[_ALIASES.get(name, name)] = text
    return settings


def java_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Options of the Java clients for these settings of librdkafka's; secrets among the values.

    Certificates and keys are given as text, not as paths: executors on other machines do not have the files. Raises BadArgumentsError with
    every problem in it; no secret is in its text.
    """
    unknown = sorted(name for name in settings if name.startswith(_SECURITY) and name not in _KNOWN)
    problems = [f"{name}: the audit's Java client has nothing equal" for name in unknown]
    options = {"bootstrap.servers": ",".join(map(_with_port, settings["bootstrap.servers"].split(",")))}
    options |= {name: settings[name] for name in _SAME if name in settings}
    if "security.protocol" in settings:
        options["security.protocol"] = settings["security.protocol"].upper()
    for part in (_sasl, _truststore, _keystore, _verification):
        try:
            options |= part(settings)
        except BadArgumentsError as problem:
            problems.append(str(problem))
    if problems:
        raise BadArgumentsError("\n".join(f"client setting {problem}" for problem in problems))
    return options


def _with_port(server: str) -> str:
    server = server.strip()
    host = server.rsplit("://", 1)[-1]
    return server if ":" in host.rsplit("]", 1)[-1] else f"{server}:9092"


def _sasl(settings: Mapping[str, str]) -> dict[str, str]:
    if not settings.get("security.protocol", "").lower().startswith("sasl_"):
        return {}
    mechanism = settings.get("sasl.mechanisms", "GSSAPI").upper()
    if mechanism == "GSSAPI":
        login = {"useKeyTab": "true", "storeKey": "true"}
        login |= {"keyTab": _needed(settings, "sasl.kerberos.keytab")}
        login |= {"principal": _needed(settings, "sasl.kerberos.principal")}
        module = _KERBEROS
    elif mechanism in _LOGIN_MODULES:
        login = {"username": _needed(settings, "sasl.username"), "password": _needed(settings, "sasl.password")}
        module = _LOGIN_MODULES[mechanism]
    else:
        raise BadArgumentsError(f"sasl.mechanisms={mechanism}: expected one of GSSAPI, {', '.join(_LOGIN_MODULES)}")
    jaas = " ".join([module, "required", *(f"{name}={_quoted(value)}" for name, value in login.items())])
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{jaas};"}


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _truststore(settings: Mapping[str, str]) -> dict[str, str]:
    pem = _pem(settings, "ssl.ca")
    return {} if pem is None else {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem}


def _keystore(settings: Mapping[str, str]) -> dict[str, str]:
    password = settings.get("ssl.key.password")
    if "ssl.keystore.location" in settings:
        store_password = settings.get("ssl.keystore.password", "")
        options = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": settings["ssl.keystore.location"]}
        return {**options, "ssl.keystore.password": store_password, "ssl.key.password": password or store_password}
    chain, key = _pem(settings, "ssl.certificate"), _pem(settings, "ssl.key")
    if chain is None and key is None:
        return {}
    if chain is None or key is None:
        raise BadArgumentsError("ssl.certificate.location and ssl.key.location: one is there without the other")
    if "BEGIN PRIVATE KEY" not in key and "BEGIN ENCRYPTED PRIVATE KEY" not in key:
        raise BadArgumentsError("ssl.key: Java reads PKCS#8 keys only: convert it by `openssl pkcs8 -topk8`")
    options = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    return options if password is None else {**options, "ssl.key.password": password}


def _verification(settings: Mapping[str, str]) -> dict[str, str]:
    if settings.get("enable.ssl.certificate.verification", "true") != "true":
        raise BadArgumentsError("enable.ssl.certificate.verification=false: Java always verifies; give ssl.ca.location")
    algorithm = settings.get("ssl.endpoint.identification.algorithm")
    if algorithm is None:
        return {}
    return {"ssl.endpoint.identification.algorithm": "" if algorithm == "none" else algorithm}


def _pem(settings: Mapping[str, str], name: str) -> str | None:
    """The PEM text of `<name>.pem` or of the file `<name>.location`; None without either."""
    if f"{name}.pem" in settings:
        return settings[f"{name}.pem"]
    path = settings.get(f"{name}.location")
    if path is None or path == "probe":  # librdkafka's word for the system's own certificates, which Java has too
        return None
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise BadArgumentsError(f"{name}.location={path}: {error}, a PEM file was expected") from error


def _needed(settings: Mapping[str, str], name: str) -> str:
    if name not in settings:
        raise BadArgumentsError(f"{name} is missing: the SASL mechanism needs it")
    return settings[name]
