"""Records the versions at which silver tables of a database show the same transactions.

A thread of the streaming application gives all tables of a database a target: its newest commit of
which all changes are in Kafka. It records the version of each table that has exactly the changes up
to it, and sets a new target when all tables have one. Gold views read the newest position that all
of their tables have. See ADR 31.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_jobs.graph.databases import transactional_tables
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.frontiers import FRONTIERS_KEPT, TableAtFrontier
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.streaming.cut_table import CutTable

# A table that has not reached the target by then, and is idle, is late: only views that read it
# wait.
PATIENCE_SECONDS = 30.0
# The same for a table in the middle of a batch.
LONGEST_SECONDS = 300.0
# If no position is within what all tables read next, choose one that they reach later.
WAIT_SECONDS = 5.0
KEPT = 60

# The offset of the next record, by topic and partition.
Ends = Mapping[str, Mapping[int, int]]


@dataclass
class Round:
    """A target position of a database's tables.

    Attributes:
        ends: end offsets of the tables' topics; all changes up to the position are before them.
        noted: the version of each table that has reached it.
        missed: tables that have passed it.
    """

    position: int
    ends: Ends
    began: float
    noted: dict[TableName, TableVersion] = field(default_factory=dict)
    missed: set[TableName] = field(default_factory=set)


class Shown(NamedTuple):
    """A version of a table that shows a position."""

    position: int
    table: TableName
    version: TableVersion


@dataclass
class Database:
    """The tables of one source database that views read together."""

    name: str
    tables: tuple[CutTable, ...]
    round: Round | None = None
    # By position, newest last: a late table may still be cut at an earlier one.
    _rounds: dict[int, Round] = field(default_factory=dict)
    _late: set[TableName] = field(default_factory=set)
    # Positions seen since the last target, oldest first, with the end offsets at that time: all
    # changes up to a position are before these ends.
    _seen: list[tuple[int, Ends]] = field(default_factory=list)
    # Since when the next target may be set.
    _free_since: float | None = None

    def look(
        self, position: int | None, ends: Callable[[list[str]], Ends], *, now: float
    ) -> list[Shown]:
        """Set a target if one is due; returns versions that show positions.

        Args:
            position: the commit up to which all changes are in Kafka; None if unknown.
            ends: queries the end offsets of topics.
            now: seconds of a monotonic clock.
        """
        if position is not None and (not self._seen or self._seen[-1][0] < position):
            self._seen = [*self._seen, (position, ends([one.topic for one in self.tables]))][-KEPT:]
        if self._seen and (self.round is None or self._over(self.round, now)):
            self._aim(now)
        if self.round is None:
            return []
        return [*self._cut(), *self._quiet(self.round)]

    def _over(self, aimed: Round, now: float) -> bool:
        """Whether the next target may be set."""
        spent = now - aimed.began
        waiting = [one for one in self.tables if one.name not in aimed.noted.keys() | aimed.missed]
        if spent > PATIENCE_SECONDS:
            self._late |= {
                one.name for one in waiting if spent > LONGEST_SECONDS or not one.at_work()
            }
        if any(one.name not in self._late for one in waiting):
            return False
        # If all tables are late, wait: otherwise none would ever reach a target.
        return not waiting or bool(aimed.noted) or spent > PATIENCE_SECONDS

    def _aim(self, now: float) -> None:
        """Set a target that no table has passed, if there is one."""
        self._free_since = now if self._free_since is None else self._free_since
        late = now - self._free_since > WAIT_SECONDS
        after = -1 if self.round is None else self.round.position
        if self._seen[-1][0] <= after:
            return
        # The newest position within what every table reads next, or else the newest of all.
        read = {table.topic: table.read_next() for table in self.tables}
        near = [one for one in self._seen if _covered(one[1], read)]
        with ExitStack() as held:
            for table in self.tables:
                held.enter_context(table.frontier.still)
            ahead = [one for one in self._seen if one[0] > after and not self._passed(one[0])]
            chosen = [one for one in ahead if one in near] or (ahead if late else [])
            if not chosen:
                return
            position, ends = chosen[-1]
            for table in self.tables:
                table.aim(position)
        self.round = self._rounds[position] = Round(position, ends, now)
        for old in list(self._rounds)[:-FRONTIERS_KEPT]:
            del self._rounds[old]
        self._free_since = None

    def _passed(self, position: int) -> bool:
        """Whether any table has passed a position, so that it is useless as a target."""
        return any(table.passed(position) for table in self.tables)

    def _cut(self) -> Iterator[Shown]:
        """Versions at which batches were cut, at this position or an earlier one."""
        for table in self.tables:
            for cut in table.cuts():
                aimed = self._rounds.get(cut.position)
                if aimed is None or table.name in aimed.noted:
                    continue
                if table.complete(cut, aimed.ends.get(table.topic, {})):
                    yield self._noted(aimed, table, cut.version)

    def _quiet(self, aimed: Round) -> Iterator[Shown]:
        """Versions of idle tables with all changes up to this position and none after it."""
        for table in self.tables:
            if any(cut.position == aimed.position for cut in table.cuts()):
                continue
            version = table.version_at(aimed.position, aimed.ends.get(table.topic, {}))
            if version is None:
                if table.missed(aimed.position) and table.name not in aimed.noted:
                    aimed.missed.add(table.name)
            elif aimed.noted.get(table.name) != version:
                # A repair at the same position creates a new version.
                yield self._noted(aimed, table, version)

    def _noted(self, aimed: Round, table: CutTable, version: TableVersion) -> Shown:
        aimed.noted[table.name] = version
        if aimed is self.round:
            self._late.discard(table.name)
        return Shown(aimed.position, table.name, version)


def _covered(ends: Ends, read: Ends) -> bool:
    """Whether the offsets that were read include everything before the ends."""
    return all(
        read.get(topic, {}).get(partition, 0) >= end
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )


@dataclass
class TransactionNotes:
    """Checks all databases; the streaming application calls ``look`` periodically.

    Attributes:
        positions: returns, by database, the commit up to which all changes are in Kafka.
        ends: queries the end offsets of topics.
        manifest: returns the current manifest; a new object after a recompilation.
        table: creates the ``CutTable`` of a table.
    """

    store: ControlStore
    positions: Callable[[], Mapping[str, int]]
    ends: Callable[[list[str]], Ends]
    manifest: Callable[[], Manifest]
    table: Callable[[Manifest, str], CutTable]
    clock: Callable[[], float] = time.monotonic
    databases: dict[str, Database] = field(default_factory=dict)
    _compiled: Manifest | None = None

    def look(self) -> int:
        """Check all databases once; returns the number of recorded versions.

        Raises:
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker rejects the request.
        """
        self._follow(self.manifest())
        if not self.databases:
            return 0
        positions, notes = self.positions(), []
        for name, database in self.databases.items():
            found = database.look(positions.get(name), self.ends, now=self.clock())
            notes += [TableAtFrontier(name, *shown, utc_now()) for shown in found]
        if notes:
            self.store.note_frontiers(notes)
        return len(notes)

    def _follow(self, manifest: Manifest) -> None:
        if manifest is self._compiled:
            return
        wanted = transactional_tables(manifest)
        before = {table.name: table for one in self.databases.values() for table in one.tables}
        self.databases = {
            name: Database(name, tuple(self.table(manifest, entry.name) for entry in entries))
            for name, entries in wanted.items()
        }
        now = {table.name for one in self.databases.values() for table in one.tables}
        for name, table in before.items():
            if name not in now:
                with table.frontier.still:
                    table.aim(None)
        self._compiled = manifest
