"""Arguments of an audit, and what the environment has to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_batch.arguments import Arguments, group_of, lineage_of, parse
from spark_batch.errors import BadArgumentsError
from spark_batch.model import Depth, ExitCode
from transforms.spec import Pipeline, Sink, Source

SPEC = Pipeline(name="shop", source=Source(topics=["in"]), sink=Sink(topic="out"))


def test_defaults() -> None:
    """Only the pipeline is needed; the depth is records."""
    expected = Arguments(Path("p.yaml"), Depth.RECORDS, None, False, None, None, 60.0, False)
    assert parse(["--pipeline", "p.yaml"]) == expected


def test_everything_given() -> None:
    line = "--pipeline p.yaml --depth content --state s --from-beginning --out o --wait 1.5 --json"
    assert parse(line.split()) == Arguments(Path("p.yaml"), Depth.CONTENT, Path("s"), True, None, Path("o"), 1.5, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31T12:00:00", 1_769_860_800_000),
        ("2026-01-31T13:00:00+01:00", 1_769_860_800_000),
        ("2026-01-31", 1_769_817_600_000),
    ],
)
def test_a_time_is_utc_unless_it_says_else(text: str, expected: int) -> None:
    assert parse(["--pipeline", "p.yaml", "--since", text]).since_ms == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: --pipeline"),
        (["--pipeline", "p", "--depth", "deep"], "argument --depth: invalid Depth value: 'deep'"),
        (
            ["--pipeline", "p", "--since", "noon"],
            "argument --since: 'noon' is no time, expected one like 2026-01-31T12:00:00Z",
        ),
        (["--pipeline", "p", "--wait", "-1"], "argument --wait: '-1' is no number of seconds"),
        (["--pipeline", "p", "--wait", "inf"], "argument --wait: 'inf' is no number of seconds"),
        (
            ["--pipeline", "p", "--since", "2026-01-31", "--from-beginning"],
            "argument --from-beginning: not allowed with argument --since",
        ),
        (
            ["--pipeline", "p", "--since", "2026-01-31", "--state", "s"],
            "argument --since: not allowed with argument --state, which goes on from the last audit's cut",
        ),
        (["--pipeline", "p", "--deep"], "unrecognized arguments: --deep"),
    ],
)
def test_what_cannot_be_used_is_said_and_has_its_exit_code(words: list[str], message: str) -> None:
    """Not argparse's own exit code, which is 2 and means "cannot judge" here."""
    with pytest.raises(BadArgumentsError) as caught:
        parse(words)
    assert str(caught.value).splitlines()[0] == message
    assert caught.value.exit_code is ExitCode.BAD_ARGUMENTS


def test_the_group_and_lineage_are_those_of_the_worker() -> None:
    """RECKON_GROUP_ID and RECKON_LINEAGE outweigh the file, as for the worker."""
    assert (group_of(SPEC, {}), group_of(SPEC, {"RECKON_GROUP_ID": "other"})) == ("shop", "other")
    found = [lineage_of(SPEC, env) for env in ({}, {"RECKON_LINEAGE": "false"}, {"RECKON_LINEAGE": "True"})]
    assert found == [True, False, True]
