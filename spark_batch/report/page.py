"""The page: one HTML file that needs no network. What stands on it is put together here, how it looks is in page.html.j2."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from spark_batch.model import ExitCode, Kind, Verdict
from spark_batch.report import words
from spark_batch.report.commands import look
from spark_batch.report.plots import latency_svg, milliseconds
from spark_batch.report.strips import BODY, LETTER, strips_by_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spark_batch.model import Finding, Judgement, LedgerRow

FINDINGS_PER_KIND = 50
"""On the page; the JSON holds FINDINGS_SHOWN, the Parquet files all."""
LEDGER_ROWS = 200
"""Partitions per topic on the page: those that do not balance first."""
HOURS = 24 * 31
TOPICS_FOLDED = 20
"""Rows of the cut's tables that are shown at once."""

_GLYPH = {ExitCode.COMPLETE: "✓", ExitCode.FINDINGS: "✗", ExitCode.CANNOT_JUDGE: "?"}


@dataclass(frozen=True, slots=True)
class FindingGroup:
    kind: Kind
    title: str
    meaning: str
    rows: tuple[tuple[Finding, tuple[str, ...]], ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class LedgerTopic:
    """One topic's sums and its partitions."""

    total: LedgerRow
    rows: tuple[LedgerRow, ...]
    left_out: int
    partitions: int
    difference: int
    """Sum of absolute differences: two that cancel do not vanish."""


def render(judgement: Judgement, bootstrap: str) -> str:
    """The whole page."""
    template = _environment().from_string(files(__package__).joinpath("page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        j=judgement,
        code=int(judgement.exit_code),
        state=judgement.exit_code.name.lower(),
        glyph=_GLYPH[judgement.exit_code],
        headline=words.headline(judgement),
        subline=words.subline(judgement),
        verdicts=[v for v in Verdict if v in judgement.totals or any(v in s.counts for s in judgement.stretches)],
        meaning=words.MEANING,
        letter=LETTER,
        body=BODY,
        depth=words.DEPTHS[judgement.depth],
        topics=strips_by_topic(judgement),
        groups=finding_groups(judgement, bootstrap),
        ledger=ledger_topics(judgement.ledger),
        plots=_plots(judgement),
        hours=judgement.latency[-HOURS:],
        measured=sum(row.records for row in judgement.latency),
        judged=words.judged(judgement.totals),
        fold=TOPICS_FOLDED,
    )


def finding_groups(judgement: Judgement, bootstrap: str) -> list[FindingGroup]:
    """Findings by kind, faults first; a kind that only counts know (its findings did not fit) has a group too."""
    by_kind: defaultdict[Kind, list[Finding]] = defaultdict(list)
    for finding in judgement.findings:
        by_kind[finding.kind].append(finding)
    groups = []
    for kind in Kind:
        count = max(judgement.finding_counts.get(kind, 0), len(by_kind[kind]))
        if not count:
            continue
        shown = by_kind[kind][:FINDINGS_PER_KIND]
        rows = tuple((finding, look(finding, judgement, bootstrap)) for finding in shown)
        title = words.kind_counted(kind, count)
        groups.append(FindingGroup(kind, title, words.KINDS[kind].meaning, rows, count - len(rows)))
    return groups


def ledger_topics(rows: Sequence[LedgerRow]) -> list[LedgerTopic]:
    """Rows by topic, in the order they came; each topic's sums over them."""
    by_topic: defaultdict[str, list[LedgerRow]] = defaultdict(list)
    for row in rows:
        by_topic[row.topic].append(row)
    topics = []
    for members in by_topic.values():
        shown = sorted(members, key=lambda row: (difference(row) == 0, row.partition))[:LEDGER_ROWS]
        off = sum(abs(difference(row)) for row in members)
        topics.append(LedgerTopic(_sum(members), tuple(shown), len(members) - len(shown), len(members), off))
    return topics


def difference(row: LedgerRow) -> int:
    """Offsets that are neither committed nor aborted records nor markers: zero, or the ledger does not balance."""
    return row.end - row.start - row.committed - row.aborted - row.markers


def _sum(rows: Sequence[LedgerRow]) -> LedgerRow:
    """`start` 0 and `end` the number of offsets."""
    return type(rows[0])(
        topic=rows[0].topic,
        partition=-1,
        role=rows[0].role,
        start=0,
        end=sum(row.end - row.start for row in rows),
        committed=sum(row.committed for row in rows),
        aborted=sum(row.aborted for row in rows),
        markers=sum(row.markers for row in rows),
        in_flight=sum(row.in_flight for row in rows),
        foreign=sum(row.foreign for row in rows),
    )


def _plots(judgement: Judgement) -> dict[str, Markup]:
    """The same plot for a wide and for a narrow page: one that shrinks has letters that nobody reads."""
    rows = judgement.latency[-HOURS:]
    if not rows:
        return {}
    sizes: Iterable[tuple[str, float, float]] = (("wide", 13.0, 3.6), ("narrow", 4.9, 3.4))
    # matplotlib escapes all text itself, and none of it comes from records: hours and figures only.
    return {name: Markup(latency_svg(rows, width, height, name)) for name, width, height in sizes}  # noqa: S704


def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["n"] = lambda value: f"{value:,}"
    environment.filters["ms"] = milliseconds
    environment.filters["utc"] = _utc
    environment.filters["slug"] = lambda verdict: str(verdict).replace(" ", "-")
    environment.filters["difference"] = difference
    return environment


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
