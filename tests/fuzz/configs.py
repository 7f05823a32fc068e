"""Mutated pipeline files: each loads, or is refused with the place of what is wrong; lint says no less, and nothing crashes."""

from __future__ import annotations

import copy
import faulthandler
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import yaml

from tests.fuzz import plain_yaml, values
from tests.fuzz.judge import complaints
from tests.fuzz.records import run
from tests.fuzz.shrink import shrunk
from tests.fuzz.targets import ENVIRONMENT, Target, targets
from transforms.editor_schema import editor_schema
from transforms.lint import lint_files
from transforms.loading import LoadedPipeline, PipelineError, load_pipeline
from transforms.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Callable

HANG_S = 180
SLOW_S = 5
"""Of CPU for one file, loading and linting."""
MAX_MESSAGE = 2000

_ODD = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    [],
    {},
    ["a", "a"],
    {"a": {"a": 1}},
    "a" * 5000,
    "${X}",
    "${",
    "$${X}",
    "${file:/nowhere}",
    "\u2028",
    "a.b",
    "..",
    "this",
    "true",
    "1",
    "a ==",
    "a == 1",
    "(" * 300 + "1" + ")" * 300,
    "[" * 150 + "]" * 150,
    " + ".join(["a"] * 3000),
    "!" * 500 + "a",
    "a" + ".b" * 500,
    "a.matches('(')",
    "1 / 0",
    "9223372036854775807 + 1",
    "'\\q'",
    "size()",
    "a.all(b, b.all(c, c.all(d, d)))",
    "`a.b`",
    "``",
    "timestamp('x')",
    "b'\\xff'",
    "-" * 400 + "1",
    "a ? " * 200 + "b" + " : c" * 200,
    "{'a': 1}.a",
    "a[" * 100 + "0" + "]" * 100,
    "reckon.x",
    "^in$",
    "^(",
    "in",
    "out",
    10**30,
    float("inf"),
]
_SNIPPETS = [
    "- ",
    ": ",
    "\n",
    "  ",
    "\t",
    "&a ",
    "*a",
    "!!python/object:os.system x",
    "!!binary aGk=",
    "<<: ",
    "'",
    '"',
    "{",
    "}",
    "[",
    "]",
    "|",
    ">",
    "#",
    "%",
    "@",
    "\x00",
    "\ufeff",
    "---\n",
    "...\n",
    "? ",
    "~",
    "\u0085",
    "${",
    "}",
    "steps:",
    "route:",
    "when: ",
    "to: ",
    "null",
    "\\",
    "&",
    "||",
    "==",
    "0x1F",
    "1e5",
    "\U0001f600",
]


@dataclass(slots=True)
class Tally:
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0
    failures: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)


def fuzz(count: int, seed: int, say: Callable[[str], None] = print) -> Tally:
    """Tries `count` files; stops at ten failures."""
    tally = Tally()
    bases = [target.text for target in targets()]
    validator = jsonschema_rs.Draft202012Validator(editor_schema())
    with tempfile.TemporaryDirectory() as folder:
        # Schemas that pipelines name are beside them.
        for path in Path("config/pipelines/schemas").glob("*"):
            (Path(folder) / "schemas").mkdir(exist_ok=True)
            (Path(folder) / "schemas" / path.name).write_bytes(path.read_bytes())
        file = Path(folder, "p.yaml")
        for number in range(count):
            rng = random.Random(seed * 1_000_003 + number)
            text = mutated(rng, rng.choice(bases))
            faulthandler.dump_traceback_later(HANG_S, exit=True)
            start = time.thread_time()  # not what other threads, of clients for one, do meanwhile
            outcome, wrong = judged(file, text, validator)
            seconds = time.thread_time() - start
            faulthandler.cancel_dump_traceback_later()
            tally.slowest = max(tally.slowest, seconds)
            tally.outcomes[outcome] += 1
            if wrong is None and seconds > SLOW_S:
                wrong = f"slow: {seconds:.1f} s"
            if wrong is not None and wrong not in tally.known:
                tally.known.add(wrong)
                tally.failures.append(_told(file, text, validator, wrong, f"seed {seed}, file {number}"))
                say(tally.failures[-1])
            if len(tally.failures) >= 10:
                break
    return tally


def mutated(rng: random.Random, text: str) -> bytes:
    kind = rng.random()
    if kind < 0.5:
        data = yaml.safe_load(text)
        for _ in range(rng.choice([1, 1, 2, 4])):
            _mutate_tree(rng, data)
        # Steps are text, so quotes do not matter there.
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10**6).encode("utf-8", "surrogatepass")
    if kind < 0.8:
        lines = text.splitlines(keepends=True)
        for _ in range(rng.choice([1, 2, 4])):
            _mutate_lines(rng, lines)
        return "".join(lines).encode()
    if kind < 0.99:
        content = bytearray(text.encode())
        for _ in range(rng.choice([1, 3, 10])):
            at = rng.randrange(len(content))
            content[at : at + rng.choice([0, 1, 1, 5])] = rng.choice(
                [rng.choice(_SNIPPETS).encode(), rng.randbytes(1), b""]
            )
        return bytes(content)
    return _bomb(rng)


def _mutate_tree(rng: random.Random, data: Any) -> None:
    places: list[tuple[Any, Any]] = []
    waiting = [data]
    while waiting:
        place = waiting.pop()
        for key in place if isinstance(place, dict) else range(len(place)):
            places.append((place, key))
            if isinstance(place[key], dict | list):
                waiting.append(place[key])
    place, key = rng.choice(places)
    other_place, other = rng.choice(places)
    action = rng.random()
    if action < 0.35:
        place[key] = copy.deepcopy(rng.choice(_ODD))
    elif action < 0.5:
        place[key] = copy.deepcopy(other_place[other])
    elif action < 0.65:
        del place[key]
    elif action < 0.8 and isinstance(place[key], str) and place[key]:
        at = rng.randrange(len(place[key]))
        place[key] = place[key][:at] + rng.choice([*_SNIPPETS, "", "+", "(", "."]) + place[key][at + rng.randrange(2) :]
    elif isinstance(place, dict):
        name = rng.choice([str(key)[:-1], str(key) + "s", str(other), "a", "steps", "when", "set", "on"])
        place[name] = copy.deepcopy(rng.choice([place[key], rng.choice(_ODD)]))
    else:
        place.insert(rng.randrange(len(place) + 1), copy.deepcopy(place[key]))


def _mutate_lines(rng: random.Random, lines: list[str]) -> None:
    if not lines:
        return
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = rng.choice([" ", "  ", "\t", "- "]) + lines[at]
        case 4:
            lines[at] = lines[at].lstrip()
        case _:
            where = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:where] + rng.choice(_SNIPPETS) + lines[at][where:]


def _bomb(rng: random.Random) -> bytes:
    """Small files that stand for large ones, and deep ones."""
    depth = rng.choice([50, 500, 5000])
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    return rng.choice(
        [
            laughs.encode(),
            b"steps: " + b"[" * depth + b"]" * depth,
            b"steps:\n" + b"".join(b" " * n + b"a:\n" for n in range(depth)),
            b"a: &a\n  b: *a\n",
            b"name: fuzz\nsource: {topics: [in]}\nsink: {topic: out}\nsteps:\n" + b"  - filter: a == 1\n" * 400,
            b"name: fuzz\nsource: {topics: [in]}\nsink: {topic: out}\nsteps:\n  - set: {a: '"
            + b"a || " * depth
            + b"b'}\n",
            b"name: " + b"x" * 1_000_000 + b"\n",
            b"\xff\xfen\x00a\x00",
        ]
    )


def judged(file: Path, text: bytes, validator: jsonschema_rs.Draft202012Validator) -> tuple[str, str | None]:
    """("loads" or "refused", what should not be)."""
    file.write_bytes(text)
    try:
        try:
            loaded = load_pipeline(file, ENVIRONMENT)
        except PipelineError as error:
            return "refused", _badly_told(error, text) or _lint(file, errors=True)
        return "loads", _lint(file, errors=None) or _runs(loaded) or _schema(text, validator)
    except Exception as error:  # noqa: BLE001 - that there is none is what is tested
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return "crashes", f"{type(error).__name__} in {Path(frame.filename).name}, {frame.name}: {str(error)[:100]}"


def _badly_told(error: PipelineError, text: bytes) -> str | None:
    lines = text.count(b"\n") + text.count(b"\r") + 2 + text.count("\u0085".encode()) + text.count("\u2028".encode())
    if not error.problems:
        return "refused without a problem"
    for problem in error.problems:
        if not (1 <= problem.line <= lines and problem.column >= 1):
            return f"the place {problem.line}:{problem.column} is not in the file: {problem.message[:80]}"
        if not problem.message or len(problem.message) > MAX_MESSAGE or "\n" in problem.message:
            return f"a message of {len(problem.message)} characters or more than one line: {problem.message[:80]!r}"
        if "Traceback" in problem.message or "pydantic" in problem.message:
            return f"a message of ours was expected: {problem.message[:80]}"
    return None


def _lint(file: Path, *, errors: bool | None) -> str | None:
    findings = lint_files([file], ENVIRONMENT)
    if errors and not any(finding.severity == "error" for finding in findings):
        return "lint finds no error in a file that does not load"
    return None


def _runs(loaded: LoadedPipeline) -> str | None:
    target = Target("mutated", "", loaded.spec, loaded.transform, [], [], [])
    topic = (loaded.spec.source.topics or ["in"])[0]
    rng = random.Random(1)
    names = ["a", "b", "id", "status", "amount"]
    records = [Sample(values.content(rng, names, []), b"k", None, 0, topic, 0, n) for n in range(20)]
    for message, _ in complaints(target, records, run(target, records)):
        return message
    return None


def _schema(text: bytes, validator: jsonschema_rs.Draft202012Validator) -> str | None:
    """What loads, the editor does not mark; as far as both read the same YAML: it has other rules for numbers and for dates."""
    try:
        data = plain_yaml.load(text)
        json.dumps(data, allow_nan=False)
    except (yaml.YAMLError, ValueError):  # .inf is a number there, and CEL here
        return None
    problem = next(iter(validator.iter_errors(data)), None)
    return (
        None
        if problem is None
        else f"the schema refuses what loads: {problem.message[:150]} at {problem.instance_path}"
    )


def _told(file: Path, text: bytes, validator: jsonschema_rs.Draft202012Validator, wrong: str, name: str) -> str:
    small = shrunk(text, lambda content: judged(file, content, validator)[1] == wrong) if "slow" not in wrong else text
    return f"{name}: {wrong}\n{small[:3000].decode(errors='backslashreplace')}\n"


def main(count: int, seed: int) -> int:
    start = time.perf_counter()
    tally = fuzz(count, seed)
    told = ", ".join(f"{number:,} {what}" for what, number in tally.outcomes.most_common())
    sys.stdout.write(
        f"{sum(tally.outcomes.values()):,} files: {told}; slowest {tally.slowest:.2f} s\n"
        f"seed {seed}, {time.perf_counter() - start:.0f} s, {len(tally.failures)} failures\n"
    )
    return 1 if tally.failures else 0
