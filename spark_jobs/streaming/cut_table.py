"""One silver table as it is aimed at commit positions: which version shows a position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spark_jobs.names import TableName, TableVersion
from spark_jobs.silver.check.progress import applied_version
from spark_jobs.silver.frontier import Cut, TableFrontier, reached_by
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.checkpoints import BatchOffsets, last_committed, last_planned, planned
from spark_jobs.storage.history import changes_between
from spark_jobs.storage.log import size, table_version
from spark_jobs.storage.watch import LogWatch


@dataclass(frozen=True)
class Places:
    """Where one table's stream reads and writes.

    Attributes:
        topic: of the table's source.
        bronze: where the bronze table lies.
        bronze_checkpoint: tells where the checkpoint of the bronze table's query lies.
        silver_checkpoint: tells where that of the table's own query lies.
        app: tells the application id of the table's writes.
        recorded: whether a batch of the table has ended.
    """

    tables: SilverTables
    topic: str
    bronze: str
    bronze_checkpoint: Callable[[], str]
    silver_checkpoint: Callable[[], str]
    app: Callable[[], str]
    recorded: Callable[[int], bool]


@dataclass
class CutTable:
    """A silver table that views read together with others of its database."""

    places: Places
    frontier: TableFrontier
    _landed: TableVersion | None = None
    _watch: LogWatch = field(default_factory=LogWatch)
    _quiet: tuple[TableVersion | None, ...] | None = None

    @property
    def name(self) -> TableName:
        return self.places.tables.entry.table_name

    @property
    def topic(self) -> str:
        return self.places.topic

    def aim(self, position: int | None) -> None:
        """Cut the table at a position; None: apply its batches as they come.

        Whoever aims holds ``frontier.still``.
        """
        self._landed = self._quiet = None
        self.frontier.aim(position)

    def passed(self, position: int) -> bool:
        """Whether the table is known to have changes from after a position."""
        return self.frontier.reached is not None and self.frontier.passed(position)

    def at_work(self) -> bool:
        """Whether a batch is being applied."""
        return self.frontier.batch.locked()

    def missed(self, position: int) -> bool:
        """Whether no version of the table can show a position any more."""
        # A batch says how far it goes before it is cut.
        if self.at_work() or not self.passed(position):
            return False
        return all(cut.position != position for cut in self.cuts())

    def cuts(self) -> list[Cut]:
        """Where batches were cut lately; each shows its position, if it is ``complete``."""
        return list(self.frontier.cuts)

    def complete(self, cut: Cut, ends: Mapping[int, int]) -> bool:
        """Whether a batch that was cut had all changes up to there.

        A partition holds its changes in the order of commits: one from after the position says
        that all of before are there. Of several partitions each would have to say so.

        Args:
            cut: one of ``cuts``.
            ends: of the topic's partitions, when the position was aimed at.
        """
        if len(ends) <= 1:
            return True
        if not self._has_landed(ends) or self._landed is None:
            return False
        batch = planned(self.places.silver_checkpoint(), cut.batch_id)
        # All versions of bronze before the one that the batch ends in.
        return batch is not None and batch.offsets["reservoirVersion"] > self._landed.version

    def version_at(self, position: int, ends: Mapping[int, int]) -> TableVersion | None:
        """The version of a quiet table that has every change up to a position, and none after it.

        Args:
            position: that the table was aimed at last.
            ends: of its topic's partitions; what comes before them holds all of those changes.

        Returns:
            None where changes are still to come, or some from after the position are there.
        """
        if not self._has_landed(ends):
            return None
        found = (self._watch.version(self.places.tables.table), self._landed)
        if self._quiet == found:
            return found[0]
        with self.frontier.quiet() as quiet:
            version = self._settled(position) if quiet else None
        self._quiet = None if version is None else (version, self._landed)
        return version

    def read_next(self) -> dict[int, int]:
        """The offset after the last that bronze has, or reads in the batch at work."""
        checkpoint = self.places.bronze_checkpoint()
        newest = last_planned(checkpoint)
        return self._offsets(None if newest is None else planned(checkpoint, newest))

    def _has_landed(self, ends: Mapping[int, int]) -> bool:
        """Whether bronze has every record before the ends; its version is kept then."""
        if self._landed is None:
            read = self._offsets(last_committed(self.places.bronze_checkpoint()))
            if all(read.get(one, 0) >= end for one, end in ends.items()):
                self._landed = table_version(self.places.bronze)
        return self._landed is not None

    def _offsets(self, batch: BatchOffsets | None) -> dict[int, int]:
        read = {} if batch is None else batch.offsets.get(self.places.topic, {})
        return {int(partition): int(offset) for partition, offset in read.items()}

    def _settled(self, position: int) -> TableVersion | None:
        """The newest version, where the table has taken up what landed, and nothing later."""
        places = self.places
        applied = applied_version(
            places.tables, places.silver_checkpoint(), app_id=places.app(), recorded=places.recorded
        )
        if applied is None or self._landed is None or self._unapplied(applied, self._landed):
            return None
        if self.frontier.reached is None:
            self.frontier.reached = reached_by(places.tables)
        if self.frontier.passed(position):
            return None
        return table_version(places.tables.table)

    def _unapplied(self, applied: int, landed: TableVersion) -> bool:
        """Whether bronze has records that the table did not take up; -1: it took up none."""
        if applied < 0:
            return bool(size(self.places.bronze, landed.version).files)
        if applied >= landed.version:
            return False
        # A compaction brings no records, and no batch follows it.
        return changes_between(self.places.bronze, after=applied, upto=landed.version).rows_changed
