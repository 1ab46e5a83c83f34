"""The rows of a source table as text: numbers that are none, in the connector's words."""

from __future__ import annotations

from pathlib import Path

import psycopg

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Column, SourceEntry
from spark_jobs.silver.source_database import read_table

VALUES = "(1, 'NaN', 'NaN', 'NaN'), (2, '-Infinity', 'NAN', '-Infinity'), (3, 1.50, NULL, NULL)"


def test_only_numbers_that_are_sent_as_text_have_the_connectors_words(
    postgres_socket: Path,
) -> None:
    dsn = f"host={postgres_socket} user=tidemark dbname=postgres"
    types = {"id": "bigint", "amount": "string", "name": "string", "ratio": "double"}
    source = SourceEntry(
        name="specials",
        format=SourceFormat.DEBEZIUM,
        topic="x.public.specials",
        table="public.specials",
        keys=("id",),
        file="sources/specials.yml",
        columns=tuple(Column(name=name, type=kind) for name, kind in types.items()),
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE specials (id BIGINT, amount NUMERIC, name TEXT, ratio NUMERIC)"
        )
        try:
            connection.execute(f"INSERT INTO specials VALUES {VALUES}".encode())
            assert sorted(read_table(dsn, source)) == [
                ("1", "NAN", "NaN", "NaN"),
                ("2", "NEGATIVE_INFINITY", "NAN", "-Infinity"),
                ("3", "1.50", None, None),
            ]
        finally:
            connection.execute("DROP TABLE specials")
