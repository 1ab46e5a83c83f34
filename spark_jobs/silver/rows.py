"""The typed source through a silver SELECT: rows to write, deletions, and what is left aside."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.graph.manifest import Column as Declared
from spark_jobs.graph.projection import Projection, split_projection
from spark_jobs.silver.documents import PROBLEM
from spark_jobs.silver.sequence import declared_sequence
from spark_jobs.silver.typed import MESSAGE, OPERATION, SEQUENCE, typed_records

# The identity of an event, where the SELECT leaves it out.
EVENT_ID = "__event_id"
# Whether the record takes part: it is a row that the SELECT keeps, or a change of one.
CANDIDATE = "__candidate"
DELETED = "__deleted"
COORDINATES = ("__partition", "__offset")
ARRIVED_AT = "__arrived_at"
BRONZE_SCHEMA = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, "
    "partition int, offset bigint, timestamp timestamp, arrived_at timestamp"
)
RAW_PAYLOAD = ("__key", "__value", "__headers", "__topic", "__timestamp")


def silver_rows(
    typed: DataFrame, source: SourceEntry, entry: SilverEntry, *, projection: Projection
) -> DataFrame:
    """One row for each record: the SELECT's columns and what the batch must know of the record.

    Raw bytes are kept where there is a problem, so that a batch is small to hold.
    """
    condition = sf.expr(projection.condition) if projection.condition else sf.lit(True)  # noqa: FBT003
    passes = sf.coalesce(condition, sf.lit(False))  # noqa: FBT003
    usable = sf.col(PROBLEM).isNull() & sf.col("__value").isNotNull()
    extra = (
        _changes(passes, usable, source=source, entry=entry)
        if entry.apply is ApplyMode.UPSERT
        else _events(passes, usable, source)
    )
    problem = sf.col(PROBLEM)
    raw = [sf.when(problem.isNotNull(), sf.col(name)).alias(name) for name in RAW_PAYLOAD]
    return typed.alias(projection.relation).select(
        *(sf.expr(sql).alias(name) for name, sql in projection.columns),
        *(value.alias(name) for name, value in extra.items()),
        *COORDINATES,
        ARRIVED_AT,
        *raw,
        PROBLEM,
    )


def projected_columns(
    spark: SparkSession, source: SourceEntry, entry: SilverEntry
) -> tuple[Declared, ...]:
    """The silver table's columns with the types that Spark gives the SELECT."""
    bronze = spark.createDataFrame([], BRONZE_SCHEMA)
    typed = typed_records(bronze, source, max_bytes=0)
    projection = split_projection(entry.projection)
    rows = silver_rows(typed, source, entry, projection=projection)
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    return tuple(column.model_copy(update={"type": types[column.name]}) for column in entry.columns)


def _events(passes: Column, usable: Column, source: SourceEntry) -> dict[str, Column]:
    identity = sf.col(source.event_id) if source.event_id else _coordinates()
    return {EVENT_ID: identity.cast("string"), CANDIDATE: usable & passes}


def _coordinates() -> Column:
    return sf.concat_ws("-", sf.col("__topic"), *(sf.col(name) for name in COORDINATES))


def _changes(
    passes: Column, usable: Column, *, source: SourceEntry, entry: SilverEntry
) -> dict[str, Column]:
    told = sf.expr(entry.apply_as_deletes or f"{OPERATION} = 'd'")
    removed = sf.coalesce(told, sf.lit(False)) | (sf.col(OPERATION) == "d")  # noqa: FBT003
    sequence = sf.col(SEQUENCE)
    if entry.sequence_by:
        types = {column.name: column.type for column in source.columns}
        kind = types.get(entry.sequence_by, "bigint")
        sequence = declared_sequence(sf.expr(entry.sequence_by), kind, commit=sequence)
    return {
        OPERATION: sf.col(OPERATION),
        SEQUENCE: sequence,
        # A row that the SELECT no longer keeps leaves the table like a deleted one.
        DELETED: removed | ~passes,
        CANDIDATE: usable & (sf.col(OPERATION) != MESSAGE),
    }
