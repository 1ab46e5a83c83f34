"""Few rows, or Spark? Every threshold, and the one decision between this process and Spark.

Spark needs as many jobs for ten rows as for a million. So a small amount of work is done in this
process, on Arrow tables, and Spark does the rest. Who has work to do knows its amount; this module
decides where it is done, and what is cheaper: to merge rows into a table or to write it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Place(StrEnum):
    """Where rows are read, computed and written."""

    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True)
class Limit:
    """The most that is done in this process; None: that amount does not matter.

    Attributes:
        rows: how many.
        bytes: of all rows or files.
        files: how many.
    """

    rows: int | None = None
    bytes: int | None = None
    files: int | None = None

    def place(self, *, rows: int | None = 0, size: int | None = 0, files: int | None = 0) -> Place:
        """Where so much work is done; with an amount that nobody knows, by Spark.

        Args:
            rows: how many.
            size: in bytes.
            files: how many.

        >>> Limit(rows=10).place(rows=10), Limit(rows=10).place(rows=11)
        (<Place.LOCAL: 'local'>, <Place.SPARK: 'spark'>)
        >>> Limit(rows=10).place(rows=None), Limit(bytes=2**20).place(rows=10**9)
        (<Place.SPARK: 'spark'>, <Place.LOCAL: 'local'>)
        """
        amounts = ((rows, self.rows), (size, self.bytes), (files, self.files))
        fits = all(most is None or (one is not None and one <= most) for one, most in amounts)
        return Place.LOCAL if fits else Place.SPARK

    def fits(self, *, rows: int | None = 0, size: int | None = 0, files: int | None = 0) -> bool:
        """Whether so much work is done in this process; the arguments are those of ``place``."""
        return self.place(rows=rows, size=size, files=files) is Place.LOCAL


# Rows that a refresh stages, publishes or looks up.
RESULT: Final = Limit(rows=250_000)
# The result of a view that is computed to find out how many rows it has: where it is too large, it
# is computed once more, by Spark's writer.
EXPECTED_RESULT: Final = Limit(rows=125_000)
# Changed rows of the inputs. A step over so few is fetched and given back to Spark, which then
# knows its size when it plans what reads it, and plans nothing of it again.
CHANGE: Final = Limit(rows=200_000)
# A batch of a stream, which is held beside everything else that runs in its process.
BATCH: Final = Limit(rows=100_000, bytes=2**26)
# Aggregate state. Writing less of it again takes no longer than appending to it, and reading it
# takes less.
STATE: Final = Limit(rows=20_000)
# Tables whose files are rewritten or read whole: larger ones are merged on all of Spark's cores.
REWRITTEN: Final = Limit(bytes=2**28)
# Files whose footers are read: looking into more takes longer than Spark does.
FOOTERS: Final = Limit(files=32)
# Tables that are read by their files: of larger ones, what Delta's reader skips by statistics is
# worth more than its jobs cost.
SCANNED: Final = Limit(files=200, bytes=2**30)
# Change feeds that are counted while somebody waits for the answer.
COUNTED: Final = Limit(rows=2_000_000, files=500)
# Tables that Spark copies to each of its cores instead of moving their rows: it does so up to
# 10 MiB of the columns that are read, and most queries read some of them.
COPIED: Final = Limit(bytes=32 * 2**20)
# Results that are compared with the published table. For larger ones that costs more than writing
# the table again.
COMPARED: Final = Limit(bytes=2**30)

# Above this share of its rows the change feed of a table is hardly longer with all of them.
_SHARE_MERGED: Final = 0.5
# So few rows are merged in less time than Spark writes a table, however large their share.
_ALWAYS_MERGED: Final = 10_000
# Adding up so many layers of aggregate state takes less than writing it again.
MOST_LAYERS: Final = 20
# Aggregate state is appended to while what changed is at most one part in so many of it.
CHANGED_PART: Final = 4


def most_merged(rows: int) -> int:
    """How many rows of a table of so many may differ for it not to be rewritten.

    >>> most_merged(100), most_merged(100_000)
    (10000, 50000)
    """
    return max(_ALWAYS_MERGED, round(_SHARE_MERGED * rows))


def joined_at(configured: int) -> int:
    """How many small files of a table are joined: no more than can be looked into.

    Args:
        configured: how many are, by the settings.
    """
    return configured if FOOTERS.files is None else min(configured, FOOTERS.files)


def state_is_appended(*, rows: int, layers: int | None, changed: int | None) -> bool:
    """Whether a change is appended to aggregate state, which is otherwise rewritten.

    Args:
        rows: of the state.
        layers: how often it was appended to since it was rewritten; None where nobody knows.
        changed: rows of the inputs; None where nobody knows.
    """
    if layers is None or layers >= MOST_LAYERS or changed is None:
        return False
    return not STATE.fits(rows=rows) and rows > CHANGED_PART * changed
