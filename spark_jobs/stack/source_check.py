"""Checks the declared sources against their database: tables exist and keys identify rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psycopg

from spark_jobs.access import timeouts
from spark_jobs.access.postgres import certificate_refusal
from spark_jobs.access.source_tables import SourceTable, describe_table
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.silver.errors import DatabaseUnreachableError
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
        DatabaseUnreachableError: the database or a table cannot be read.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    for source, name, table in _described(dsn, sources):
        if table is None:
            if missing:
                yield SourceTableMissingError(source.file, name)
        elif set(table.key) != set(source.keys):
            yield SourceKeyError(source.file, name, source.keys, table.key)


def source_warnings(dsn: str, sources: Iterable[SourceEntry]) -> Iterator[LakehouseError]:
    """Warnings of updates that would not be captured.

    Args:
        dsn: where the source database is.
        sources: those without a table are ignored.

    Raises:
        DatabaseUnreachableError: the database or a table cannot be read.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    for source, name, table in _described(dsn, sources):
        if table is not None and table.arrays_left_out:
            yield ArraysLeftOutError(source.file, name, table.arrays_left_out)


def _described(
    dsn: str, sources: Iterable[SourceEntry]
) -> Iterator[tuple[SourceEntry, str, SourceTable | None]]:
    """Each source with a table, the name of that, and what the database says of it."""
    name = ""
    try:
        with psycopg.connect(dsn, **timeouts.POSTGRES, autocommit=True) as connection:
            for source in sources:
                name = source.table or ""
                if name:
                    yield source, name, describe_table(connection, name)
    except psycopg.Error as error:
        raise certificate_refusal(dsn, error) or DatabaseUnreachableError(
            name, str(error)
        ) from error
