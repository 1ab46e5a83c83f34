"""The commit position at which the batches of a silver table are cut.

Tables of one database show the same transactions only at versions that end at the same commit. So
all of them are given the same target positions. A batch that goes beyond one is applied in two
parts, and readers use the version in between. See ADR 31 and ADR 55.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.names import TableVersion
from spark_jobs.silver.parse.sequence import COMMIT_LENGTH, POSITION_DIGITS, parts
from spark_jobs.silver.parse.shapes import COMMIT
from spark_jobs.silver.parse.typed import EARLY, SEQUENCE
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.frontiers import AfterSnapshot
from spark_jobs.storage.log import highest, size
from spark_jobs.storage.reader import read_columns

# A batch that begins beyond several targets makes as many cuts.
CUTS_KEPT = 32


class Target(NamedTuple):
    """A position at which the tables of a database are to be cut.

    Attributes:
        weight: the largest power of two that divides the target's number. Of several targets in a
            batch, the one with the highest weight is used. So a table whose batches have at most n
            targets is cut at every target of weight n or more, whatever the batches of others have.
    """

    position: int
    weight: int


@dataclass(frozen=True)
class Cut:
    """A table version with all changes up to a position, and none after it.

    Attributes:
        batch_id: the batch that was cut there.
    """

    position: int
    version: TableVersion
    batch_id: int


@dataclass
class TableFrontier:
    """Target and progress of one table; shared by its stream and the thread that sets targets.

    Attributes:
        targets: where to cut, by position; none: no cut is needed.
        reached: newest position of a change in the table; None while unknown.
        cuts: cuts of the table, newest last.
        early: whether it may show changes of the first transaction after a snapshot that sort at
            the snapshot, so that it shows no position right after one.
        batch: lock, held while a batch is applied.
        still: lock, held briefly while a batch announces its positions or targets are set. So no
            batch passes a target that was set meanwhile.
    """

    targets: tuple[Target, ...] = ()
    reached: int | None = None
    cuts: deque[Cut] = field(default_factory=lambda: deque(maxlen=CUTS_KEPT))
    early: bool = False
    batch: threading.Lock = field(default_factory=threading.Lock)
    still: threading.Lock = field(default_factory=threading.Lock)

    def aim(self, targets: tuple[Target, ...]) -> None:
        """Cut at these positions from the next batch on; the caller holds ``still``."""
        self.targets = targets
        if not targets:
            self.reached = None
        elif not isinstance(targets[-1].position, AfterSnapshot):
            # The first transaction has ended by this target.
            self.early = False

    def advance(self, highest: int, known: Callable[[], int]) -> list[Target]:
        """Announce the positions of a batch, before it writes anything.

        Args:
            highest: the newest position in the batch.
            known: computes the table's newest position, if unknown.

        Returns:
            the targets that the batch passes.
        """
        with self.still:
            before = self.reached if self.reached is not None else known()
            self.reached = max(before, highest)
            return [one for one in self.targets if before < one.position <= highest]

    @contextmanager
    def quiet(self) -> Iterator[bool]:
        """Try to hold the table between two batches; yields whether it succeeded."""
        held = self.batch.acquire(blocking=False)
        try:
            yield held
        finally:
            if held:
                self.batch.release()

    def passed(self, position: int) -> bool:
        """Whether the table has changes after a position."""
        before = self.early and isinstance(position, AfterSnapshot)
        return before or self.reached is None or self.reached >= position


@dataclass(frozen=True)
class Frontiers:
    """The frontier of each silver table by name, created on first use."""

    tables: dict[str, TableFrontier] = field(default_factory=dict)

    def of(self, name: str) -> TableFrontier:
        """A table's frontier."""
        return self.tables.setdefault(name, TableFrontier())


def position() -> Column:
    """The commit position of a row: the end of the transaction before its own.

    A change is committed by a position if its own position is lower.
    """
    transaction, *_ = parts(sf.col(COMMIT))
    return transaction.try_cast("bigint")


def behind_targets(rows: DataFrame, targets: Sequence[Target]) -> DataFrame:
    """A batch whose early changes are committed after the snapshots that views are to show.

    Those that sort behind a snapshot already stay there: see ``apply.early_changes``. In a
    partition without rows of the snapshot the others sort at it, which has no other effect.

    Args:
        rows: the batch, as ``silver_rows`` returns it.
        targets: positions at which it may be cut.
    """
    for one in targets:
        if isinstance(one.position, AfterSnapshot):
            late = sf.col(EARLY) & (position() < one.position)
            moved = sf.when(late, _at(sf.col(COMMIT), one.position))
            rows = rows.withColumn(COMMIT, sf.coalesce(moved, COMMIT))
    return rows


def _at(sequence: Column, place: int) -> Column:
    declared = sf.left(sequence, sf.length(sequence) - COMMIT_LENGTH)
    rest = sf.right(sequence, sf.lit(COMMIT_LENGTH - POSITION_DIGITS))
    return sf.concat(declared, sf.lit(f"{place:0{POSITION_DIGITS}}"), rest)


class Positions(NamedTuple):
    """Lowest and highest commit position of a batch, and whether it has changes to be moved."""

    lowest: int
    highest: int
    early: bool


def positions_of(rows: DataFrame) -> Positions | None:
    """The positions of a batch; None if no row has one.

    Args:
        rows: the batch, as ``silver_rows`` returns it.
    """
    found = sf.min(position()), sf.max(position()), sf.bool_or(EARLY)
    [(low, high, early)] = rows.agg(*found).collect()
    return None if low is None else Positions(low, high, bool(early))


def reached_by(tables: SilverTables) -> int:
    """The newest position of a change in a table or its helper tables.

    It comes from the log's statistics; without them, one column is read.

    Raises:
        TableMissingError: one of them does not exist.
    """
    declared = tables.entry.sequence_by is not None
    places = [place for place in tables.places if place != tables.quarantine]
    found = [_highest(place, declared=declared) for place in places if size(place).files]
    return max(found, default=0)


def _highest(place: str, *, declared: bool) -> int:
    # A declared sequence column precedes the commit position in the text.
    start = POSITION_DIGITS + 1 if declared else 0
    told = None if declared else highest(place, SEQUENCE)
    if told is not None:
        return int(told[:POSITION_DIGITS])
    column = read_columns(place, [SEQUENCE]).column(SEQUENCE)
    cut = pc.utf8_slice_codeunits(column, start, start + POSITION_DIGITS)
    newest = pc.max(cut.cast(pa.int64())).as_py()
    return 0 if newest is None else int(newest)
