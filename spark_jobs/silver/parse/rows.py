"""Applies a silver SELECT to the typed records: rows to write, deletions, records to ignore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.graph.projection import Projection
from spark_jobs.names import HistoryColumn
from spark_jobs.silver.parse.documents import PROBLEM, problem
from spark_jobs.silver.parse.expiry import expired_on_arrival
from spark_jobs.silver.parse.judging import judged, rule_problems
from spark_jobs.silver.parse.sequence import declared_sequence
from spark_jobs.silver.parse.shapes import COMMIT, SHAPE
from spark_jobs.silver.parse.typed import (
    CHANGES,
    COMMITTED_AT,
    EARLY,
    MESSAGE,
    OPERATION,
    SEQUENCE,
    TRUNCATE,
)
from spark_jobs.silver.parse.unavailable import UNFILLED, Carried

# The event id, also if the SELECT omits it.
EVENT_ID = "__event_id"
# Whether the record affects the table: an event that passes the WHERE clause, or a change.
CANDIDATE = "__candidate"
DELETED = "__deleted"
# Length of the record, as an estimate of its row's size.
BYTES = "__bytes"
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
    """One row per record: the SELECT's columns, and what applying the batch needs to know.

    Raw bytes are kept only for records that have, or may get, a problem, so that a batch is small
    in memory. A truncation is a deletion with a NULL key; no other candidate has a NULL in its key.

    Args:
        typed: from ``typed_records``.
        source: the source's declaration.
        entry: the silver table's declaration.
        projection: its SELECT, split.

    Returns:
        the SELECT's columns; ``CANDIDATE``, ``COORDINATES``, ``ARRIVED_AT``, ``BYTES``,
            ``RAW_PAYLOAD``, ``PROBLEM``, ``SHAPE``, ``COMMIT`` and ``EARLY``; for events
            ``EVENT_ID``; for changes ``OPERATION``, ``SEQUENCE``, ``DELETED`` and ``UNFILLED``;
            for SCD type 2 ``valid_from``; with a suite ``FAILED`` and ``COUNTED``, except for SCD
            type 2.
    """
    condition = sf.expr(projection.condition) if projection.condition else sf.lit(True)  # noqa: FBT003
    passes = sf.coalesce(condition, sf.lit(False))  # noqa: FBT003
    named = typed.alias(projection.relation)
    outputs = {name: sf.expr(sql) for name, sql in projection.columns}
    if entry.apply is ApplyMode.APPEND:
        problems = rule_problems(entry, outputs, written=sf.col("__value").isNotNull() & passes)
        named = _with_problems(named, problems, projection)
        extra = _events(passes, source) | judged(entry, outputs)
        kept = sf.col(PROBLEM).isNotNull()
    else:
        if entry.expiry is not None:
            time = outputs[entry.expiry.column]
            late = expired_on_arrival(entry.expiry, time, arrived=sf.col(ARRIVED_AT))
            passes &= ~late
        carried = Carried.of(source, entry, projection)
        extra = _changes(source=source, entry=entry)
        deleted = sf.col(DELETED)
        named = _with(named, projection, {DELETED: _deleted(entry, passes)})
        problems = _change_problems(source, entry, carried=carried, projection=projection)
        written = sf.col(OPERATION).isin(*CHANGES) & ~deleted
        problems += rule_problems(entry, outputs, written=written, unsent=carried.unsent())
        named = _with_problems(named, problems, projection)
        kept = sf.col(PROBLEM).isNotNull()
        if carried.outputs:
            named = _with(named, projection, {UNFILLED: sf.when(~deleted, carried.unfilled())})
            extra[UNFILLED] = sf.col(UNFILLED)
            kept |= sf.col(UNFILLED).isNotNull()
        else:
            extra[UNFILLED] = sf.lit(None).cast("array<string>")
        if entry.apply is ApplyMode.UPSERT:
            extra |= judged(entry, outputs)
        keyed = sf.col(OPERATION) != TRUNCATE
        outputs |= {key: sf.when(keyed, outputs[key]) for key in entry.keys}
    raw = [sf.when(kept, sf.col(name)).alias(name) for name in RAW_PAYLOAD]
    return named.select(
        *(value.alias(name) for name, value in outputs.items()),
        *(value.alias(name) for name, value in extra.items()),
        *COORDINATES,
        ARRIVED_AT,
        sf.octet_length("__value").alias(BYTES),
        *raw,
        PROBLEM,
        SHAPE,
        sf.col(SEQUENCE).alias(COMMIT),
        EARLY,
    )


def _with(typed: DataFrame, projection: Projection, columns: Mapping[str, Column]) -> DataFrame:
    """The typed records with columns that are read several times; their relation keeps its name.

    Each mention of an expression is analyzed and optimized in each batch.
    """
    return typed.withColumns(dict(columns)).alias(projection.relation)


def _with_problems(
    typed: DataFrame, problems: Sequence[Column], projection: Projection
) -> DataFrame:
    """The typed records with the first problem of each; their relation keeps its name."""
    if not problems:
        return typed
    return _with(typed, projection, {PROBLEM: sf.coalesce(sf.col(PROBLEM), *problems)})


def _change_problems(
    source: SourceEntry, entry: SilverEntry, *, carried: Carried, projection: Projection
) -> list[Column]:
    """Problems of a change with this table's SELECT and header."""
    row = sf.col(OPERATION).isin(*CHANGES)
    placed = sf.col(OPERATION).isin(*CHANGES, TRUNCATE)
    found = []
    if carried.needed:
        lacking = carried.lacking()
        reason = problem(QuarantineReason.UNAVAILABLE_VALUE, lacking)
        found.append(sf.when(row & lacking.isNotNull(), reason))
    for name, written in projection.columns:
        # The source's own key columns are never NULL here.
        if name in entry.keys and written.rpartition(".")[2].strip("`") not in source.keys:
            reason = problem(QuarantineReason.KEY_MISSING, name)
            found.append(sf.when(row & sf.expr(written).isNull(), reason))
    if entry.sequence_by:
        reason = problem(QuarantineReason.SEQUENCE_MISSING, entry.sequence_by)
        found.append(sf.when(placed & _sequence(source, entry).isNull(), reason))
    elif entry.apply is ApplyMode.HISTORY:
        reason = problem(QuarantineReason.SEQUENCE_MISSING, "source.ts_ms")
        found.append(sf.when(placed & sf.col(COMMITTED_AT).isNull(), reason))
    return found


def _events(passes: Column, source: SourceEntry) -> dict[str, Column]:
    identity = sf.col(source.event_id) if source.event_id else _coordinates()
    return {EVENT_ID: identity.cast("string"), CANDIDATE: _usable() & passes}


def _usable() -> Column:
    return sf.col(PROBLEM).isNull() & sf.col("__value").isNotNull()


def _coordinates() -> Column:
    return sf.concat_ws("-", sf.col("__topic"), *(sf.col(name) for name in COORDINATES))


def _deleted(entry: SilverEntry, passes: Column) -> Column:
    """Whether a change deletes its row; one that fails the WHERE clause, or has expired, does."""
    told = sf.expr(entry.apply_as_deletes or f"{OPERATION} = 'd'")
    removed = sf.coalesce(told, sf.lit(False)) | sf.col(OPERATION).isin("d", TRUNCATE)  # noqa: FBT003
    return removed | ~passes


def _changes(*, source: SourceEntry, entry: SilverEntry) -> dict[str, Column]:
    found = {
        OPERATION: sf.col(OPERATION),
        SEQUENCE: _sequence(source, entry),
        DELETED: sf.col(DELETED),
        CANDIDATE: _usable() & (sf.col(OPERATION) != MESSAGE),
    }
    if entry.apply is ApplyMode.HISTORY:
        time = sf.expr(entry.sequence_by) if entry.sequence_by else sf.col(COMMITTED_AT)
        found[HistoryColumn.VALID_FROM] = time.cast("timestamp")
    return found


def _sequence(source: SourceEntry, entry: SilverEntry) -> Column:
    if not entry.sequence_by:
        return sf.col(SEQUENCE)
    types = {column.name.lower(): column.type for column in source.columns}
    kind = types.get(entry.sequence_by.lower(), "bigint")
    return declared_sequence(sf.expr(entry.sequence_by), kind, commit=sf.col(SEQUENCE))
