"""Delete backfill: finds deletes that the connector missed, and writes them to its topic.

If a replication slot is lost, so are the changes that nobody had read. A new snapshot sends the
existing rows, but says nothing of deleted ones. Their deletes are written to the source's own topic
in the connector's format, so that all tables over it, rebuilds and SCD type 2 see them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.definitions.quarantine_reasons import QuarantineReason
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.silver.apply.early_changes import behind_snapshots
from spark_jobs.silver.check.source_rows import read_rows
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.typed import CHANGES, OPERATION, SEQUENCE, TRUNCATE, typed_records

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEWEST = "__newest"
# Fields of a record that its deletion needs, and their columns in typed records.
_KEPT = {"partition": "__partition", "key": "__key", "value": "__value", "sequence": SEQUENCE}


@dataclass(frozen=True)
class MissedDeletion:
    """A row whose newest change is not a delete, and which the database no longer has.

    Attributes:
        row: key columns and their values.
        partition: topic partition of the row's changes.
        key: Kafka key of the records.
        value: the newest change.
        sequence: sequence of that change.
    """

    row: dict[str, Any]
    partition: int
    key: bytes
    value: bytes
    sequence: str

    def records(self, at: datetime) -> Iterator[tuple[int, bytes, bytes | None]]:
        """Partition, key and value of the delete and of its tombstone."""
        for value in (self.delete_event(at), None):
            yield self.partition, self.key, value

    def delete_event(self, at: datetime) -> bytes:
        """The delete event in the connector's format.

        It sorts right after the newest known change of the row. Log positions of the database are
        at least eight bytes apart, so later changes sort after it, whenever they were committed.
        """
        change = json.loads(self.value)
        change = change.get("payload", change)
        last_commit, position = (int(part) for part in self.sequence.split(".")[:2])
        # At one position a delete sorts before an insert.
        place = position + 1
        micros = (at - _EPOCH) // timedelta(microseconds=1)
        times = {"ts_ms": micros // 1000, "ts_us": micros, "ts_ns": micros * 1000}
        source = change["source"] | times
        source |= {
            "snapshot": "false",
            "lsn": place,
            "sequence": json.dumps([str(last_commit), str(place)]),
            "txId": None,
        }
        delete_event = {
            "before": change["after"],
            "after": None,
            "source": source,
            "op": "d",
            **times,
        }
        return json.dumps(delete_event | {"transaction": None}).encode()


@dataclass(frozen=True)
class MissedDeletions:
    """The result of ``missed_deletions``.

    Attributes:
        rows: the rows that the database no longer has; an iterator.
        count: number of rows.
        known: number of live rows according to the changes.
    """

    rows: Iterator[MissedDeletion]
    count: int
    known: int


def missed_deletions(
    spark: SparkSession, bronze: DataFrame, source: SourceEntry, *, dsn: str, max_bytes: int
) -> MissedDeletions:
    """The rows that are live according to the changes, and that the database no longer has.

    The changes are read before the database. So a missing row was deleted since then, or its delete
    event is still on its way; writing it twice does no harm.

    Args:
        spark: any session.
        bronze: the records of the source, with bronze's columns.
        source: a Debezium source.
        dsn: connection string of the source database.
        max_bytes: longer records were never applied.

    Raises:
        DatabaseUnreachableError: the database or the table cannot be read.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    keys = list(source.keys)
    alive = _live_rows(bronze, source, max_bytes=max_bytes).localCheckpoint(eager=True)
    columns = tuple(column for column in source.columns if column.name in keys)
    narrow = source.model_copy(update={"columns": columns})
    present = read_rows(spark, narrow, dsn=dsn, max_bytes=max_bytes).typed.select(*keys)
    missed = alive.join(present, keys, "left_anti").localCheckpoint(eager=True)
    return MissedDeletions(_rows(missed, keys), missed.count(), alive.count())


def _rows(missed: DataFrame, keys: list[str]) -> Iterator[MissedDeletion]:
    for row in missed.toLocalIterator():
        newest = row[_NEWEST].asDict()
        yield MissedDeletion(
            row={name: row[name] for name in keys},
            partition=newest["partition"],
            key=bytes(newest["key"]),
            value=bytes(newest["value"]),
            sequence=newest["sequence"],
        )


def _live_rows(bronze: DataFrame, source: SourceEntry, *, max_bytes: int) -> DataFrame:
    """Key columns and newest change of each live row."""
    records = typed_records(bronze, source, max_bytes=max_bytes)
    records = behind_snapshots(records)
    placed = records.where(sf.col(SEQUENCE).isNotNull() & sf.col("__key").isNotNull())
    # Changes with other key columns were never applied, so there is nothing to delete.
    other = sf.col(PROBLEM)["reason"] == QuarantineReason.KEY_COLUMNS_DIFFER
    placed = placed.where(~sf.coalesce(other, sf.lit(False)))  # noqa: FBT003
    known = reduce(and_, (sf.col(name).isNotNull() for name in source.keys))
    changes = placed.where(sf.col(OPERATION).isin(*CHANGES) & known)
    fields = [sf.col(column).alias(name) for name, column in _KEPT.items()]
    newest = sf.max_by(sf.struct(*fields, OPERATION), sf.struct(SEQUENCE, "__offset"))
    rows = changes.groupBy(*source.keys).agg(newest.alias(_NEWEST))
    emptied = records.where(sf.col(OPERATION) == TRUNCATE).agg(sf.max(SEQUENCE).alias("emptied"))
    return (
        rows.crossJoin(sf.broadcast(emptied))
        .where(sf.col(f"{_NEWEST}.{OPERATION}") != "d")
        .where(sf.expr(f"emptied IS NULL OR {_NEWEST}.sequence > emptied"))
        .drop("emptied")
    )
