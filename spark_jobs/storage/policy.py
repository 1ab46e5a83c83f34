"""All thresholds between work in this process and work in Spark.

Spark needs as many jobs for ten rows as for a million, so small work runs in this process on Arrow
tables. Callers know the amount of work; this module decides where it runs, and whether merging rows
is cheaper than rewriting a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spark_jobs.sections import Engine


class Place(StrEnum):
    """Where rows are read, computed and written."""

    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True)
class Limit:
    """The largest amount of work for this process; None: that measure is unlimited.

    Attributes:
        rows: number of rows.
        bytes: total size of rows or files.
        files: number of files.
    """

    rows: int | None = None
    bytes: int | None = None
    files: int | None = None

    def place(self, *, rows: int | None = 0, size: int | None = 0, files: int | None = 0) -> Place:
        """Where an amount of work is done; unknown amounts (None) are left to Spark.

        >>> Limit(rows=10).place(rows=10), Limit(rows=10).place(rows=11)
        (<Place.LOCAL: 'local'>, <Place.SPARK: 'spark'>)
        >>> Limit(rows=10).place(rows=None), Limit(bytes=2**20).place(rows=10**9)
        (<Place.SPARK: 'spark'>, <Place.LOCAL: 'local'>)

        Args:
            rows: how many.
            size: in bytes.
            files: how many.
        """
        amounts = ((rows, self.rows), (size, self.bytes), (files, self.files))
        fits = all(most is None or (one is not None and one <= most) for one, most in amounts)
        return Place.LOCAL if fits else Place.SPARK

    def fits(self, *, rows: int | None = 0, size: int | None = 0, files: int | None = 0) -> bool:
        """Whether the work is done in this process; for the arguments see ``place``."""
        return self.place(rows=rows, size=size, files=files) is Place.LOCAL


# No work at all, not even that without a row.
NOTHING: Final = Limit(rows=-1)
# Rows that a refresh stages, publishes or looks up.
RESULT: Final = Limit(rows=250_000)
# Expected rows of a view that is computed in order to count them. If the result is too large after
# all, Spark's writer computes it again.
EXPECTED_RESULT: Final = Limit(rows=125_000)
# Changed input rows. A step over so few is collected and passed back to Spark, so that later plans
# know its size and are short.
CHANGE: Final = Limit(rows=200_000)
# A micro-batch, held in memory next to all other streams of the process.
BATCH: Final = Limit(rows=100_000, bytes=2**26)
# Aggregate state. Rewriting a smaller table is as fast as appending, and faster to read.
STATE: Final = Limit(rows=20_000)
# Tables that are read or rewritten whole; Spark merges larger ones on all cores.
REWRITTEN: Final = Limit(bytes=2**28)
# Files whose footers are read; for more files Spark is faster.
FOOTERS: Final = Limit(files=32)
# Files of a table that are read one by one. For more of them, Delta's data skipping saves more than
# its jobs cost.
SCANNED: Final = Limit(files=200, bytes=2**30)
# Change feeds that an interactive command counts.
COUNTED: Final = Limit(rows=2_000_000, files=500)
# Tables that Spark broadcasts: its limit is 10 MiB of the columns that a query reads, and most
# queries read only some.
COPIED: Final = Limit(bytes=32 * 2**20)
# Results that are compared with the published table; for larger ones rewriting it is cheaper.
COMPARED: Final = Limit(bytes=2**30)

# If more than this share of rows differs, a rewrite makes the change feed hardly longer.
_SHARE_MERGED: Final = 0.5
# Merging so few rows is always faster than rewriting a table with Spark.
_ALWAYS_MERGED: Final = 10_000
# Summing up to this many layers of aggregate state is cheaper than rewriting it.
MOST_LAYERS: Final = 20
# Changes are appended while they have at most 1/CHANGED_PART of the state's rows.
CHANGED_PART: Final = 4


def batch_limit(engine: Engine) -> Limit:
    """The largest micro-batch that a stream handles in its own process.

    >>> batch_limit(Engine.AUTO).fits(rows=1), batch_limit(Engine.SPARK).fits(rows=0)
    (True, False)

    Args:
        engine: the setting ``streams.engine``.
    """
    return BATCH if engine is Engine.AUTO else NOTHING


def most_merged(rows: int) -> int:
    """The largest number of differing rows that are merged into a table of ``rows`` rows.

    >>> most_merged(100), most_merged(100_000)
    (10000, 50000)
    """
    return max(_ALWAYS_MERGED, round(_SHARE_MERGED * rows))


def small_file_limit(configured: int) -> int:
    """The number of small files that triggers a compaction, capped by the footers that are read.

    Args:
        configured: the number in the settings.
    """
    return configured if FOOTERS.files is None else min(configured, FOOTERS.files)


def state_is_appended(*, rows: int, layers: int | None, changed: int | None) -> bool:
    """Whether a change is appended to aggregate state and does not rewrite it.

    Args:
        rows: rows of the state.
        layers: appends since the last rewrite; None if unknown.
        changed: changed input rows; None if unknown.
    """
    if layers is None or layers >= MOST_LAYERS or changed is None:
        return False
    return not STATE.fits(rows=rows) and rows > CHANGED_PART * changed
