"""Client settings that `reckon run` would refuse: what lint says of them, and where. No broker is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from worker.commands.client_settings import client_settings

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "name: p\nsource: {topics: [in]}\nsink: {topic: out}\n"
PINNED = "would break exactly-once: it is pinned to"

CASES: dict[str, tuple[str, list[str]]] = {
    "nothing wrong": (
        (
            "kafka: {bootstrap.servers: h:1, security.protocol: sasl_ssl, sasl.mechanisms: PLAIN, sasl.password: x}\n"
            "consumer: {enable.auto.commit: false, isolation.level: read_committed, fetch.min.bytes: 2}\n"
            "producer: {acks: all, request.required.acks: -1, linger.ms: 50, enable.idempotence: true}\n"
        ),
        [],
    ),
    "pinned": (
        (
            "consumer: {isolation.level: read_uncommitted, auto.commit.enable: true}\n"
            "producer: {transactional.id: q, acks: 0}\nkafka:\n  group.id: g\n  enable.partition.eof: false\n"
        ),
        [
            f"4:12: this value of isolation.level {PINNED} read_committed; leave it out",
            f"4:47: this value of enable.auto.commit {PINNED} false; leave it out",
            "5:12: transactional.id cannot be set: it is made of the pipeline's name and RECKON_INSTANCE_ID",
            f"5:33: this value of acks {PINNED} all; leave it out",
            "7:3: group.id cannot be set: set group_id in the pipeline file or RECKON_GROUP_ID",
            f"8:3: this value of enable.partition.eof {PINNED} true; leave it out",
        ],
    ),
    "names": (
        "kafka: {bootstrap.server: h, sasl_username: u, session.timeout: 5, quite.another: x}\nproducer: {comperssion.type: lz4}\n",
        [
            "4:9: librdkafka has no setting 'bootstrap.server', did you mean 'bootstrap.servers'?",
            "4:30: librdkafka has no setting 'sasl_username', did you mean 'sasl.username'?",
            "4:48: librdkafka has no setting 'session.timeout', did you mean 'session.timeout.ms'?",
            "4:68: librdkafka has no setting 'quite.another', expected one of librdkafka's names",
            "5:12: librdkafka has no setting 'comperssion.type', did you mean 'compression.type'?",
        ],
    ),
    "values": (
        "consumer: {fetch.min.bytes: many, error_cb: f}\nproducer: {compression.type: zip}\n",
        [
            '4:29: librdkafka refuses this value: Invalid value for configuration property "fetch.min.bytes"',
            "4:45: librdkafka refuses this value: a function of Python's is expected, which no file can hold",
            '5:30: librdkafka refuses this value: Invalid value "zip" for configuration property "compression.codec"',
        ],
    ),
    "values from elsewhere are not shown": (
        "kafka: {security.protocol: '${PROTOCOL:-hunter2}', sasl.pasword: '${PASSWORD}', sasl.password: '${PASSWORD}'}\n",
        [
            "4:28: librdkafka refuses this value",
            "4:52: librdkafka has no setting 'sasl.pasword', did you mean 'sasl.password'?",
        ],
    ),
    "in a file with other mistakes": (
        "steps: [{filtr: a}]\nproducer: {acks: 1}\n",
        [f"5:12: this value of acks {PINNED} all; leave it out"],
    ),
    "what must hold together": (
        "transaction: {interval_ms: 40000}\nconsumer: {partition.assignment.strategy: range}\nproducer: {transaction.timeout.ms: 20000}\n",
        [
            "4:28: transaction.interval_ms is 40000 and producer transaction.timeout.ms is 20000: the first must be lower",
            "5:43: consumer: partition.assignment.strategy=range: the worker assigns incrementally, cooperative-sticky was expected",
            "6:36: transaction.interval_ms is 40000 and producer transaction.timeout.ms is 20000: the first must be lower",
        ],
    ),
    "libraries are not loaded": ("kafka: {plugin.library.paths: /nowhere.so}\n", []),
    "what loading says": ("kafka: [1]\nconsumer: {client.id: [x]}\n", []),
}


@pytest.mark.parametrize("name", CASES)
def test_findings(name: str, tmp_path: Path) -> None:
    """Each at its place, as an error."""
    text, expected = CASES[name]
    file = tmp_path / "p.yaml"
    file.write_text(HEAD + text)
    found = [str(finding).removeprefix(f"{file}:") for finding in client_settings(file)]
    assert [line.replace(": ", ": error: ", 1) + " [client-setting]" for line in expected] == sorted(found, key=_place)


def _place(line: str) -> tuple[int, int]:
    row, column, _ = line.split(":", 2)
    return int(row), int(column)
