"""Checks the declared sources against their database: tables exist and keys identify rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psycopg

from spark_jobs.access import timeouts
from spark_jobs.access.source_tables import describe_table
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.stack.errors import ArraysLeftOutError, SourceKeyError, SourceTableMissingError


def source_problems(
    dsn: str, sources: Iterable[SourceEntry], *, missing: bool
) -> Iterator[LakehouseError]:
    """Problems that prevent the correct capture of tables.

    Args:
        dsn: where the source database is.
        sources: those without a table are ignored.
        missing: whether a missing table is a problem; it may be created later.

    Raises:
        psycopg.Error: the database does not answer.
    """
    with psycopg.connect(dsn, **timeouts.POSTGRES, autocommit=True) as connection:
        for source in sources:
            if source.table is None:
                continue
            table = describe_table(connection, source.table)
            if table is None:
                if missing:
                    yield SourceTableMissingError(source.file, source.table)
            elif set(table.key) != set(source.keys):
                yield SourceKeyError(source.file, source.table, source.keys, table.key)


def source_warnings(dsn: str, sources: Iterable[SourceEntry]) -> Iterator[LakehouseError]:
    """Warnings of updates that would not be captured.

    Args:
        dsn: where the source database is.
        sources: those without a table are ignored.

    Raises:
        psycopg.Error: the database does not answer.
    """
    with psycopg.connect(dsn, **timeouts.POSTGRES, autocommit=True) as connection:
        for source in sources:
            table = describe_table(connection, source.table) if source.table else None
            if source.table and table is not None and table.arrays_left_out:
                yield ArraysLeftOutError(source.file, source.table, table.arrays_left_out)
