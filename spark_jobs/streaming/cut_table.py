"""A silver table that is cut at commit positions: which version shows a position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spark_jobs.names import TableName, TableVersion
from spark_jobs.silver.check.progress import applied_version
from spark_jobs.silver.frontier import Cut, TableFrontier, Target, reached_by
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.checkpoints import BatchOffsets, last_committed, last_planned, planned
from spark_jobs.storage.history import changes_between
from spark_jobs.storage.log import size, table_version
from spark_jobs.storage.watch import LogWatch

# More than the targets of a table.
LANDED_KEPT = 200


@dataclass(frozen=True)
class Places:
    """Locations and functions of one table's stream.

    Attributes:
        topic: the source's topic.
        bronze: location of the bronze table.
        bronze_checkpoint: returns the checkpoint of the bronze table's query.
        silver_checkpoint: returns the checkpoint of the table's own query.
        app: returns the Delta app id of the table's writes.
        recorded: whether a batch of the table has finished.
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
    # By position: the version of bronze when it had all changes up to there.
    _landed: dict[int, TableVersion] = field(default_factory=dict)
    _watch: LogWatch = field(default_factory=LogWatch)
    _quiet: tuple[TableVersion | None, ...] | None = None

    @property
    def name(self) -> TableName:
        return self.places.tables.entry.table_name

    @property
    def topic(self) -> str:
        return self.places.topic

    def aim(self, targets: tuple[Target, ...]) -> None:
        """Cut the table at positions; none: do not cut. The caller holds ``frontier.still``."""
        self._quiet = None
        self.frontier.aim(targets)

    def passed(self, position: int) -> bool:
        """Whether the table is known to have changes after a position."""
        return self.frontier.reached is not None and self.frontier.passed(position)

    def at_work(self) -> bool:
        """Whether a batch is being applied."""
        return self.frontier.batch.locked()

    def missed(self, position: int) -> bool:
        """Whether no version of the table can show a position any more."""
        # A batch announces its positions before it is cut.
        if self.at_work() or not self.passed(position):
            return False
        return all(cut.position != position for cut in self.cuts())

    def cuts(self) -> list[Cut]:
        """The latest cuts of batches; each shows its position if it is ``complete``."""
        return list(self.frontier.cuts)

    def complete(self, cut: Cut, ends: Mapping[int, int]) -> bool:
        """Whether a cut batch had all changes up to its position.

        Each partition has its changes in the order of commits. So if the batch continues after the
        cut in a partition, it has all earlier changes of that partition.

        Args:
            cut: one of ``cuts``.
            ends: end offsets of the topic's partitions when the target was set.

        Raises:
            CheckpointFormatError: another version of Spark wrote the checkpoint.
        """
        if len(ends) <= 1:
            return True
        landed = self.landed_by(cut.position, ends)
        if landed is None:
            return False
        batch = planned(self.places.silver_checkpoint(), cut.batch_id)
        # The batch covers all bronze versions before the one that it ends in.
        return batch is not None and batch.offsets["reservoirVersion"] > landed.version

    def landed_by(self, position: int, ends: Mapping[int, int]) -> TableVersion | None:
        """A version of bronze with all records before a position's ends; None: none has them yet.

        It is remembered. The earlier it is asked for, the more batches are ``complete``.
        """
        if position not in self._landed:
            read = self._offsets(last_committed(self.places.bronze_checkpoint()))
            if any(read.get(one, 0) < end for one, end in ends.items()):
                return None
            version = table_version(self.places.bronze)
            if version is None:
                return None
            self._landed[position] = version
            for old in list(self._landed)[:-LANDED_KEPT]:
                del self._landed[old]
        return self._landed[position]

    def version_at(self, position: int, ends: Mapping[int, int]) -> TableVersion | None:
        """The version of an idle table with all changes up to a position and none after it.

        Args:
            position: the newest target.
            ends: end offsets of its topic by partition; all changes up to the position are before
                them.

        Returns:
            None if changes are missing, or if later ones are included.
        """
        landed = self.landed_by(position, ends)
        if landed is None:
            return None
        found = (self._watch.version(self.places.tables.table), landed)
        if self._quiet == found:
            return found[0]
        with self.frontier.quiet() as quiet:
            version = self._settled(position, landed) if quiet else None
        self._quiet = None if version is None else (version, landed)
        return version

    def read_next(self) -> dict[int, int]:
        """The offset after the last one that bronze has, or is reading in the current batch.

        Returns:
            offsets by partition.

        Raises:
            CheckpointFormatError: another version of Spark wrote the checkpoint.
        """
        checkpoint = self.places.bronze_checkpoint()
        newest = last_planned(checkpoint)
        return self._offsets(None if newest is None else planned(checkpoint, newest))

    def _offsets(self, batch: BatchOffsets | None) -> dict[int, int]:
        read = {} if batch is None else batch.offsets.get(self.places.topic, {})
        return {int(partition): int(offset) for partition, offset in read.items()}

    def _settled(self, position: int, landed: TableVersion) -> TableVersion | None:
        """The newest version, if the table has applied all of bronze and no later position."""
        places = self.places
        applied = applied_version(
            places.tables, places.silver_checkpoint(), app_id=places.app(), recorded=places.recorded
        )
        if applied is None or self._unapplied(applied, landed):
            return None
        if self.frontier.reached is None:
            self.frontier.reached = reached_by(places.tables)
        if self.frontier.passed(position):
            return None
        return table_version(places.tables.table)

    def _unapplied(self, applied: int, landed: TableVersion) -> bool:
        """Whether bronze has records that the table has not applied; ``applied`` -1: none are."""
        if applied < 0:
            return bool(size(self.places.bronze, landed.version).files)
        if applied >= landed.version:
            return False
        # A compaction adds no records and triggers no batch.
        return changes_between(self.places.bronze, after=applied, upto=landed.version).rows_changed
