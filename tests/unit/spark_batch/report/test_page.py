"""The page: complete, self-contained, bounded, and nothing that a topic or a record says becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from spark_batch.model import Finding, Judgement, Kind
from spark_batch.report.page import FINDINGS_PER_KIND, difference, finding_groups, ledger_topics, render
from spark_batch.report.words import headline
from tests.audit.samples import SAMPLES, complete, huge, of_all_kinds

VOID = {"meta", "br", "hr", "img", "input", "link"}


class _Page(HTMLParser):
    """Tags that are open, addresses that would be fetched, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.ids: set[str] = set()
        self.used: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in {"src", "href", "xlink:href", "action", "srcset"} and not (value or "").startswith("#"):
                self.fetched.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.add(value or "")
            self.used |= set(re.findall(r"url\(#([^)]*)\)", value or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop(), f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module", params=sorted(SAMPLES))
def sample(request: pytest.FixtureRequest) -> tuple[Judgement, str]:
    judgement = SAMPLES[request.param]()
    return judgement, render(judgement, "broker:9092")


def test_a_page_needs_no_network_and_is_well_formed(sample: tuple[Judgement, str]) -> None:
    """Every element is closed, every pattern that is used is there, and no address leads out; no script at all."""
    _, text = sample
    page = _Page(text)

    assert page.open == []
    assert page.fetched == []
    assert "script" not in page.tags
    assert page.used <= page.ids
    assert re.findall(r"@import|url\((?!#)", text) == []
    assert "default-src 'none'" in text


def test_the_verdict_stands_at_the_top(sample: tuple[Judgement, str]) -> None:
    """Its sentence and its exit code, before anything else."""
    judgement, text = sample
    body = " ".join(_Page(text[text.index("<header>") : text.index("</header>")]).text.split())
    assert headline(judgement) in body[: 40 + len(headline(judgement))]
    assert f"exit code {int(judgement.exit_code)}" in body[:900]


def test_a_page_stays_usable_whatever_was_found() -> None:
    """200 partitions, 30,000 findings, a month of hours: some megabytes, and every kind tells how many more there are."""
    judgement = huge()
    text = render(judgement, "broker:9092")

    assert len(text) < 4_000_000
    assert text.count("<summary>look at it</summary>") <= FINDINGS_PER_KIND * len(Kind)
    assert "2,950 more in the files." in text


def test_what_records_say_is_text() -> None:
    """Markup in names and details of findings is escaped."""
    evil = "<script>alert(1)</script>"
    finding = Finding(Kind.ALTERED, f"out{evil}", 0, 1, source=(evil, 0, 1), detail=evil)
    text = render(
        replace(complete(), pipeline=evil, notes=(evil,), findings=(finding,), finding_counts={Kind.ALTERED: 1}), evil
    )
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 6


def test_the_same_judgement_gives_the_same_bytes() -> None:
    """Reports can be compared."""
    assert render(complete(), "b:1") == render(complete(), "b:1")


def test_findings_by_kind_faults_first() -> None:
    """A kind of which no finding fitted in is still counted."""
    judgement = replace(
        of_all_kinds(),
        findings=(Finding(Kind.MISSING, "in", 0, 1),),
        finding_counts={Kind.OPEN_TRANSACTION: 1, Kind.ORPHAN: 70, Kind.MISSING: 1},
    )
    groups = finding_groups(judgement, "b:1")
    assert [(group.title, len(group.rows), group.left_out) for group in groups] == [
        ("1 missing", 1, 0),
        ("70 orphans", 0, 70),
        ("1 open transaction", 0, 1),
    ]


def test_differences_of_a_ledger_do_not_cancel() -> None:
    """One partition with an offset too many and one with an offset too few: two; those stand first."""
    rows = complete().ledger[:4]
    rows = (rows[0], replace(rows[1], committed=rows[1].committed + 1), rows[2], replace(rows[3], aborted=2))
    (topic,) = ledger_topics(rows)
    assert [difference(row) for row in rows] == [0, -1, 0, 1]
    assert topic.difference == 2
    assert [row.partition for row in topic.rows] == [1, 3, 0, 2]
    assert (topic.total.end, topic.total.committed) == (4 * 208_007, 4 * 208_000 + 1)
