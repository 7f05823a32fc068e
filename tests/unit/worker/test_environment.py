from __future__ import annotations

import os

import pytest

from worker.environment import client_settings, mistyped

SETTINGS = ("instance_id", "grace_period_s", "transaction_interval_ms")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("RECKON_")]:
        monkeypatch.delenv(name)


def test_client_settings_have_dots_but_for_the_one_that_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECKON_KAFKA_SASL_USERNAME", "ann")
    monkeypatch.setenv("RECKON_KAFKA_LOG_LEVEL", "7")
    monkeypatch.setenv("RECKON_CONSUMER_FETCH_MIN_BYTES", "1")

    assert client_settings("KAFKA_") == {"sasl.username": "ann", "log_level": "7"}
    assert client_settings("CONSUMER_") == {"fetch.min.bytes": "1"}
    assert client_settings("PRODUCER_") == {}


def test_mistyped_variables_and_what_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of clients, nor those that a pipeline file may refer to, nor what Kubernetes sets for a service."""
    known = (
        "RECKON_INSTANCE_ID",
        "RECKON_KAFKA_GRACE_PERIOD",
        "RECKON_BOOTSTRAP_SERVERS",
        "RECKON_SERVICE_HOST",
        "RECKON_PORT",
    )
    for name in (*known, "RECKON_INSTANCEID", "RECKON_GRACE_PERIOD", "RECKON_TRANSACTION_INTERVAL"):
        monkeypatch.setenv(name, "1")

    assert mistyped(SETTINGS) == {
        "RECKON_INSTANCEID": "RECKON_INSTANCE_ID",
        "RECKON_GRACE_PERIOD": "RECKON_GRACE_PERIOD_S",
        "RECKON_TRANSACTION_INTERVAL": "RECKON_TRANSACTION_INTERVAL_MS",
    }
