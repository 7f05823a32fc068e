"""The demo in small: it holds, and its verdict fails when something is wrong."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from rich.console import Console

from devkit import demo, oracle
from devkit.reader import read

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = 20_000

pytestmark = pytest.mark.timeout(600)


def test_the_demo_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Plain lines where there is no terminal; the numbers are those of the generator."""
    monkeypatch.setattr(demo, "FEED_S", 4.0)
    monkeypatch.setattr(demo, "PAGES", tmp_path)
    out = io.StringIO()
    code = demo.run_demo(ORDERS, Console(file=out, width=200))
    text = out.getvalue()
    assert code == 0, text
    assert "SIGKILL to demo-a inside a transaction" in text
    assert f"{ORDERS:,}   orders produced" in text
    assert "Exactly once" in text
    assert "BROKEN" not in text
    assert text.count("held  ") == 8
    assert "The audit (exit code 0): complete: " in text
    assert "DOCTYPE html" in (demo.PAGES / "audit.html").read_text()[:100]
    assert "\x1b" not in text


def double_an_output(bootstrap: str) -> None:
    record = read(bootstrap, [oracle.CLEAN])[0]
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(
        record.topic,
        record.value,
        record.key,
        record.partition,
        timestamp=record.timestamp_ms,
        headers=list(record.headers),
    )
    assert producer.flush(30) == 0


@pytest.mark.long
def test_the_verdict_names_a_doubled_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One doubled record among twenty thousand: exit code 1, and every other check still holds but for the receipts' counts."""
    monkeypatch.setattr(demo, "FEED_S", 4.0)
    monkeypatch.setattr(demo, "PAGES", tmp_path)
    out = io.StringIO()
    code = demo.run_demo(ORDERS, Console(file=out, width=200), before_verification=double_an_output)
    text = out.getvalue()
    assert code == 1, text
    broken = [line.split("  ", 1)[1].strip() for line in text.splitlines() if line.startswith("BROKEN")]
    assert broken == [
        "every valid order exactly once, in its topic",
        "receipts tile the source, and their counts are true",
    ]
    assert "duplicated: 1, e.g. " in text
    assert "The audit (exit code 1): findings: " in text
    assert "; findings: 1 duplicate" in text
    assert "Not exactly once" in text


def test_a_worker_that_cannot_start_is_shown_with_the_tail_of_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The source topic's name is not the one that the demo creates."""
    monkeypatch.setattr(oracle, "SOURCE", "shop.other")
    out = io.StringIO()
    code = demo.run_demo(ORDERS, Console(file=out, width=200))
    text = out.getvalue()
    assert code == 1
    assert "--- the last lines of worker demo-a:" in text
    assert "source topic shop.orders does not exist" in text
    assert "the demo could not be finished: worker demo-" in text
