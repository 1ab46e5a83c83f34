"""Checks new sources against their database, before the first step of an apply."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from psycopg import sql

from spark_jobs.access import timeouts
from spark_jobs.access.source_tables import describe_table
from spark_jobs.access.sql_names import sql_name
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.deploy.errors import SourceUnreadableError
from spark_jobs.errors import LakehouseError, Location, first_line
from spark_jobs.graph.manifest import Manifest, SourceEntry
from spark_jobs.serving.source_dsn import source_dsn
from spark_jobs.settings import Settings
from spark_jobs.stack.errors import SourceKeyError, SourceTableMissingError
from spark_jobs.stack.postgres import PUBLICATION

# Rows are counted up to this number; beyond it the database's estimate is used.
COUNTED = 100_000


def new_source_facts(
    settings: Settings, before: Manifest, after: Manifest
) -> tuple[list[LakehouseError], dict[str, int]]:
    """Problems of capturing new Debezium sources, and the row counts of their tables.

    Returns:
        the problems, and row counts by source; unknown ones are missing.
    """
    fresh = [
        source
        for name, source in sorted(after.sources.items())
        if source.format is SourceFormat.DEBEZIUM and name not in before.sources
    ]
    address = source_dsn(settings) if fresh else None
    if address is None:
        return [], {}
    problems: list[LakehouseError] = []
    rows: dict[str, int] = {}
    try:
        with psycopg.connect(address, **timeouts.POSTGRES, autocommit=True) as connection:
            for source in fresh:
                try:
                    found = list(_problems(connection, source))
                    if not found and source.table:
                        rows[source.name] = _rows(connection, source.table)
                except psycopg.errors.InsufficientPrivilege as error:
                    found = [_closed(source, str(connection.info.user), error)]
                problems += found
    except psycopg.OperationalError as error:
        said = str(error).strip().splitlines()[-1]
        remedy = "Start it, or set source_database; `tidemark stack up` starts the local one."
        problems += [
            _unreadable(one, f"is in a database that does not answer: {said}", remedy)
            for one in fresh
        ]
    return problems, rows


def _problems(connection: psycopg.Connection, source: SourceEntry) -> Iterator[LakehouseError]:
    if source.table is None:
        return
    table = describe_table(connection, source.table)
    if table is None:
        yield SourceTableMissingError(source.file, source.table)
        return
    if set(table.key) != set(source.keys):
        yield SourceKeyError(source.file, source.table, source.keys, table.key)
    schema, _, name = source.table.rpartition(".")
    readable = connection.execute(
        "SELECT has_table_privilege(%s::regclass, 'SELECT'), current_user",
        [_quoted(connection, source.table)],
    ).fetchone()
    if readable is not None and not readable[0]:
        grant = f"GRANT SELECT ON {sql_name(source.table)} TO {sql_name(str(readable[1]))};"
        problem = f"may not be read by role {readable[1]!r}: table {source.table}"
        yield _unreadable(source, problem, f"Run in the source database: {grant}")
    published = connection.execute(
        "SELECT 1 FROM pg_publication_tables "
        "WHERE pubname = %s AND schemaname = %s AND tablename = %s",
        [PUBLICATION, schema or "public", name],
    ).fetchone()
    if published is None:
        added = f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {sql_name(source.table)};"
        remedy = f"Run in the source database: {added}"
        problem = f"is not in publication {PUBLICATION!r}: table {source.table}"
        yield _unreadable(source, problem, remedy)


def _closed(source: SourceEntry, role: str, error: psycopg.Error) -> SourceUnreadableError:
    """The schema of a table, in which the role may not look anything up."""
    table, to = sql_name(source.table or ""), sql_name(role)
    schema = table.rpartition(".")[0] or "public"
    grants = f"GRANT USAGE ON SCHEMA {schema} TO {to}; GRANT SELECT ON {table} TO {to};"
    problem = f"may not be read by role {role!r}: {first_line(str(error))}"
    return _unreadable(source, problem, f"Run in the source database: {grants}")


def _rows(connection: psycopg.Connection, table: str) -> int:
    name = sql.Identifier(*table.split("."))
    query = sql.SQL("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {}) AS found")
    counted = connection.execute(query.format(name, sql.Literal(COUNTED))).fetchone()
    number = int(counted[0]) if counted else 0
    if number < COUNTED:
        return number
    guess = connection.execute(
        "SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [_quoted(connection, table)]
    ).fetchone()
    return max(number, int(guess[0]) if guess else 0)


def _quoted(connection: psycopg.Connection, table: str) -> str:
    return sql.Identifier(*table.split(".")).as_string(connection)


def _unreadable(source: SourceEntry, problem: str, remedy: str) -> SourceUnreadableError:
    return SourceUnreadableError(source.name, problem, remedy, location=Location(source.file))
