"""Deletions that the source database made and never told: found by asking it, and told for it.

A slot that is lost takes the changes with it that nobody had read. A new snapshot brings the rows
that are there; those that are gone it does not mention. They are told in the source's own topic, as
the connector would have told them, so that every table over it, a rebuild and history see the same.
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

from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.silver.check.source_rows import read_rows
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.reasons import QuarantineReason
from spark_jobs.silver.parse.typed import CHANGES, OPERATION, SEQUENCE, TRUNCATE, typed_records

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEWEST = "__newest"
# What a deletion needs of a record; the raw columns as typed records name them.
_KEPT = {"partition": "__partition", "key": "__key", "value": "__value", "sequence": SEQUENCE}


@dataclass(frozen=True)
class MissedDeletion:
    """A row whose newest known change is no deletion, and which the database has no longer.

    Attributes:
        row: the key's columns and their values.
        partition: of the topic, where the row's changes are.
        key: the records' key.
        value: the newest change.
        sequence: its place in the source's order.
    """

    row: dict[str, Any]
    partition: int
    key: bytes
    value: bytes
    sequence: str

    def records(self, at: datetime) -> Iterator[tuple[int, bytes, bytes | None]]:
        """Partition, key and value of the deletion and of its tombstone."""
        for value in (self.told(at), None):
            yield self.partition, self.key, value

    def told(self, at: datetime) -> bytes:
        """The deletion as the connector would have told it.

        Its place is right behind the newest change that is known of the row. Positions of the
        database's log are at least eight bytes apart, so a change that is still to come stands
        behind it, whenever it was committed.
        """
        change = json.loads(self.value)
        change = change.get("payload", change)
        last_commit, position = (int(part) for part in self.sequence.split(".")[:2])
        # A deletion's rank is below an insertion's at the same position.
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
        told = {"before": change["after"], "after": None, "source": source, "op": "d", **times}
        return json.dumps(told | {"transaction": None}).encode()


@dataclass(frozen=True)
class MissedDeletions:
    """What ``missed_deletions`` found.

    Attributes:
        rows: the rows that the database no longer has, read once.
        count: how many.
        known: how many rows the changes leave there.
    """

    rows: Iterator[MissedDeletion]
    count: int
    known: int


def missed_deletions(
    spark: SparkSession, bronze: DataFrame, source: SourceEntry, *, dsn: str, max_bytes: int
) -> MissedDeletions:
    """The rows that the changes leave alive and the database no longer has.

    What is known is computed before the database is asked. So a row that the database has not is
    gone since then, or a deletion of it is on its way; to tell that twice changes nothing.

    Args:
        spark: any session.
        bronze: the records of the source.
        source: a Debezium source.
        dsn: where the source database is.
        max_bytes: a longer record was never applied.

    Raises:
        DatabaseUnreachableError: the database or the table does not answer.
    """
    keys = list(source.keys)
    alive = _alive(bronze, source, max_bytes=max_bytes).localCheckpoint(eager=True)
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


def _alive(bronze: DataFrame, source: SourceEntry, *, max_bytes: int) -> DataFrame:
    """The newest change of each row that the changes leave there: the key's columns and it."""
    records = typed_records(bronze, source, max_bytes=max_bytes)
    placed = records.where(sf.col(SEQUENCE).isNotNull() & sf.col("__key").isNotNull())
    # Nothing was made of changes whose key is another one, so nothing is there to take back.
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
