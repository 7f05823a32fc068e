"""Findings as tables and as objects: few of them go to the driver, however many there are."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from spark_batch.model import FINDINGS_SHOWN, Finding, Kind
from spark_batch.plan import DEAD_LETTERS
from spark_batch.scanned import What

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_batch.plan import Plan

FINDING = (
    "kind string, topic string, partition int, offset bigint, end bigint, "
    "source struct<topic: string, partition: int, offset: bigint>, detail string"
)
"""Columns of every table of findings: those of model.Finding."""
_SOURCE = "struct<topic: string, partition: int, offset: bigint>"


def of_tiles(tiled: DataFrame) -> DataFrame:
    """From rows "finding" of receipts.TILES."""
    return tiled.select("kind", "topic", "partition", F.col("start").alias("offset"), "end", _no_source(), "detail")


def of_scan(plan: Plan, scanned: DataFrame) -> DataFrame:
    """Outputs whose source cannot exist, and copies that came late, from rows ORPHAN and LATE of scan.SCANNED."""
    late = F.col("what") == int(What.LATE)
    part = F.split("text", "/")
    named = F.struct(part[0], part[1].cast("int"), part[2].cast("bigint")).cast(_SOURCE)
    return scanned.where(F.col("what").isin(int(What.ORPHAN), int(What.LATE))).select(
        F.when(late, str(Kind.DUPLICATE)).otherwise(str(Kind.ORPHAN)).alias("kind"),
        _output_topic(plan).alias("topic"),
        "partition",
        F.col("low").alias("offset"),
        F.lit(None).cast("bigint").alias("end"),
        F.when(F.col("text").rlike(r"^[^/]+/\d{1,9}/\d{1,18}/\d{1,18}$"), named).alias("source"),
        F.concat(
            F.lit("it names "),
            F.col("text"),
            F.when(
                late,
                ", which the last audit judged, and was written after that: one too many, unless it was missing then",
            ).otherwise(", which is no source record of this pipeline"),
        ).alias("detail"),
    )


def orphans(plan: Plan, outputs: DataFrame) -> DataFrame:
    """Outputs without lineage that no source record yields, from columns topic (number), partition, place."""
    return outputs.select(
        F.lit(str(Kind.ORPHAN)).alias("kind"),
        _output_topic(plan).alias("topic"),
        "partition",
        F.col("place").alias("offset"),
        F.lit(None).cast("bigint").alias("end"),
        _no_source(),
        F.lit("no source record yields it").alias("detail"),
    )


def of_content(plan: Plan, content: DataFrame) -> DataFrame:
    """From rows "fault" of content.CONTENT."""
    source = _source(plan)
    at_source = F.col("topic").isNull()
    named = F.struct(source["topic"], source["partition"], F.col("offset")).cast(_SOURCE)
    return content.where("what = 'fault'").select(
        "kind",
        F.when(at_source, source["topic"]).otherwise(_output_topic(plan)).alias("topic"),
        F.when(at_source, source["partition"]).otherwise(F.col("partition")).alias("partition"),
        F.when(at_source, F.col("offset")).otherwise(F.col("place")).alias("offset"),
        F.lit(None).cast("bigint").alias("end"),
        F.when(~at_source, named).alias("source"),
        "detail",
    )


def of_ranges(plan: Plan, wrong: DataFrame) -> DataFrame:
    """From columns kind, source, start, end, detail: about ranges of source partitions."""
    source = _source(plan)
    names = source["topic"].alias("topic"), source["partition"].alias("partition")
    return wrong.select("kind", *names, F.col("start").alias("offset"), "end", _no_source(), "detail")


def of_late(plan: Plan, late: DataFrame) -> DataFrame:
    """REORDERED, from columns as in order.PLACES."""
    source = _source(plan)
    return late.select(
        F.lit(str(Kind.REORDERED)).alias("kind"),
        _output_topic(plan).alias("topic"),
        "partition",
        F.col("place").alias("offset"),
        F.lit(None).cast("bigint").alias("end"),
        F.struct(source["topic"], source["partition"], F.col("offset")).cast(_SOURCE).alias("source"),
        F.lit(
            "it stands behind an output of a later record of the same source partition, or before many of earlier ones"
        ).alias("detail"),
    )


def faulty_sources(plan: Plan, findings: DataFrame) -> DataFrame:
    """Source records that findings about outputs name: columns source (number), offset."""
    numbers = F.create_map(*(F.lit(x) for n, (t, p) in enumerate(plan.sources) for x in (f"{t}/{p}", n)))
    name = F.concat_ws("/", "source.topic", F.col("source.partition").cast("string"))
    number = F.try_element_at(numbers, name)
    return (
        findings.where("source IS NOT NULL")
        .select(number.alias("source"), F.col("source.offset").alias("offset"))
        .distinct()
    )


def union(spark: SparkSession, tables: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), tables, spark.createDataFrame([], FINDING))


def as_table(spark: SparkSession, findings: Iterable[Finding]) -> DataFrame:
    rows = [(str(f.kind), f.topic, f.partition, f.offset, f.end, f.source, f.detail) for f in findings]
    return spark.createDataFrame(rows, FINDING)


def shown(table: DataFrame, most: int = FINDINGS_SHOWN) -> list[Finding]:
    """At most so many of them."""
    return [_finding(row) for row in table.limit(most).collect()]


def in_order(findings: Iterable[Finding]) -> Sequence[Finding]:
    return sorted(
        findings, key=lambda f: (str(f.kind), f.topic, f.partition, -1 if f.offset is None else f.offset, f.detail)
    )


def _finding(row: Any) -> Finding:
    source = row["source"]
    return Finding(
        Kind(row["kind"]),
        row["topic"],
        row["partition"],
        row["offset"],
        row["end"],
        None if source is None else (source["topic"], source["partition"], source["offset"]),
        row["detail"],
    )


def _no_source() -> Column:
    return F.lit(None).cast(_SOURCE).alias("source")


def _source(plan: Plan) -> Any:
    """The source partition whose number is in column source: a struct of topic and partition."""
    names = F.array(*(F.struct(F.lit(t).alias("topic"), F.lit(p).alias("partition")) for t, p in plan.sources))
    return F.try_element_at(names, F.col("source") + 1)


def _output_topic(plan: Plan) -> Column:
    """The name of the topic whose number is in column topic."""
    numbers = [DEAD_LETTERS, *range(len(plan.outputs))]
    names = F.create_map(*(F.lit(x) for number in numbers for x in (number, plan.topic_of(number))))
    return F.try_element_at(names, F.col("topic"))
