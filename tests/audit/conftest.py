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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--dist loadgroup` all of these tests go to one xdist worker, so that one session is made and not one per worker."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session that reads Kafka, as the audit makes it: two cores, a small heap."""
    conf = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "1500m"}
    session = spark_session("local[2]", conf)
    yield session
    session.stop()
