"""The pipelines that records are sent through: those of the repository, each step's example, and steps in combination."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from transforms.loading import load_pipeline
from transforms.steps import STEPS
from transforms.steps.base import Given

if TYPE_CHECKING:
    from transforms.records import Transform
    from transforms.spec import Pipeline

PIPELINES = sorted(Path("config/pipelines").glob("*.yaml"))
_NAME = re.compile(r"[A-Za-z_]\w*")

COMBINED = {
    "strings": """\
source: {topics: [in], format: string}
sink: {topic: out, format: string}
steps:
  - filter: size(this) < 100000
  - value: this.trim().lowerAscii().replace("a", "b") + "!"
""",
    "bytes": "source: {topics: [in], format: bytes}\nsink: {topic: out, format: bytes}\nsteps:\n  - filter: size(this) > 1\n",
    "text to json": """\
source: {topics: [in], format: string}
sink: {topic: out}
steps:
  - value: "{'text': this, 'parts': this.split(',')}"
""",
    "copies": "source: {topics: [in]}\nsink: {topic: out}\ntombstones: drop\n",
    "metadata": """\
source: {topics: [in], key_format: json}
sink: {topic: out}
steps:
  - set: {k: key, t: string(timestamp), y: timestamp.getFullYear(), p: partition + offset, h: headers}
  - key: k
  - headers: {set: {a: this, b: topic}, remove: [h]}
""",
    "keys as text": """\
source: {topics: [in]}
sink: {topic: out}
steps:
  - filter: key == null || key.startsWith("k")
  - headers: {set: {a: 'has(headers.a) ? headers.a : "none"'}}
""",
    "strings of CEL": """\
source: {topics: [in]}
sink: {topic: out}
steps:
  - filter: a.matches("^(S3|[0-9]+)+$") || b.contains("x") || a.size() > 2
  - set:
      upper: a.upperAscii()
      parts: a.split("-").map(p, p.trim()).join("+")
      number: 'a.matches("^[0-9]{1,18}$") ? int(a) : -1'
      sub: 'a.size() > 3 ? a.substring(1, 3) : a'
      quoted: string(this.size()) + a
""",
    "numbers of CEL": """\
source: {topics: [in]}
sink: {topic: out}
steps:
  - set:
      sum: a + b * 2 - 1
      ratio: double(a) / double(b)
      rest: 'b != 0 ? a % b : 0'
      whole: int(double(a) * 100.0 + 0.5)
      negative: -a
      most: math.greatest(a, b)
""",
    "macros": """\
source: {topics: [in]}
sink: {topic: out}
steps:
  - filter: list.all(i, i != null) && list.exists(i, i > 0)
  - set:
      doubled: list.map(i, i * 2)
      some: list.filter(i, i > 1)
      names: this.map(k, k)
      first: 'size(list) > 0 ? list[0] : null'
""",
    "times": """\
source: {topics: [in]}
sink: {topic: out}
steps:
  - set:
      later: string(timestamp(ts) + duration("1h30m"))
      day: timestamp(ts).getDayOfYear("Europe/Berlin")
      age: string(timestamp("2026-01-31T09:30:00Z") - timestamp(ts))
""",
    "lists in lists": """\
source: {topics: [in]}
sink: {topic: out}
steps:
  - explode: {field: a, into: b, index: i}
  - explode: {field: b.a, into: c}
  - filter: i < 3
  - flatten: {}
  - route_all:
      - {when: has(this.c), to: x}
      - {when: 'i == 1', to: y}
""",
    "paths": """\
source: {topics: [in]}
sink: {topic: out}
steps:
  - default: {a.b: 1, a.c.d: '"x"'}
  - set: {a.e: a.b, b.c.d: a}
  - rename: {a.b: c.d, a.e: '`a.e`'}
  - cast: {a.c.d: string, c.d: int}
  - mask: {fields: [a.c.d, b.c], keep_last: 2}
  - parse_json: [a.c.d]
  - parse_time: {ts: {from: unix_ms}, b.c.d: {from: '%Y-%m-%d', to: unix}}
  - drop: [b.c.d, a.c]
  - keep: [a, c.d, ts, '`a.e`']
""",
    "tombstones": """\
source: {topics: [in]}
sink: {topic: out}
steps:
  - tombstone: op == "d"
  - value: after
  - key: string(id)
  - validate: {schema: {type: object, required: [id], properties: {id: {type: integer}, name: {type: string, pattern: "^[a-z]+$"}}}}
""",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    text: str
    spec: Pipeline
    transform: Transform
    bases: list[Any]
    """Values that it is made for."""
    names: list[str]
    """Of fields, as they stand in its steps."""
    topics: list[str]


@cache
def targets() -> list[Target]:
    found = [_target(path.stem, path) for path in PIPELINES]
    texts = {
        f"step {name}": f"source: {{topics: [in]}}\nsink: {{topic: out}}\nsteps:\n  - {indented(step.example.yaml)}\n"
        for name, step in STEPS.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (texts | COMBINED).items():
            path = Path(folder, "fuzz.yaml")
            path.write_text(f"name: fuzz\n{text}", encoding="utf-8")
            found.append(_target(name, path))
    return found


def indented(step: str) -> str:
    return step.replace("\n", "\n    ")


def _target(name: str, path: Path) -> Target:
    text = path.read_text(encoding="utf-8")
    loaded = load_pipeline(path, ENVIRONMENT)
    step = STEPS.get(name.removeprefix("step "))
    bases = [entry.value if isinstance(entry, Given) else entry for entry in step.example.inputs] if step else []
    bases += [record.value for test in loaded.spec.tests for record in test.records if record.value is not None]
    steps = json.dumps(yaml.safe_load(text).get("steps", []))
    names = sorted({*_NAME.findall(steps), "a", "b", "id", "x"} - {"true", "false", "null"})
    return Target(name, text, loaded.spec, loaded.transform, bases, names, list(loaded.spec.source.topics) or ["in"])


class _Environment(dict[str, str]):
    """Every variable is set."""

    def __contains__(self, _name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return f"value-of-{name}"


ENVIRONMENT = _Environment()
