"""Notes at which versions the silver tables of a database show the same transactions.

One thread of the streaming application aims all of a database's tables at its newest commit of
which every change is in Kafka, notes the version of each table that has exactly the changes up to
there, and aims again when all have one. Gold views read the newest position that all of their
tables have. See ADR 31.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.databases import transactional_tables
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.frontiers import FRONTIERS_KEPT, TableAtFrontier
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.streaming.cut_table import CutTable

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
# A table that is not there by then, and at no batch, is late: it holds back the views that read it,
# and no others.
PATIENCE_SECONDS = 30.0
# The same for a table that is at a batch.
LONGEST_SECONDS = 300.0
STOP_SECONDS = 10.0
# Where no position is in what all tables read next, one that they reach later is aimed at.
WAIT_SECONDS = 5.0
KEPT = 60

# The offset that the next record gets, by topic and partition.
Ends = Mapping[str, Mapping[int, int]]


@dataclass
class Round:
    """One position that the tables of a database are aimed at.

    Attributes:
        ends: of the tables' topics; what comes before them holds every change up to the position.
        noted: the version of each table that is there.
        missed: tables that had gone beyond it.
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
    # By position, the newest last: a late table may still be cut at one of before.
    _rounds: dict[int, Round] = field(default_factory=dict)
    _late: set[TableName] = field(default_factory=set)
    # Positions that were seen since the last aim, the oldest first, with the ends that the topics
    # had then: a position comes before everything that was sent after it was stored.
    _seen: list[tuple[int, Ends]] = field(default_factory=list)
    # Since when the next position may be aimed at.
    _free_since: float | None = None

    def look(
        self, position: int | None, ends: Callable[[list[str]], Ends], *, now: float
    ) -> list[Shown]:
        """Aim where that is due; returns which versions show which position.

        Args:
            position: up to which commit all changes are in Kafka; None where that is not known.
            ends: asks Kafka for the ends of topics.
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
        """Whether the next position may be aimed at."""
        spent = now - aimed.began
        waiting = [one for one in self.tables if one.name not in aimed.noted.keys() | aimed.missed]
        if spent > PATIENCE_SECONDS:
            self._late |= {
                one.name for one in waiting if spent > LONGEST_SECONDS or not one.at_work()
            }
        if any(one.name not in self._late for one in waiting):
            return False
        # Tables that are all late would be aimed anew before any of them gets there.
        return not waiting or bool(aimed.noted) or spent > PATIENCE_SECONDS

    def _aim(self, now: float) -> None:
        """Aim all tables at a position that none has passed, where there is one."""
        self._free_since = now if self._free_since is None else self._free_since
        late = now - self._free_since > WAIT_SECONDS
        after = -1 if self.round is None else self.round.position
        if self._seen[-1][0] <= after:
            return
        # The newest that is in what every table reads next; or else the newest of all.
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
        """Whether any table has gone beyond: aiming at it would come to nothing."""
        return any(table.passed(position) for table in self.tables)

    def _cut(self) -> Iterator[Shown]:
        """Versions at which batches were cut, at this position or at one of before."""
        for table in self.tables:
            for cut in table.cuts():
                aimed = self._rounds.get(cut.position)
                if aimed is None or table.name in aimed.noted:
                    continue
                if table.complete(cut, aimed.ends.get(table.topic, {})):
                    yield self._noted(aimed, table, cut.version)

    def _quiet(self, aimed: Round) -> Iterator[Shown]:
        """Versions of tables that have all up to this position, and nothing later."""
        for table in self.tables:
            if any(cut.position == aimed.position for cut in table.cuts()):
                continue
            version = table.version_at(aimed.position, aimed.ends.get(table.topic, {}))
            if version is None:
                if table.missed(aimed.position) and table.name not in aimed.noted:
                    aimed.missed.add(table.name)
            elif aimed.noted.get(table.name) != version:
                # What is repaired at a position moves the version that shows it.
                yield self._noted(aimed, table, version)

    def _noted(self, aimed: Round, table: CutTable, version: TableVersion) -> Shown:
        aimed.noted[table.name] = version
        if aimed is self.round:
            self._late.discard(table.name)
        return Shown(aimed.position, table.name, version)


def _covered(ends: Ends, read: Ends) -> bool:
    """Whether what is read of each topic holds everything before its ends."""
    return all(
        read.get(topic, {}).get(partition, 0) >= end
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )


@dataclass
class TransactionNotes:
    """Looks at every database again and again while the streaming application runs.

    Attributes:
        positions: up to which commit all changes of each database are in Kafka.
        ends: asks Kafka for the ends of topics.
        manifest: the project as it is compiled now; a new object where it was recompiled.
        table: makes what reads and aims one table.
    """

    store: ControlStore
    positions: Callable[[], Mapping[str, int]]
    ends: Callable[[list[str]], Ends]
    manifest: Callable[[], Manifest]
    table: Callable[[Manifest, str], CutTable]
    clock: Callable[[], float] = time.monotonic
    databases: dict[str, Database] = field(default_factory=dict)
    _compiled: Manifest | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="transactions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End between two looks."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def look(self) -> int:
        """Look at every database once; returns how many versions were noted.

        Raises:
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker refuses the request.
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

    def _run(self) -> None:
        pause, before = LOOK_SECONDS, ""
        while not self._stopping.wait(pause):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - views wait, and tables go on
                said = error.primary if isinstance(error, LakehouseError) else repr(error)
                if said != before:
                    logger.warning("transactions not followed error=%s", said)
                pause, before = min(max(pause, 1.0) * 2, LONGEST_PAUSE_SECONDS), said
            else:
                pause, before = LOOK_SECONDS, ""
