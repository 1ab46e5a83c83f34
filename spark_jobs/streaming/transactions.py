"""Records the versions at which silver tables of a database show the same transactions.

A thread of the streaming application gives all tables of a database a target: its newest commit of
which all changes are in Kafka. It records the version of each table that has exactly the changes up
to it, and sets a new target when all tables have one. A table that lags behind keeps its earlier
targets too. Gold views read the newest position that all of their tables have. See ADR 31 and
ADR 55.
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
from spark_jobs.silver.frontier import Target
from spark_jobs.state.frontiers import TableAtFrontier
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.streaming.cut_table import CutTable

# A table that has not reached the target by then is late: only views that read it wait.
PATIENCE_SECONDS = 30.0
# Targets kept of each weight: the newest ones.
TARGETS_KEPT = 8
# If no position is within what all tables read next, choose one that they reach later.
WAIT_SECONDS = 5.0
KEPT = 60

# The offset of the next record, by topic and partition.
Ends = Mapping[str, Mapping[int, int]]


@dataclass
class Round:
    """A target position of a database's tables.

    Attributes:
        number: counts the targets of a database, from 1.
        ends: end offsets of the tables' topics; all changes up to the position are before them.
        noted: the version of each table that has reached it.
        missed: tables that have passed it.
    """

    position: int
    number: int
    ends: Ends
    began: float
    noted: dict[TableName, TableVersion] = field(default_factory=dict)
    missed: set[TableName] = field(default_factory=set)

    @property
    def target(self) -> Target:
        """The position with the largest power of two that divides the number."""
        return Target(self.position, self.number & -self.number)


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
    # By position, newest last: a late table is still cut at earlier ones.
    _rounds: dict[int, Round] = field(default_factory=dict)
    _late: set[TableName] = field(default_factory=set)
    # Positions seen since the last target, oldest first, with the end offsets at that time: all
    # changes up to a position are before these ends.
    _seen: list[tuple[int, Ends]] = field(default_factory=list)
    # Since when the next target may be set.
    _free_since: float | None = None

    @property
    def positions(self) -> set[int]:
        """Positions that tables may still be cut at."""
        return set(self._rounds)

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
            self._late |= {one.name for one in waiting}
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
            number = 1 if self.round is None else self.round.number + 1
            self.round = self._rounds[position] = Round(position, number, ends, now)
            self._rounds = {one.position: one for one in _kept(list(self._rounds.values()))}
            for table in self.tables:
                table.aim(self._targets(table))
        self._free_since = None

    def _targets(self, table: CutTable) -> tuple[Target, ...]:
        """The targets that a table has not reached; the newest is one of them."""
        return tuple(
            one.target
            for one in self._rounds.values()
            if table.name not in one.noted and not table.passed(one.position)
        )

    def _passed(self, position: int) -> bool:
        """Whether any table has passed a position, so that it is useless as a target."""
        return any(table.passed(position) for table in self.tables)

    def _cut(self) -> Iterator[Shown]:
        """Versions at which batches were cut, at this position or an earlier one."""
        for table in self.tables:
            self._note_landed(table)
            for cut in table.cuts():
                aimed = self._rounds.get(cut.position)
                if aimed is None or table.name in aimed.noted:
                    continue
                if table.complete(cut, aimed.ends.get(table.topic, {})):
                    yield self._noted(aimed, table, cut.version)

    def _note_landed(self, table: CutTable) -> None:
        """Note when bronze has all changes up to positions that the table has not reached."""
        for one in self._rounds.values():
            ends = one.ends.get(table.topic, {})
            # A cut of one partition is complete anyway.
            wanted = len(ends) > 1 and table.name not in one.noted
            if wanted and table.landed_by(one.position, ends) is None:
                return

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


def _kept(rounds: list[Round]) -> list[Round]:
    """The newest of each weight, oldest first: the number grows as the logarithm of their count.

    Args:
        rounds: newest last.
    """
    last = rounds[-1].number

    def later(one: Round) -> int:
        weight = one.target.weight
        return last // weight - one.number // weight

    return [one for one in rounds if later(one) < TARGETS_KEPT]


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
        aimed: set[int] = set()
        for name, database in self.databases.items():
            found = database.look(positions.get(name), self.ends, now=self.clock())
            notes += [TableAtFrontier(name, *shown, utc_now()) for shown in found]
            aimed |= database.positions
        if notes:
            self.store.note_frontiers(notes, keep=aimed)
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
                    table.aim(())
        self._compiled = manifest
