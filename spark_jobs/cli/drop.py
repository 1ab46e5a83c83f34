"""``tidemark drop``: deletes tables that are no longer declared."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.cli.approval import confirmed
from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from spark_jobs.names import TableName
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.lake import Lake


def drop(
    context: typer.Context,
    tables: Annotated[list[str], typer.Argument(help="silver.NAME, gold.NAME or bronze.NAME.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """Delete tables that were removed from the project, with their state."""
    from spark_jobs.names import Layer, TableName
    from spark_jobs.rollout.apply import only_apply
    from spark_jobs.silver.store.lock import table_guard
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.history import remove_table
    from spark_jobs.storage.lake import Lake

    settings = load_settings(context.obj)
    with ControlStore.open(settings.control_url) as store, only_apply(settings, store):
        running = store.deployment_in_force()
        kept = dict(running.kept) if running else {}
        tables = list(dict.fromkeys(tables))
        _check_droppable(tables, kept, store)
        question = f"Delete {', '.join(tables)}? This cannot be undone."
        confirmed([f"delete {table}" for table in tables], yes=yes, question=question)
        for name in map(TableName.parse, tables):
            table = str(name)
            # A batch or a refresh that began before the apply may still write it.
            with table_guard(settings, store, name):
                for location in belongings(Lake(settings.lake), name):
                    remove_table(location)
                # If the name is used again, no transaction id of the old table may be reused, and a
                # rollback of the old table may not stop the new one.
                store.bump_epoch(table, reason="dropped")
            if name.layer is Layer.GOLD:
                store.release(name.name)
            del kept[table]
            if running is not None:
                store.keep_tables(running.deployment_id, kept)
            typer.echo(f"{table} is deleted.", err=as_json)
    if as_json:
        typer.echo(json.dumps([{"table": table, "deleted": True} for table in tables], indent=2))


def _check_droppable(tables: Iterable[str], kept: Collection[str], store: ControlStore) -> None:
    """Refuse a table that is not kept, or that a stream would write again.

    Raises:
        NotKeptError: the project has the table, or never had it.
        StreamRunsError: a stream still writes it.
    """
    from spark_jobs.deploy.errors import NotKeptError, StreamRunsError
    from spark_jobs.state.types import utc_now

    streams = [one.query for one in store.progress() if one.alive(now=utc_now())]
    for table in tables:
        if table not in kept:
            raise NotKeptError(table, sorted(kept))
        if table in streams:
            raise StreamRunsError(table)


def belongings(lake: Lake, table: TableName) -> Iterator[str]:
    """Every location of a table, its own last, so that a partly deleted table is still listed."""
    from spark_jobs.names import Layer

    match table.layer:
        case Layer.BRONZE:
            yield lake.rejected_lines(table.name)
        case Layer.GOLD:
            yield lake.states(table.name)
        case Layer.SILVER:
            yield lake.quarantine(table.name)
            yield lake.releases(table.name)
            yield lake.tombstones(table.name)
            yield lake.changes(table.name)
    yield lake.checkpoints(str(table))
    yield lake.location(table)
