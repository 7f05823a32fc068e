"""One Spark session for all tests of the audit: it costs five seconds, its first query eight. The broker: tests/conftest.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_batch.session import spark_session

_HERE = Path(__file__).parent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


_LONG = {
    "test_multiset.py": None,
    "test_retention.py": {
        "test_a_pipeline_that_has_not_begun_is_no_alarm_and_receipts_without_topic_ids_are_told",
    },
    "test_rules.py": None,
    "test_shared_sink.py": None,
    "test_specificity.py": {"test_a_running_pipeline_is_complete_at_every_look"},
    "test_sensitivity.py": {
        "test_every_kind_mixed_in_one_world_is_found_at_depth_content",
        "test_a_double_and_a_loss_in_one_receipt_range_do_not_cancel",
    },
}
"""Of these files `make test` takes only the tests that are named; `make test-long` takes the others."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--dist loadgroup` all of these tests go to one xdist worker, so that one session is made and not one per worker."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.xdist_group("spark"))
            kept = _LONG.get(item.path.name, {item.name}) or set()
            if item.name.partition("[")[0] not in kept and item.path.name in _LONG:
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session that reads Kafka, as the audit makes it: two cores, a small heap."""
    conf = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "1500m"}
    session = spark_session("local[2]", conf)
    yield session
    session.stop()
