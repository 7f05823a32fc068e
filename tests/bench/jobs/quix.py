"""The job in Quix Streams: one filter and one function. Runs in a virtual environment of its own."""

import os
import tempfile
from typing import Any

from quixstreams import Application  # type: ignore[import-not-found]  # pins confluent-kafka < 2.13: not in ours


def transform(fields: dict[str, Any]) -> dict[str, Any]:
    fields["amount_cents"] = int(fields["amount"] * 100)
    fields["customer"] = fields.pop("user")
    return fields


def main() -> None:
    app = Application(
        broker_address=os.environ["BOOTSTRAP"],
        consumer_group=os.environ["GROUP"],
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=int(os.environ["COMMIT_MS"]) / 1000,
        consumer_poll_timeout=0.1,  # the default of 1 s delays the last commit
        producer_extra_config={"compression.type": "lz4", "partitioner": "murmur2_random"},
        auto_create_topics=False,
        state_dir=tempfile.mkdtemp(prefix="quix-", dir=os.environ["STATE_DIR"]),
        loglevel="WARNING",
    )
    source = app.topic(os.environ["SRC_TOPIC"], key_deserializer="bytes", value_deserializer="json")
    sink = app.topic(os.environ["DST_TOPIC"], key_serializer="bytes", value_serializer="json")
    frame = app.dataframe(source)
    frame.filter(lambda fields: fields["status"] != "bad").apply(transform).to_topic(sink)
    app.run()


main()
