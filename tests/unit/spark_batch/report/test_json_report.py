"""audit.json and its schema."""

from __future__ import annotations

import copy
from importlib.resources import files
from typing import Any

import jsonschema_rs
import orjson
import pytest

from spark_batch.model import Kind, Verdict
from spark_batch.report.json_report import encode
from tests.audit.samples import SAMPLES, of_all_kinds

SCHEMA = orjson.loads(files("spark_batch.report").joinpath("audit.schema.json").read_bytes())
VALID = jsonschema_rs.Draft202012Validator(SCHEMA)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_is_of_the_schema(name: str) -> None:
    """And the schema is one itself."""
    jsonschema_rs.meta.validate(SCHEMA)
    VALID.validate(orjson.loads(encode(SAMPLES[name]())))


BROKEN: list[tuple[str, Any]] = [
    ("schema", 2),
    ("exit_code", 3),
    ("verdict", "fine"),
    ("totals", {"lost": 1}),
    ("totals", {"missing": -1}),
    ("finding_counts", {"exactly once": 1}),
    ("findings", [{"kind": "missing"}]),
    ("took_s", None),
    ("extra", 1),
]


@pytest.mark.parametrize(("name", "value"), BROKEN)
def test_the_schema_refuses_what_is_not_of_it(name: str, value: object) -> None:
    """The test above can fail."""
    document = orjson.loads(encode(of_all_kinds()))
    broken = copy.deepcopy(document)
    broken[name] = value
    assert VALID.is_valid(document)
    assert not VALID.is_valid(broken)


def test_the_schema_knows_every_verdict_and_kind() -> None:
    """A new one cannot be forgotten."""
    assert [verdict.value for verdict in Verdict] == SCHEMA["$defs"]["verdict"]["enum"]
    assert [kind.value for kind in Kind] == SCHEMA["$defs"]["kind"]["enum"]


def test_figures_are_the_judgement_s() -> None:
    """A finding with its source, a transaction that hangs, the verdict."""
    judgement = of_all_kinds()
    document = orjson.loads(encode(judgement))

    assert (document["exit_code"], document["verdict"]) == (1, "findings")
    duplicate = next(finding for finding in document["findings"] if finding["kind"] == "duplicate")
    expected = {
        "kind": "duplicate",
        "topic": "shop.priced",
        "partition": 0,
        "offset": 1000,
        "end": None,
        "source": {"topic": "shop.orders", "partition": 0, "offset": 1031},
        "detail": "Second output with index 0 of this source record; the first lies at shop.priced/1 offset 18,004.",
    }
    assert expected == duplicate
    assert [transaction["hanging"] for transaction in document["cut"]["open_transactions"]] == [True, False]
    assert {v.value: n for v, n in judgement.totals.items()} == document["totals"]
