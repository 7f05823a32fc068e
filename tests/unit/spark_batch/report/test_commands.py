"""The commands that the page tells."""

from __future__ import annotations

import shlex

import pytest

from spark_batch.model import Finding, Kind
from spark_batch.report.commands import look
from tests.audit.samples import complete

TAIL = (
    "--isolation-level read_committed --timeout-ms 10000 --property print.offset=true --property print.timestamp=true "
    "--property print.headers=true --property print.key=true"
)
AT = "--bootstrap-server b:9092"


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (
            Finding(Kind.MISSING, "in", 3, 17),
            [f"kafka-console-consumer.sh {AT} --topic in --partition 3 --offset 17 --max-messages 1 {TAIL}"],
        ),
        (
            Finding(Kind.RECEIPT_MISSING, "in", 3, 17, 20),
            [f"kafka-console-consumer.sh {AT} --topic in --partition 3 --offset 17 --max-messages 3 {TAIL}"],
        ),
        (
            Finding(Kind.RECEIPT_OVERLAP, "in", 3, 17, 2000),
            [f"kafka-console-consumer.sh {AT} --topic in --partition 3 --offset 17 --max-messages 10 {TAIL}"],
        ),
        (
            Finding(Kind.DUPLICATE, "out", 1, 9, source=("in", 0, 4)),
            [
                f"kafka-console-consumer.sh {AT} --topic out --partition 1 --offset 9 --max-messages 1 {TAIL}",
                f"kafka-console-consumer.sh {AT} --topic in --partition 0 --offset 4 --max-messages 1 {TAIL}",
            ],
        ),
        (
            Finding(Kind.HANGING_TRANSACTION, "out", 1, 9),
            [f"kafka-transactions.sh {AT} describe-producers --topic out --partition 1"],
        ),
        (Finding(Kind.OFFSETS_UNKNOWN, "in", 1, None), [f"kafka-consumer-groups.sh {AT} --describe --group orders"]),
        (
            Finding(Kind.COMPACTED, "in", 1, None),
            [f"kafka-configs.sh {AT} --describe --all --entity-type topics --entity-name in"],
        ),
        (Finding(Kind.TOPIC_RECREATED, "in", 1, None), [f"kafka-topics.sh {AT} --describe --topic in"]),
        (
            Finding(Kind.SOURCE_EXPIRED, "in", 1, 0, 40),
            [f"kafka-get-offsets.sh {AT} --topic-partitions in:1 --time earliest"],
        ),
        (Finding(Kind.LEDGER, "out", 1, None), [f"kafka-get-offsets.sh {AT} --topic-partitions out:1 --time latest"]),
    ],
)
def test_each_finding_has_its_command(finding: Finding, expected: list[str]) -> None:
    """The finding's place first, the source record that it names second; of a range the first records."""
    assert expected == list(look(finding, complete(), "b:9092"))


def test_nothing_in_a_name_reaches_the_shell() -> None:
    """Kafka forbids such names; a report must not rely on it."""
    (command,) = look(Finding(Kind.MISSING, "a; rm -rf $HOME", 0, 1), complete(), "b:1 | c")
    words = shlex.split(command)
    assert [words[2], words[4]] == ["b:1 | c", "a; rm -rf $HOME"]
