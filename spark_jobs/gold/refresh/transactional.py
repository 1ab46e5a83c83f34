"""Chooses input versions so that a view shows whole transactions of a source database."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby, islice
from operator import attrgetter

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.graph.databases import transactional_inputs, transactional_tables
from spark_jobs.names import Layer, TableName, TableVersion
from spark_jobs.planning.decision import Reason, ReasonCode
from spark_jobs.state.frontiers import TableAtFrontier
from spark_jobs.state.progress import StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log

POLL_SECONDS = 0.25
# The streaming application writes a heartbeat every three seconds.
HEARTBEAT_TIMEOUT = timedelta(seconds=15)

Versions = Mapping[TableName, TableVersion]
_Inputs = Mapping[str, tuple[TableName, ...]]


def transactional_versions(
    context: GoldContext, view: str, newest: Versions
) -> tuple[dict[TableName, TableVersion], Reason | None]:
    """The versions of a view's tables at the newest commit that all tables of a database have.

    Args:
        context: settings, manifest and locations of the project.
        view: the gold view.
        newest: upper bound of the version of each table.

    Returns:
        the versions of tables with a recorded commit; and the reason why the view must wait: tables
            of one database, which a streaming application writes, have no commit in common yet.
            None: it need not wait.
    """
    found: dict[TableName, TableVersion] = {}
    for name, tables in transactional_inputs(context.manifest, view).items():
        if not all(table in newest for table in tables):
            # It waits for a table that is not there.
            continue
        notes = context.store.frontiers(name)
        versions = next(_in_common(notes, tables, newest), None)
        if versions is not None:
            found |= versions
        elif notes:
            return found, _waits(name, tables, notes)
        elif followed(context.store, tables):
            return found, _waits_for_first(name)
    return found, None


def followed(store: ControlStore, tables: Iterable[TableName]) -> bool:
    """Whether a streaming application writes any of the tables, and so records their commits."""
    queries = {str(table) for table in tables}
    return any(row.query in queries for row in store.progress())


def transactional_pins(context: GoldContext, newest: Versions) -> dict[TableName, TableVersion]:
    """The versions for all views of a tick, at the newest commit that every table has reached.

    A table that lags behind keeps its given version; the views that read it use an older commit.

    Args:
        context: settings, manifest and locations of the project.
        newest: the newest version of each table.

    Returns:
        a version of each table in ``newest``.
    """
    found = dict(newest)
    for name, entries in transactional_tables(context.manifest).items():
        tables = [one.table_name for one in entries if one.table_name in newest]
        last_two = list(islice(_by_position(context.store.frontiers(name), newest), 2))
        # Use the newest position if all tables have it, otherwise the one before.
        there = [one for one in last_two[:1] if all(table in one for table in tables)]
        for versions in there or last_two[-1:]:
            found |= {table: versions[table] for table in tables if table in versions}
    return found


def await_transactions(context: GoldContext, view: str) -> None:
    """Wait until whole transactions cover the current table versions, before a tick pins them.

    So a user who saw a row in a table and then starts a refresh finds it in the view. It does not
    wait for a streaming application that is not running.
    """
    inputs = transactional_inputs(context.manifest, view)
    began = _versions_now(context, inputs)
    deadline = time.monotonic() + context.settings.gold.transaction_wait_seconds
    while not _covered(context, inputs, began) and _streams_run(context):
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS)


def _covered(context: GoldContext, inputs: _Inputs, began: Versions) -> bool:
    """Whether the newest commit that all tables have is not older than ``began``."""
    now = _versions_now(context, inputs)
    for name, tables in inputs.items():
        there = [table for table in tables if table in began]
        notes = context.store.frontiers(name)
        if not notes and not followed(context.store, there):
            continue
        versions = next(_in_common(notes, there, now), None)
        if versions is None or any(versions[one].version < began[one].version for one in there):
            return False
    return True


def _versions_now(context: GoldContext, inputs: _Inputs) -> dict[TableName, TableVersion]:
    tables = [table for found in inputs.values() for table in found]
    found = {table: log.table_version(context.locations.of(table)) for table in tables}
    return {table: version for table, version in found.items() if version is not None}


def _streams_run(context: GoldContext) -> bool:
    now = utc_now()
    return any(
        row.query.startswith(f"{Layer.SILVER}.")
        and row.state is StreamState.RUNNING
        and row.heard(now=now, within=HEARTBEAT_TIMEOUT)
        for row in context.store.progress()
    )


def _in_common(
    notes: Iterable[TableAtFrontier], tables: Sequence[TableName], newest: Versions
) -> Iterator[dict[TableName, TableVersion]]:
    """The versions at each position that all given tables have, newest position first."""
    for versions in _by_position(notes, newest):
        if tables and all(table in versions for table in tables):
            yield {table: versions[table] for table in tables}


def _by_position(
    notes: Iterable[TableAtFrontier], newest: Versions
) -> Iterator[dict[TableName, TableVersion]]:
    for _, group in groupby(notes, key=attrgetter("position")):
        yield {one.table: one.version for one in group if _readable(one, newest.get(one.table))}


def _readable(note: TableAtFrontier, newest: TableVersion | None) -> bool:
    return (
        newest is not None
        and note.version.table_id == newest.table_id
        and note.version.version <= newest.version
    )


def _waits_for_first(database: str) -> Reason:
    text = (
        f"no commit of database {database} is in any table yet: its first snapshot is being read, "
        "or the streams cannot read the topic kafka_connect.offsets_topic"
    )
    return Reason(ReasonCode.WAITS_FOR_TRANSACTION, text)


def _waits(database: str, tables: Sequence[TableName], notes: list[TableAtFrontier]) -> Reason:
    last = {
        table: max((n.position for n in notes if n.table == table), default=0) for table in tables
    }
    behind = min(last, key=lambda table: last[table])
    text = (
        f"no commit of database {database} is in all of {', '.join(map(str, tables))} yet; "
        f"{behind} is behind"
    )
    return Reason(ReasonCode.WAITS_FOR_TRANSACTION, text)
