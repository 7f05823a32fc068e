"""What a campaign found, as one page for people and one file for machines."""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup
from matplotlib.figure import Figure

from tests.faults import recovery
from tests.faults.campaign import judges_of, summary
from tests.faults.model import Fault, Stand
from tests.faults.watch import STANDS_S

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.faults.campaign import Result

_PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reckon: faults</title>
<style>
 body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
 table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
 td, th { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: left } td.n { text-align: right }
 .bad { color: #b00020; font-weight: 600 } svg { max-width: 100%; height: auto } code { background: #f4f4f4 }
</style>
<h1>{{ "Exactly once, by " + judges if ok else "NOT exactly once" }}</h1>
{% if few %}<p class=bad>{{ few }}</p>
{% endif %}<p>{{ summary }}. Seed {{ seed }}: <code>python -m tests.faults --seed {{ seed }} {{ how_many }} --plans {{ plans }}</code> plans
the same faults in the same order; <code>--only N</code> plays one round of it.</p>
{{ picture }}
<h2>Faults</h2>
<p>Recovery, in seconds: of a worker from its restart (of a zombie from its awakening) until a commit that it made since could be
read; of all else from the fault until every source partition of the last pipeline stood in a newer receipt.</p>
<table><tr><th>fault<th>phase<th>count<th>measured<th>median<th>worst<th>not within {{ never }} s<th>not measured</tr>
{% for row in faults %}<tr><td>{{ row.kind }}<td>{{ row.phase }}<td class=n>{{ row.count }}<td class=n>{{ row.measured }}
<td class=n>{{ row.median }}<td class=n>{{ row.worst }}<td class="n{% if row.never %} bad{% endif %}">{{ row.never }}
<td>{{ row.not_measured }}</tr>
{% endfor %}</table>
<p>Not measured: how many, why, and for how long the longest of them was watched without output.</p>
<ul>{% for line in liveness %}<li>{{ line }}{% endfor %}</ul>
<h2>Rounds</h2>
<table><tr><th>round<th>faults<th>source records<th>aborted copies<th>stable offset stood, s<th>took, s<th>judges</tr>
{% for result in results %}<tr><td>{{ result.round.name }}<td class=n>{{ result.faults|length }}
<td class=n>{{ "{:,}".format(result.sent) }}<td class=n>{{ "{:,}".format(result.aborted) }}
<td class=n>{{ "%.1f"|format(result.stands|map(attribute="lasted_s")|max|default(0, true)) }}
<td class=n>{{ "%.0f"|format(result.took_s) }}
<td>{% for problem in result.problems %}<div class=bad>{{ problem[:2000] }}</div>{% endfor %}
{% for opinion in result.opinions %}<div{% if opinion.problems %} class=bad{% endif %}>{{ opinion.judge }}:
{{ "; ".join(opinion.problems) or "exactly once" }} ({{ "{:,}".format(opinion.records) }})</div>{% endfor %}</tr>
{% endfor %}</table>
<h2>Ends of workers that nobody had planned</h2>
<ul>{% for line in surprises %}<li>{{ line }}{% else %}<li>none{% endfor %}</ul>
<h2>Planned, and not counted</h2>
<p>Faults that could not be shown to have taken place.</p>
<ul>{% for line in unproven %}<li>{{ line }}{% else %}<li>none{% endfor %}</ul>
</html>
"""

WORKER_KILL_S, BROKER_KILL_S = 3.0, 15.0
"""What recovery may take. A worker's that dies amid faults of other kinds has the longer of the two; others' deaths are no excuse."""
STABLE_S = 3.5
"""How long a stable offset may stand: the transaction timeout of the workers, and the second after which coordinators look for such."""


def write(results: Sequence[Result], folder: Path, *, seed: int, wanted: int | None, plans: int) -> Path:
    """`report.json` and `index.html` in the folder; returns the page. ``wanted``: as many faults; None where one round is played alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(_machine(results, seed, wanted), indent=1, default=str))
    page = jinja2.Environment(autoescape=True).from_string(_PAGE)
    (folder / "index.html").write_text(
        page.render(
            ok=all(result.ok for result in results),
            judges=judges_of(results),
            few=too_few(results, wanted),
            summary=summary(results),
            seed=seed,
            how_many=f"--only {results[0].round.number}" if wanted is None else f"--faults {wanted}",
            plans=plans,
            picture=Markup(_timeline(results)),
            faults=table(results),
            never=f"{recovery.NEVER_S:g}",
            liveness=liveness(results),
            results=results,
            surprises=[line for result in results for line in result.surprises],
            unproven=[line for result in results for line in result.unproven],
        )
    )
    return folder / "index.html"


def too_few(results: Sequence[Result], wanted: int | None) -> str:
    """What to say where fewer faults took place than were wanted; else nothing."""
    done = len(_faults(results))
    return f"Only {done} of the {wanted} faults took place that were wanted" if done < (wanted or 0) else ""


def table(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Per kind and phase: count, and recovery in seconds. ``count`` is the sum of those measured, those that never came, and the rest."""
    groups: dict[tuple[str, str], list[Fault]] = defaultdict(list)
    for fault in _faults(results):
        groups[fault.kind, fault.phase].append(fault)
    rows = []
    for (kind, phase), faults in sorted(groups.items()):
        times = [fault.recovery_s for fault in faults if fault.recovery_s is not None]
        rows.append(
            {
                "kind": kind,
                "phase": phase,
                "count": len(faults),
                "measured": len(times),
                "median": f"{median(times):.2f}" if times else "",
                "worst": f"{max(times):.2f}" if times else "",
                "never": len(recovery.stuck(faults)),
                "not_measured": _not_measured(faults),
            }
        )
    return rows


def bounds(results: Sequence[Result]) -> list[dict[str, Any]]:
    """How the bounds of recovery were held: every fault of the kind is one of held, not held, not measured."""
    found = []
    for kind, bound, faults in _bounded(results):
        by_verdict: dict[bool | None, list[Fault]] = defaultdict(list)
        for fault in faults:
            by_verdict[recovery.held(fault, bound)].append(fault)
        times = [fault.recovery_s for fault in faults if fault.recovery_s is not None]
        if faults:
            found.append(
                {
                    "kind": kind,
                    "bound_s": bound,
                    "held": len(by_verdict[True]),
                    "not_held": len(by_verdict[False]),
                    "of_them_never": len(recovery.stuck(faults)),
                    "of_them_not_seen": sum(fault.recovery_s is None for fault in by_verdict[False]),
                    "not_measured": len(by_verdict[None]),
                    "why": _not_measured(by_verdict[None]),
                    "median_s": median(times) if times else None,
                    "worst_s": max(times, default=None),
                }
            )
    return found


def liveness(results: Sequence[Result]) -> list[str]:
    """What the bounds of recovery say, in words."""
    lines = []
    for each in bounds(results):
        never, unseen = each["of_them_never"], each["of_them_not_seen"] - each["of_them_never"]
        line = f"{each['kind']}: {each['held']} of {each['held'] + each['not_held']} within {each['bound_s']:g} s"
        line += f", {never} not within {recovery.NEVER_S:g} s" if never else ""
        line += f", {unseen} later than that, but hit again or the round over before it was seen" if unseen else ""
        line += f"; not measured: {each['why']}" if each["not_measured"] else ""
        if each["worst_s"] is not None:
            line += f" (of those measured: median {each['median_s']:.2f}, worst {each['worst_s']:.2f})"
        lines.append(line)
    return [*lines, *(f"last stable offset, {when}: {how}" for when, how in _stable_offsets(results))]


def _bounded(results: Sequence[Result]) -> list[tuple[str, float, list[Fault]]]:
    """(what, its bound in seconds, the faults)"""
    alone, kip_848, amid, brokers = list[Fault](), list[Fault](), list[Fault](), list[Fault]()
    for result in results:
        for fault in result.faults:
            if fault.kind == "worker kill":
                on_its_own = kip_848 if result.round.protocol == "consumer" else alone
                is_amid = recovery.amid(fault, result.faults, result.disturbed, result.aborts)
                (amid if is_amid else on_its_own).append(fault)
            elif fault.kind == "broker kill":
                brokers.append(fault)
    return [
        ("worker kill, no other kind of fault going on", WORKER_KILL_S, alone),
        ("worker kill, no other kind of fault going on, KIP-848", WORKER_KILL_S, kip_848),
        ("worker kill amid faults of other kinds", BROKER_KILL_S, amid),
        ("broker kill", BROKER_KILL_S, brokers),
    ]


def _stable_offsets(results: Sequence[Result]) -> list[tuple[str, str]]:
    """(when, how long they stood)"""
    calm, amid = list[Stand](), list[Stand]()
    for result in results:
        for stand in result.stands:
            (amid if recovery.amid_disturbance(stand, result.disturbed) else calm).append(stand)
    return [
        ("all brokers well", _stood(calm, STABLE_S)),
        ("amid faults of brokers or the network", _stood(amid, BROKER_KILL_S)),
    ]


def _stood(stands: Sequence[Stand], bound_s: float) -> str:
    if not stands:
        return f"none stood for {STANDS_S:g} s"
    worst = max(stands, key=lambda stand: stand.lasted_s)
    within = sum(stand.lasted_s <= bound_s for stand in stands)
    return f"{within} of {len(stands)} that stood for {STANDS_S:g} s within {bound_s:g} s (worst {worst.lasted_s:.1f}, {worst.where})"


def _not_measured(faults: Sequence[Fault]) -> str:
    """Those that nobody saw recover, and that may have: by reason."""
    watched = defaultdict[str, list[float]](list)
    for fault in faults:
        if fault.recovery_s is None and not recovery.stuck([fault]):
            watched[fault.why_not or "the round had failed"].append(fault.waited_s or 0.0)
    return "; ".join(f"{len(times)} ({why}, after {max(times):.1f} s)" for why, times in sorted(watched.items()))


def _faults(results: Sequence[Result]) -> list[Fault]:
    return sorted((fault for result in results for fault in result.faults), key=lambda fault: fault.at)


def _machine(results: Sequence[Result], seed: int, wanted: int | None) -> dict[str, Any]:
    rounds = []
    for result in results:
        told = asdict(result)
        del told["outputs_at"]
        told["round"] = {"name": result.round.name, "seed": result.round.seed, "number": result.round.number}
        rounds.append(told | {"ok": result.ok})
    return {
        "seed": seed,
        "wanted": wanted,
        "too_few": too_few(results, wanted),
        "judges": judges_of(results),
        "summary": summary(results),
        "liveness": liveness(results),
        "bounds": bounds(results),
        "faults": table(results),
        "rounds": rounds,
    }


def _timeline(results: Sequence[Result]) -> str:
    """Faults as dots, one row per kind, over the committed outputs per second."""
    faults = _faults(results)
    start = min(result.began for result in results)
    kinds = sorted({fault.kind for fault in faults})
    figure = Figure(figsize=(12, 1.8 + 0.35 * len(kinds)), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[max(1, 0.35 * len(kinds)), 1.2])
    for row, kind in enumerate(kinds):
        times = [(fault.at - start) / 60 for fault in faults if fault.kind == kind]
        above.plot(times, [row] * len(times), "|", markersize=9, color="#b00020")
    above.set_yticks(range(len(kinds)), kinds)
    above.set_title("faults")
    counts = Counter(int(at - start) for result in results for at in result.outputs_at)
    last = max(counts, default=0)
    below.fill_between(
        [second / 60 for second in range(last + 1)], [counts[second] for second in range(last + 1)], step="post"
    )
    below.set_ylabel("outputs/s")
    below.set_xlabel("minutes")
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue().partition("?>")[2]
