"""Strips: nothing that needs a look may vanish, whatever is joined."""

from __future__ import annotations

from dataclasses import replace

from spark_batch.model import Range, Stretch, Verdict
from spark_batch.report.strips import BODY, CELLS, STRIPS, Flag, Layer, Strip, strips_by_topic
from tests.audit.samples import complete, cut, empty, huge, judgement, many_partitions, planted, stretches

GOOD = {Verdict.EXACTLY_ONCE: 100}


def only(*pieces: Stretch) -> Strip:
    at = cut(1, 0, outputs={}, topic_ids={})
    audited = {("shop.orders", 0): Range(pieces[0].start, pieces[-1].end)}
    (topic,) = strips_by_topic(judgement(list(pieces), at, audited=audited))
    (strip,) = topic.shown
    return strip


def piece(n: int, counts: dict[Verdict, int]) -> Stretch:
    return Stretch("shop.orders", 0, n * 100, (n + 1) * 100, counts)


def test_neighbours_that_look_alike_are_one_cell() -> None:
    """Positions are per cent of the strip; figures are sums."""
    strip = only(piece(0, GOOD), piece(1, GOOD), piece(2, {Verdict.FILTERED: 100}), piece(3, GOOD))

    assert [(cell.x, cell.width) for cell in strip.cells] == [(0, 50), (50, 25), (75, 25)]
    assert strip.cells[0].text == "offsets 0 to 199: 200 exactly once"
    assert strip.cells[0].layers == (Layer(Verdict.EXACTLY_ONCE, 0, BODY),)
    assert strip.counts == ((Verdict.EXACTLY_ONCE, 300), (Verdict.FILTERED, 100))
    assert not strip.trouble
    assert strip.flags == ()


def test_one_record_in_a_million_is_seen() -> None:
    """Its layer is two pixels high and its cell is flagged."""
    strip = only(
        piece(0, GOOD), piece(1, {Verdict.EXACTLY_ONCE: 999_999, Verdict.MISSING: 1}), piece(2, GOOD), piece(3, GOOD)
    )

    assert strip.cells[1].layers == (Layer(Verdict.EXACTLY_ONCE, 0, BODY - 2), Layer(Verdict.MISSING, BODY - 2, 2))
    assert strip.flags == (Flag(Verdict.MISSING, 25.0, 25.0, "M"),)
    assert strip.trouble


def test_one_flag_per_run_and_letters_that_do_not_overlap() -> None:
    """Neighbours with one worst verdict share a frame; a letter too near to the one before is left out, its frame is not."""
    missing, both, altered = {Verdict.MISSING: 1}, {Verdict.MISSING: 2, Verdict.ALTERED: 3}, {Verdict.ALTERED: 1}
    pieces = [piece(n, GOOD) for n in range(97)]
    strip = only(*pieces, piece(97, missing), piece(98, both), piece(99, altered))

    assert strip.flags == (Flag(Verdict.MISSING, 97.0, 2.0, "M"), Flag(Verdict.ALTERED, 99.0, 1.0, ""))


def test_offsets_without_records_are_an_empty_cell() -> None:
    """Commit markers only: the ground shows."""
    strip = only(piece(0, {}), piece(1, GOOD))

    assert strip.cells[0].layers == ()
    assert strip.cells[0].text == "offsets 0 to 99: no records"


def test_every_part_of_a_full_body_has_room() -> None:
    """Layers fill the body exactly, however many verdicts there are."""
    strip = only(piece(0, {verdict: 10 ** (n % 5) for n, verdict in enumerate(list(Verdict)[:9])}))

    layers = strip.cells[0].layers
    assert sum(layer.height for layer in layers) == BODY
    assert min(layer.height for layer in layers) >= 1


def test_cells_are_bounded_and_no_trouble_is_lost() -> None:
    """300 stretches that all differ, 400 partitions: joined to CELLS, and all that was planted is still flagged."""
    at = cut(400, 3000)
    pieces = [s for p in range(400) for s in stretches("shop.orders", p, 3000, pieces=300)]
    for n in (7, 4000, 90_000):
        pieces[n] = planted(pieces[n], Verdict.MISSING)

    (topic,) = strips_by_topic(judgement(pieces, at))

    drawn = [*topic.shown, *topic.folded]
    assert sum(len(strip.cells) for strip in drawn) <= CELLS
    assert [strip.partition for strip in topic.shown] == [0, 13, 300]
    assert [len(strip.flags) for strip in topic.shown] == [1, 1, 1]
    assert {(0.0, 100.0)} == {(s.cells[0].x, round(s.cells[-1].x + s.cells[-1].width, 2)) for s in drawn}


def test_many_partitions_fold_and_those_with_trouble_stand_first() -> None:
    """A small topic shows all its partitions, a large one only those that need a look; over STRIPS the clean ones are left out."""
    (small,) = strips_by_topic(complete())
    assert (len(small.shown), len(small.folded), small.left_out) == (6, 0, 0)
    (large,) = strips_by_topic(many_partitions(48, 3))
    assert (len(large.shown), len(large.folded), large.left_out) == (3, 45, 0)

    at = cut(STRIPS + 50, 10)
    pieces = [Stretch("shop.orders", p, 1000, 1010, GOOD) for p in range(STRIPS + 50)]
    pieces[-1] = replace(pieces[-1], counts={Verdict.UNKNOWN: 1})
    (topic,) = strips_by_topic(judgement(pieces, at))
    assert [strip.partition for strip in topic.shown] == [STRIPS + 49]
    assert (len(topic.folded), topic.left_out) == (STRIPS - 1, 50)


def test_nothing_audited_is_nothing_drawn() -> None:
    """And an audited partition without a stretch has an empty strip."""
    assert strips_by_topic(empty()) == ()
    (topic,) = strips_by_topic(judgement([], cut(1, 5)))
    assert (topic.shown[0].cells, topic.shown[0].start, topic.shown[0].end) == ((), 1000, 1005)
    assert len(strips_by_topic(huge())) == 1
