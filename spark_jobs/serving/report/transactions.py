"""Up to which commit the tables of each source database show whole transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from spark_jobs.access.source_log import place
from spark_jobs.gold.refresh.transactional import followed
from spark_jobs.graph.databases import transactional_tables
from spark_jobs.serving.report.status_tables import ago

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.frontiers import TableAtFrontier

# A table may need a few batches to reach a position, and may skip some.
BEHIND_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class DatabaseStatus:
    """The frontier of a source database.

    Attributes:
        position: log position of the newest commit that all tables have; None: there is none.
        at: when the last table reached it.
        behind: tables that lag behind, with the time of their last position; None if they never had
            one.
    """

    database: str
    position: int | None
    at: datetime | None
    behind: Mapping[str, datetime | None]

    def line(self, *, now: datetime) -> str:
        """The status as a sentence."""
        if self.position is None or self.at is None:
            first = f"Database {self.database}: no commit is in all tables yet"
        else:
            upto, told = place(self.position), ago(self.at, now=now)
            first = f"Database {self.database}: whole transactions up to {upto}, {told}"
        late = ", ".join(
            f"{table} ({'never' if at is None else ago(at, now=now)})"
            for table, at in self.behind.items()
        )
        return f"{first}; behind: {late}." if late else f"{first}."

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, with times in ISO 8601."""
        return {
            "database": self.database,
            "position": self.position,
            "at": None if self.at is None else self.at.isoformat(),
            "behind": {
                table: None if at is None else at.isoformat() for table, at in self.behind.items()
            },
        }


def database_statuses(project: OpenProject, *, now: datetime) -> Iterator[DatabaseStatus]:
    """The status of each database whose tables the streaming application writes."""
    for name, entries in transactional_tables(project.manifest).items():
        notes = project.store.frontiers(name)
        if not notes and followed(project.store, [one.table_name for one in entries]):
            yield DatabaseStatus(name, None, None, {})
        elif notes:
            yield _status(name, [str(one.table_name) for one in entries], notes, now)


def _status(
    database: str, tables: list[str], notes: list[TableAtFrontier], now: datetime
) -> DatabaseStatus:
    reached: dict[str, TableAtFrontier] = {}
    at_position: dict[int, list[TableAtFrontier]] = {}
    for note in notes:
        reached.setdefault(str(note.table), note)
        at_position.setdefault(note.position, []).append(note)
    common = [
        position
        for position, found in at_position.items()
        if {str(one.table) for one in found} >= set(tables)
    ]
    position = max(common, default=None)
    newest, first = notes[0].position, min(one.at for one in notes)
    behind = {}
    for table in tables:
        last = reached.get(table)
        waits = last is None or last.position < newest
        if waits and now - (last.at if last else first) > BEHIND_AFTER:
            behind[table] = last.at if last else None
    at = None if position is None else max(one.at for one in at_position[position])
    return DatabaseStatus(database, position, at, behind)
