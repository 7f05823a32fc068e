"""The command that shows what a finding is about, with Kafka's own tools (4.x; the console consumer's options are as old as 2.7)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from spark_batch.model import Kind

if TYPE_CHECKING:
    from spark_batch.model import Finding, Judgement

_LOOK_AT = 10
"""Records that a command shows of a range: a range may be millions long."""
_TRANSACTIONS = "kafka-transactions.sh {server} describe-producers --topic {topic} --partition {partition}"
_BY_KIND = {
    Kind.HANGING_TRANSACTION: _TRANSACTIONS,
    Kind.OPEN_TRANSACTION: _TRANSACTIONS,
    Kind.OFFSETS_UNKNOWN: "kafka-consumer-groups.sh {server} --describe --group {group}",
    Kind.COMPACTED: "kafka-configs.sh {server} --describe --all --entity-type topics --entity-name {topic}",
    Kind.TOPIC_RECREATED: "kafka-topics.sh {server} --describe --topic {topic}",
    Kind.SOURCE_EXPIRED: "kafka-get-offsets.sh {server} --topic-partitions {topic}:{partition} --time earliest",
}
_PARTITION = "kafka-get-offsets.sh {server} --topic-partitions {topic}:{partition} --time latest"


def look(finding: Finding, judgement: Judgement, bootstrap: str) -> tuple[str, ...]:
    """Commands to paste into a shell: of the finding itself first, then of the source record that an output names."""
    server = f"--bootstrap-server {shlex.quote(bootstrap)}"
    form = _BY_KIND.get(finding.kind, _PARTITION if finding.offset is None else None)
    if form is not None:
        group, topic = shlex.quote(judgement.cut.group), shlex.quote(finding.topic)
        first = form.format(server=server, topic=topic, partition=finding.partition, group=group)
    else:
        assert finding.offset is not None
        first = _consume(server, finding.topic, finding.partition, finding.offset, finding.end)
    if finding.source is None:
        return (first,)
    return (first, _consume(server, *finding.source, None))


def _consume(server: str, topic: str, partition: int, offset: int, end: int | None) -> str:
    count = 1 if end is None else max(1, min(end - offset, _LOOK_AT))
    # --timeout-ms: where the offset holds no record and none follows, the tool would wait for ever.
    return (
        f"kafka-console-consumer.sh {server} --topic {shlex.quote(topic)} --partition {partition} --offset {offset} "
        f"--max-messages {count} --isolation-level read_committed --timeout-ms 10000 --property print.offset=true "
        "--property print.timestamp=true --property print.headers=true --property print.key=true"
    )
