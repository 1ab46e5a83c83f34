"""Truncations that a table has stored, and those in a batch.

A truncation deletes every row whose change was committed before it, even if it arrives later. It is
stored like a deleted key, with NULL as the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.names import HistoryColumn
from spark_jobs.silver.parse.rows import CANDIDATE, COORDINATES
from spark_jobs.silver.parse.typed import OPERATION, SEQUENCE, TRUNCATE
from spark_jobs.silver.store.releases import reprocessing_app
from spark_jobs.storage.log import transaction_version
from spark_jobs.storage.reader import read_columns


@dataclass(frozen=True)
class Truncation:
    """One truncation of a source table.

    Attributes:
        micros: commit time in microseconds since 1970; None for a table of current rows, which does
            not need it.
    """

    sequence: str
    partition: int
    offset: int
    micros: int | None = None


@dataclass
class RememberedTruncations:
    """The truncations stored in tombstones or changes, cached.

    They are read again after this writer adds one, and after a reprocessing or a rebuild, which
    other processes run, wrote the table.

    Attributes:
        location: of the tombstones or changes.
        entry: the silver table.
        timed: whether the table stores commit times.
    """

    location: str
    entry: SilverEntry
    timed: bool
    _found: tuple[Truncation, ...] | None = None
    _reprocessing: int | None = None

    def now(self) -> tuple[Truncation, ...]:
        """All of them, in the source's order."""
        latest = transaction_version(self.location, reprocessing_app(self.entry))
        if self._found is None or latest != self._reprocessing:
            keys = self.entry.keys
            self._found = remembered_truncations(self.location, keys, timed=self.timed)
            self._reprocessing = latest
        return self._found

    def forget(self) -> None:
        """Clear the cache."""
        self._found = None


def remembered_truncations(
    location: str, keys: Sequence[str], *, timed: bool
) -> tuple[Truncation, ...]:
    """Read the truncations stored in tombstones or changes.

    Args:
        location: of the tombstones or changes.
        keys: the columns that identify a row.
        timed: whether the table stores commit times.

    Raises:
        TableMissingError: the table does not exist.
    """
    names = [SEQUENCE, *COORDINATES, *([str(HistoryColumn.VALID_FROM)] if timed else [])]
    found = read_columns(location, names, where=pc.field(keys[0]).is_null())
    columns = [found.column(name) for name in names]
    if timed:
        columns[-1] = columns[-1].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    lists = (column.to_pylist() for column in columns)
    return _first_of_each(Truncation(*row) for row in zip(*lists, strict=True))


def truncations_in(rows: DataFrame, *, timed: bool) -> tuple[Truncation, ...]:
    """The truncations in a batch, as ``silver_rows`` returns it; runs a job.

    Args:
        rows: the batch.
        timed: whether to read their ``valid_from`` too, which only SCD type 2 has.
    """
    times = [sf.unix_micros(HistoryColumn.VALID_FROM)] if timed else []
    found = rows.where(sf.col(CANDIDATE) & (sf.col(OPERATION) == TRUNCATE))
    return _first_of_each(
        Truncation(*row) for row in found.select(SEQUENCE, *COORDINATES, *times).collect()
    )


def joined(*parts: Sequence[Truncation]) -> tuple[Truncation, ...]:
    """All truncations without duplicates; the first part that has one wins."""
    found: dict[str, Truncation] = {}
    for part in parts:
        for one in part:
            found.setdefault(one.sequence, one)
    return tuple(found[sequence] for sequence in sorted(found))


def _first_of_each(found: Iterable[Truncation]) -> tuple[Truncation, ...]:
    return joined(sorted(found, key=lambda one: (one.sequence, one.partition, one.offset)))
