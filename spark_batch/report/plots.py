"""The latency plot, by matplotlib: as inline SVG, the same bytes for the same figures, readable on light and dark."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_batch.model import LatencyRow

_INK = "#010203"
"""Stands for the page's own text colour, which follows the reader's light or dark setting."""
_LINES = (
    ("p50", "#4c8dc4", "-", "o"),
    ("p95", "#d98b00", "--", "s"),
    ("p99", "#c8456b", ":", "^"),
)
"""Name, colour, dash and marker: told apart without colour."""
_LOG_BEYOND = 30
"""Where the largest is this many times the smallest, the scale is logarithmic."""


def latency_svg(rows: Sequence[LatencyRow], width: float, height: float, salt: str) -> str:
    """Percentiles per hour; width and height in inches of 72 pixels. `salt` keeps the ids of two plots on one page apart."""
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        _draw(figure, rows)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(out.getvalue())


def _draw(figure: Figure, rows: Sequence[LatencyRow]) -> None:
    axes = figure.add_subplot()
    hours: list[float] = [date2num(datetime.fromtimestamp(row.hour_ms / 1000, UTC)) for row in rows]  # type: ignore[no-untyped-call]
    series = ([row.p50_ms for row in rows], [row.p95_ms for row in rows], [row.p99_ms for row in rows])
    for (name, colour, dash, marker), values in zip(_LINES, series, strict=True):
        size = 4 if len(rows) <= 60 else 0
        axes.plot(hours, values, dash, color=colour, marker=marker, markersize=size, linewidth=1.8, label=name)
    smallest, largest = min(map(min, series)), max(map(max, series))
    if smallest > 0 and largest / smallest > _LOG_BEYOND:
        axes.set_yscale("log")
    elif smallest >= 0:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: milliseconds(value)))
    locator = AutoDateLocator(maxticks=6)  # type: ignore[no-untyped-call]
    axes.xaxis_date()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=True))  # type: ignore[no-untyped-call]
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, labelcolor=_INK, ncols=3)
    axes.grid(visible=True, axis="y", color=_INK, alpha=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    for part in axes.spines.values():
        part.set_color(_INK)
    axes.tick_params(colors=_INK, which="both")
    axes.xaxis.get_offset_text().set_color(_INK)


def milliseconds(value: float) -> str:
    """For people: 12 ms, 3.4 s, 2.5 min, 7 h, 3 d."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} ms"


def _inline(svg: str) -> str:
    """From a document to an element of a page: no prolog, as wide as its room, the ink in the page's colour."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", element, count=1)
    element = re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r'\1 width="100%" role="img" aria-label="Latency per hour"', element, count=1
    )
    return element.replace(_INK, "currentColor")
