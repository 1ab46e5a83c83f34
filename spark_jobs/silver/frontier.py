"""Where one silver table stands against the commit position at which it is to be cut.

Several tables of one database show the same transactions only at versions that end at the same
commit. So all of them aim at one position: a batch that goes beyond it is applied in two parts,
and the version between the two is the one to read. See ADR 31.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.names import TableVersion
from spark_jobs.silver.parse.sequence import POSITION_DIGITS
from spark_jobs.silver.parse.shapes import COMMIT
from spark_jobs.silver.parse.typed import SEQUENCE
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.log import highest, size
from spark_jobs.storage.reader import read_columns

# Of batches that take long: another position may be aimed at before one of them has ended.
CUTS_KEPT = 8


@dataclass(frozen=True)
class Cut:
    """A version that has the changes of a table up to a position, and none after it.

    Attributes:
        batch_id: the batch that was cut there.
    """

    position: int
    version: TableVersion
    batch_id: int


@dataclass
class TableFrontier:
    """One table's place; shared by the stream that writes it and the thread that aims.

    Attributes:
        target: the position to stop at; None while nobody needs one.
        reached: the newest position of which the table has a change; None while unknown.
        cuts: where the table was cut, the newest last.
        batch: held while a batch is applied.
        still: held for the moment in which a batch says how far it goes, or tables are aimed, so
            that no batch goes beyond a position at which it was aimed meanwhile.
    """

    target: int | None = None
    reached: int | None = None
    cuts: deque[Cut] = field(default_factory=lambda: deque(maxlen=CUTS_KEPT))
    batch: threading.Lock = field(default_factory=threading.Lock)
    still: threading.Lock = field(default_factory=threading.Lock)

    def aim(self, position: int | None) -> None:
        """Stop at a position from the next batch on; whoever aims holds ``still``."""
        self.target = position
        if position is None:
            self.reached = None

    def advance(self, highest: int, known: Callable[[], int]) -> tuple[int, int | None]:
        """Say how far a batch goes, before anything of it is written.

        Args:
            highest: the newest position in the batch.
            known: how far the table had come, where that is not known yet.

        Returns:
            how far the table had come, and the position at which it is to stop.
        """
        with self.still:
            before = self.reached if self.reached is not None else known()
            self.reached = max(before, highest)
            return before, self.target

    @contextmanager
    def quiet(self) -> Iterator[bool]:
        """Hold the table between two batches; yields whether it is between two."""
        held = self.batch.acquire(blocking=False)
        try:
            yield held
        finally:
            if held:
                self.batch.release()

    def passed(self, position: int) -> bool:
        """Whether the table has changes from after a position."""
        return self.reached is None or self.reached >= position


@dataclass(frozen=True)
class Frontiers:
    """The place of each silver table, by its name; it is there as soon as somebody asks."""

    tables: dict[str, TableFrontier] = field(default_factory=dict)

    def of(self, name: str) -> TableFrontier:
        """A table's place."""
        return self.tables.setdefault(name, TableFrontier())


def position() -> Column:
    """The commit position of a row of a batch: the end of the transaction before its own.

    A change is part of what was committed up to a position where its own is lower.
    """
    return sf.substring(sf.col(COMMIT), 1, POSITION_DIGITS).try_cast("bigint")


def positions_of(rows: DataFrame) -> tuple[int, int] | None:
    """The lowest and the highest position of a batch; None where no row has one."""
    [(low, high)] = rows.agg(sf.min(position()), sf.max(position())).collect()
    return None if low is None else (low, high)


def reached_by(tables: SilverTables) -> int:
    """The newest position of which a table, or what it remembers beside its rows, has a change.

    The log tells it where its files have statistics; otherwise one column is read.
    """
    declared = tables.entry.sequence_by is not None
    places = [place for place in tables.places if place != tables.quarantine]
    found = [_highest(place, declared=declared) for place in places if size(place).files]
    return max(found, default=0)


def _highest(place: str, *, declared: bool) -> int:
    # A declared order comes before the commit's.
    start = POSITION_DIGITS + 1 if declared else 0
    told = None if declared else highest(place, SEQUENCE)
    if told is not None:
        return int(told[:POSITION_DIGITS])
    column = read_columns(place, [SEQUENCE]).column(SEQUENCE)
    cut = pc.utf8_slice_codeunits(column, start, start + POSITION_DIGITS)
    newest = pc.max(cut.cast(pa.int64())).as_py()
    return 0 if newest is None else int(newest)
