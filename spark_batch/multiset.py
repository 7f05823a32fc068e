"""Content without lineage (`lineage: false`): an output is told by its content, and outputs of equal content by nothing.

    outputs that must be, of audited source records -----------\
    outputs that may be, of source records in flight ----------> per topic and content (value, key, headers, timestamp): counted on both
    outputs and what stands in the output topics -------------/  sides, and dealt out, one output to one source record

What is dealt out goes on as if it had lineage (content.py): expected and not dealt out is missing, dealt out besides a duplicate. What
nothing explains is an orphan. Dead letters name their source records in headers of their own and need none of this.

Only prints (48 bytes) are shuffled, once, by topic and content.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.bitmaps import SHIFT
from spark_batch.context import Begin
from spark_batch.findings import orphans
from spark_batch.kafka_admin import KafkaAdmin
from spark_batch.model import Kind
from spark_batch.outcomes import SUBSTITUTES
from spark_batch.plan import DEAD_LETTERS
from spark_batch.scanned import What
from spark_batch.sides import BEFORE, EXPECTED, FLYING, FOUND, Ranges, expected_rows, found_rows, unnamed_rows
from spark_batch.tiling import width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from spark_batch.context import Context
    from spark_batch.model import Partition
    from spark_batch.plan import Plan

_ALL = 2**62
"""Beyond every offset."""
_CONTENT = ("topic", "print", "time_ms")
_SLOT = ("source", "offset", "index")

_HOW = (
    "the worker leaves no lineage in its outputs (lineage: false): they were compared by content, as multisets per topic. Their order was "
    "not checked; an altered output is one that is missing and one that is an orphan"
)
_UNTIMED = "{}: the broker's own timestamps, or none; they were not compared"
_NOT_JUDGED = "outputs that no audited source record yields were not judged: {}"


@dataclass(frozen=True, slots=True)
class Matched:
    """`rows`: as in sides.ROWS, EXPECTED and FOUND, for content.judge_content. `pairs`: one row per output that must be or is."""

    plan: Plan
    rows: DataFrame
    pairs: DataFrame
    notes: tuple[str, ...]

    def orphans(self) -> DataFrame:
        """Findings."""
        return orphans(self.plan, self.pairs.where("fate = 'orphan'").select("topic", "there.partition", "there.place"))

    def explained(self, content: DataFrame) -> DataFrame:
        """Rows of content.CONTENT, with a word in their detail where several outputs must be the same."""
        several = self.pairs.where("musts > 1").select("slot.source", "slot.offset", F.lit(True).alias("several"))
        word = F.lit("; other outputs must be the very same: which one of them it is cannot be known")
        fault = (
            (F.col("what") == "fault") & F.col("several") & F.col("kind").isin(str(Kind.MISSING), str(Kind.DUPLICATE))
        )
        detail = F.when(fault, F.concat("detail", word)).otherwise(F.col("detail"))
        marked = content.join(several.distinct(), ["source", "offset"], "left").withColumn("detail", detail)
        return marked.select(*content.columns)

    def tallies(self) -> tuple[dict[tuple[What, Partition], tuple[int, int]], list[int]]:
        """As ledger.tallies has them; and per output topic how many were found of what must be."""
        place = F.col("there.place")
        rows = (
            self.pairs.where("there IS NOT NULL")
            .groupBy("topic", "there.partition")
            .agg(
                F.count("*").alias("n"),
                F.min(place).alias("low"),
                F.count(F.when(F.col("fate") == "flying", 1)).alias("flying"),
                # Which of equal outputs is the one in flight cannot be told: the next audit reads all of them.
                F.min(F.when(F.col("flights") > 0, place)).alias("first_flying"),
                F.count(F.when(F.col("fate").isin("right", "double"), 1)).alias("found"),
            )
            .collect()
        )
        counted: dict[tuple[What, Partition], tuple[int, int]] = {}
        found = [0] * len(self.plan.outputs)
        for row in rows:
            partition = self.plan.topic_of(row["topic"]), row["partition"]
            counted[What.COMMITTED, partition] = row["n"], row["low"]
            if row["first_flying"] is not None:
                counted[What.IN_FLIGHT, partition] = row["flying"], row["first_flying"]
            found[row["topic"]] += row["found"]
        return counted, found

    def doubtful(self) -> Iterator[tuple[int, int, int]]:
        """(source, start of the stretch, source records): there is one output more than must be, but the last audit has seen one, too."""
        steps = F.array(*(F.lit(width(*span)) for span in zip(self.plan.begin, self.plan.committed, strict=True)))
        step = F.element_at(steps, F.col("source") + 1)
        rows = self.pairs.where("fate = 'doubtful'").select("slot.source", "slot.offset").distinct()
        for row in rows.groupBy("source", F.floor(F.col("offset") / step).alias("stretch")).count().collect():
            begin, end = self.plan.begin[row["source"]], self.plan.committed[row["source"]]
            yield row["source"], max(row["stretch"] * width(begin, end), begin), row["count"]


def match(context: Context, plan: Plan, ranges: Ranges, blind: str, keep: Callable[[DataFrame], DataFrame]) -> Matched:
    """`ranges`: what of the source is judged. `blind`: why outputs that nothing explains are not judged (see unjudged); empty: they are.
    `keep` puts a table into Spark's cache.
    """
    settled = dict.fromkeys(context.cut.outputs, _ALL) if blind else context.seen
    expected = keep(expected_rows(context, plan, ranges))
    letters = keep(found_rows(context, plan, ranges, [DEAD_LETTERS]))
    # Of a record whose dead letter stands in for its outputs, these must not be there.
    replaced = letters.where(F.col("error").isin(*SUBSTITUTES)).select("source", "offset").distinct()
    flying = expected_rows(context, *_in_flight(context, plan)).withColumn("what", F.lit(FLYING))
    sides = (
        expected.join(replaced, ["source", "offset"], "left_anti")
        .unionByName(flying)
        .where(f"topic != {DEAD_LETTERS} AND index >= 0")
        .unionByName(unnamed_rows(context, plan, settled))
    )
    sides = keep(sides.select("what", *_SLOT, *_CONTENT, "partition", "place"))
    untimed = sorted(row["topic"] for row in sides.where("time_ms < 0").select("topic").distinct().collect())
    notes = [_HOW, *(_UNTIMED.format(plan.topic_of(topic)) for topic in untimed)]
    if blind:
        notes.append(_NOT_JUDGED.format(blind))
    time = F.when(F.col("topic").isin(untimed), F.lit(-1)).otherwise(F.col("time_ms"))
    pairs = keep(_pairs(sides.withColumn("time_ms", time)))
    found = pairs.where("fate IN ('right', 'double')").select(
        F.lit(FOUND).alias("what"),
        *(F.col(f"slot.{name}") for name in _SLOT),
        F.shiftright("slot.offset", SHIFT).alias("bucket"),
        *_CONTENT,
        "there.partition",
        "there.place",
        F.lit("").alias("error"),
    )
    return Matched(plan, expected.unionByName(letters).unionByName(found), pairs, tuple(notes))


def _pairs(sides: DataFrame) -> DataFrame:
    """The n-th output of a content that must be, with the n-th that is: columns slot (source, offset, index), there (partition, place),
    how many must be (musts) and may be (flights), and its fate. What lies behind all that the last audit has read is dealt out first: it
    can be of no record that was judged then.
    """
    must, may, there = (F.col("what").isin(*kinds) for kinds in ([EXPECTED], [FLYING], [FOUND, BEFORE]))
    order = F.col("what").isin(FLYING, BEFORE), *_SLOT, "partition", "place"
    whole = Window.partitionBy(*_CONTENT)
    slot = F.when(must, F.struct(*_SLOT))
    numbered = sides.repartition(*_CONTENT).select(
        *_CONTENT,
        F.row_number().over(Window.partitionBy(*_CONTENT, there).orderBy(*order)).alias("n"),
        F.count(F.when(must, 1)).over(whole).alias("musts"),
        F.count(F.when(may, 1)).over(whole).alias("flights"),
        F.max(slot).over(whole).alias("last"),
        slot.alias("slot"),
        F.when(there, F.struct("partition", "place")).alias("there"),
        (F.col("what") == BEFORE).alias("before"),
    )
    facts = [F.max(name).alias(name) for name in ("musts", "flights", "last", "slot", "there", "before")]
    pairs = numbered.groupBy(*_CONTENT, "n").agg(*facts).where("slot IS NOT NULL OR there IS NOT NULL")
    wanted = F.col("musts") > 0
    fate = (
        F.when(F.col("there").isNull(), "missing")
        .when(F.col("slot").isNotNull(), "right")
        .when(F.col("n") <= F.col("musts") + F.col("flights"), "flying")
        .when(F.col("before"), F.when(wanted, "doubtful").otherwise("judged before"))
        .when(wanted, "double")
        .when(F.col("flights") > 0, "flying")  # one too many: for the audit that judges its source record
        .otherwise("orphan")
    )
    return pairs.withColumn("fate", fate).withColumn("slot", F.coalesce("slot", "last")).drop("last", "before")


def _in_flight(context: Context, plan: Plan) -> tuple[Plan, Ranges]:
    """Source records at or beyond C whose outputs can lie within the cut: up to what the group has committed by now. Every transaction
    that reached below the outputs' pinned ends has ended since (cut.py).
    """
    sources, source_end = plan.sources, context.cut.source_end
    with KafkaAdmin(context.spark, context.kafka) as admin:
        now = admin.committed(context.cut.group, sources)
    ends = tuple(
        max(start, min(now.get(partition, start), source_end[partition]))
        for partition, start in zip(sources, plan.committed, strict=True)
    )
    spans = {n: [(start, end)] for n, (start, end) in enumerate(zip(plan.committed, ends, strict=True)) if start < end}
    return replace(plan, begin=plan.committed, committed=ends), Ranges(spans)


def unjudged(context: Context, *, aside: bool, expired: bool, rewritten: bool) -> str:
    """Why outputs may lie within the cut whose source records are not looked at, or not rightly; empty: none do. `aside`: source partitions
    cannot be judged; `expired`: audited records did; `rewritten`: another transform wrote receipts.
    """
    starts = context.cut.source_start
    since = any(begin is Begin.SINCE for begin in context.begin.values())
    truncated = any(begin is Begin.BEGINNING and starts[partition] for partition, begin in context.begin.items())
    if aside:
        return "those of partitions that cannot be judged may be among them"
    if rewritten:
        return "another transform wrote some of them"
    if since:
        return "those of records before --since are among them"
    return "those of records that retention removed may be among them" if expired or truncated else ""
