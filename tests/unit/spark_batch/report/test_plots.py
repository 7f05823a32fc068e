"""The latency plot."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from spark_batch.model import LatencyRow
from spark_batch.report.plots import latency_svg, milliseconds
from tests.audit.samples import T0, latencies


def test_the_same_figures_give_the_same_bytes() -> None:
    """No date, no random id; two plots of one page share no id that is referred to."""
    rows = latencies(26)
    first = latency_svg(rows, 9, 3, "wide")

    assert first == latency_svg(rows, 9, 3, "wide")
    assert set(references(first)).isdisjoint(references(latency_svg(rows, 9, 3, "narrow")))


def references(svg: str) -> list[str]:
    found = [
        value.removeprefix("url(").rstrip(")")
        for element in ET.fromstring(svg).iter()
        for name, value in element.attrib.items()
        if name.endswith("href") or value.startswith("url(#")
    ]
    assert found
    return found


def test_it_stands_in_a_page_by_itself() -> None:
    """Well-formed, as wide as its room, in the page's ink, nothing fetched, text as text."""
    svg = latency_svg(latencies(26), 9, 3, "wide")

    root = ET.fromstring(svg)
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("100%", None, "0 0 648 216")
    assert "currentColor" in svg
    assert "#010203" not in svg
    assert all(reference.startswith("#") for reference in references(svg))
    texts = ["".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("p")] == ["p50", "p95", "p99"]


@pytest.mark.parametrize(
    "rows",
    [
        latencies(1),
        (LatencyRow(T0, 1, 0, 0, 0),),
        (LatencyRow(T0, 1, -5, 0, 3), LatencyRow(T0 + 3_600_000, 1, -900, 1e9, 2e9)),
        latencies(744),
    ],
)
def test_odd_figures_are_drawn(rows: tuple[LatencyRow, ...]) -> None:
    """One hour, only zeros, negative latencies, a month."""
    assert latency_svg(rows, 9, 3, "wide").startswith("<svg")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 ms"),
        (12.34, "12.3 ms"),
        (-250, "-250 ms"),
        (3400, "3.4 s"),
        (90_000, "1.5 min"),
        (7.2e6, "2 h"),
        (1.8e8, "2.08 d"),
    ],
)
def test_milliseconds_for_people(value: float, expected: str) -> None:
    """The largest unit that is at least one; three digits."""
    assert expected == milliseconds(value)
