"""Compares silver with the source database, as multisets in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.graph.projection import Projection, columns_read, split_projection
from spark_jobs.names import HistoryColumn
from spark_jobs.silver.check.samples import Sample, sample_above
from spark_jobs.silver.check.source_rows import SourceRows, read_rows
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.expiry import expired_sql, horizon
from spark_jobs.state.types import utc_now

EXAMPLES = 5
_WEIGHT = "__weight"


@dataclass(frozen=True)
class Unfit:
    """Source rows that silver rejects, for one reason.

    Attributes:
        reason: a code of ``QuarantineReason``.
        detail: the column, or another detail of the reason.
        example: the key of one of them, as far as it is readable.
    """

    reason: str
    detail: str | None
    rows: int
    example: dict[str, Any]


@dataclass(frozen=True)
class SourceDifference:
    """The difference between a silver table and its source table.

    Attributes:
        missing: rows that only the source has.
        unexpected: rows that only silver has.
        examples: some of both, each with the side that has it.
        unfit: source rows that silver rejects; silver's rows with their keys are not compared.
        unread: source columns that the connector does not send, with their type; columns computed
            from them are not compared.
        sample: the part of the tables that was compared; None: all rows.
    """

    source_rows: int
    missing: int
    unexpected: int
    examples: tuple[tuple[str, dict[str, Any]], ...] = ()
    unfit: tuple[Unfit, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    sample: Sample | None = None

    @property
    def equal(self) -> bool:
        return not (self.missing or self.unexpected or self.unfit or self.unread)


def compare_with_source(
    spark: SparkSession,
    silver: DataFrame,
    source: SourceEntry,
    entry: SilverEntry,
    *,
    dsn: str,
    max_bytes: int,
    most_rows: int = 0,
) -> SourceDifference:
    """Compare a silver table with its SELECT over the current source table.

    Args:
        spark: any session.
        silver: the silver table; for SCD type 2, only currently valid rows count. Expired rows
            count on neither side.
        source: a source whose ``table`` is read in one snapshot.
        entry: the silver table's declaration.
        dsn: connection string of the source database.
        max_bytes: longer records are never applied.
        most_rows: of a larger table about so many rows are compared, chosen by their keys; 0: all.

    Raises:
        DatabaseUnreachableError: the database or the table cannot be read.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    projection = split_projection(entry.projection)
    choose = sample_above(most_rows, source, projection)
    rows = read_rows(spark, source, dsn=dsn, max_bytes=max_bytes, choose=choose)
    typed = rows.typed.localCheckpoint(eager=True)
    names = _compared(entry, projection, source, rows)
    expected = typed.where(sf.col(PROBLEM).isNull()).alias(projection.relation)
    if projection.condition:
        expected = expected.where(projection.condition)
    if entry.apply_as_deletes:
        expected = expected.where(f"NOT coalesce({entry.apply_as_deletes}, FALSE)")
    selected = _selected(expected, projection)
    found = silver if rows.sample is None else rows.sample.of(silver)
    if entry.expiry is not None:
        before = horizon(entry.expiry, utc_now())
        wanted = f"NOT coalesce({expired_sql(entry.expiry, 'timestamp', before=before)}, FALSE)"
        selected, found = selected.where(wanted), found.where(wanted)
    if entry.apply is ApplyMode.HISTORY:
        found = found.where(sf.col(HistoryColumn.VALID_TO).isNull())
    unfit = _unfit(typed, source)
    if unfit:
        rejected = typed.where(sf.col(PROBLEM).isNotNull()).alias(projection.relation)
        keys = _selected(rejected, projection).select(*entry.keys)
        found = found.join(keys, list(entry.keys), "left_anti")
    sums = _differing(selected.select(*names), found.select(*names)).localCheckpoint(eager=True)
    missing, unexpected = _counts(sums)
    examples = _examples(sums) if missing or unexpected else ()
    return SourceDifference(
        rows.count, missing, unexpected, examples, unfit, rows.unread, rows.sample
    )


def _selected(rows: DataFrame, projection: Projection) -> DataFrame:
    return rows.select(*(sf.expr(text).alias(name) for name, text in projection.columns))


def _compared(
    entry: SilverEntry, projection: Projection, source: SourceEntry, rows: SourceRows
) -> list[str]:
    """The output columns that depend on no unread column."""
    declared = tuple(column.name for column in source.columns)
    unread = {name.lower() for name, _ in rows.unread}
    made = dict(projection.columns)
    return [
        column.name
        for column in entry.selected
        if not unread & columns_read(made[column.name], declared)
    ]


def _unfit(typed: DataFrame, source: SourceEntry) -> tuple[Unfit, ...]:
    problem, keys = sf.col(PROBLEM), list(source.keys)
    groups = (
        typed.where(problem.isNotNull())
        .groupBy(problem["reason"].alias("reason"), problem["detail"].alias("detail"))
        .agg(sf.count("*").alias("rows"), sf.min(sf.struct(*keys)).alias("example"))
        .orderBy("reason", "detail")
        .collect()
    )
    return tuple(
        Unfit(one["reason"], one["detail"], one["rows"], one["example"].asDict()) for one in groups
    )


def _differing(one: DataFrame, other: DataFrame) -> DataFrame:
    """Rows that are not equally frequent on both sides, with the surplus of the first."""
    one, other = _in_order(one), _in_order(other)
    both = one.withColumn(_WEIGHT, sf.lit(1)).unionAll(other.withColumn(_WEIGHT, sf.lit(-1)))
    sums = both.groupBy(*one.columns).agg(sf.sum(_WEIGHT).alias(_WEIGHT))
    return sums.where(sf.col(_WEIGHT) != 0)


def _in_order(rows: DataFrame) -> DataFrame:
    """Replace maps by their sorted entries, because Spark cannot group by maps."""
    maps = [name for name, kind in rows.dtypes if kind.startswith("map")]
    entries = {name: sf.array_sort(sf.map_entries(name)) for name in maps}
    # Spark Connect does not accept an empty withColumns.
    return rows.withColumns(entries) if entries else rows


def _counts(sums: DataFrame) -> tuple[int, int]:
    weight = sf.col(_WEIGHT)
    [found] = sums.agg(
        sf.sum(sf.when(weight > 0, weight)).alias("missing"),
        sf.sum(sf.when(weight < 0, -weight)).alias("unexpected"),
    ).collect()
    return found["missing"] or 0, found["unexpected"] or 0


def _examples(sums: DataFrame) -> tuple[tuple[str, dict[str, Any]], ...]:
    weight = sf.col(_WEIGHT)
    return tuple(
        (side, row.asDict())
        for side, wanted in (("source", weight > 0), ("silver", weight < 0))
        for row in sums.where(wanted).drop(_WEIGHT).limit(EXAMPLES).collect()
    )
