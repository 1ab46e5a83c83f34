"""Declared keys against a real database: what identifies rows there, and what does not."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from spark_jobs.access.source_tables import describe_table
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Column, SourceEntry
from spark_jobs.stack.errors import SourceKeyError, SourceTableMissingError
from spark_jobs.stack.source_check import source_problems

TABLES = {
    "keyed": "a INT, b TEXT, c INT, PRIMARY KEY (b, a)",
    "keyless": "a INT, b TEXT",
    "indexed": "a INT NOT NULL, b TEXT, UNIQUE (a)",
    "nullable": "a INT, b TEXT, UNIQUE (a)",
    "partial": "a INT NOT NULL, b TEXT",
}


@pytest.fixture
def dsn(postgres_socket: Path) -> str:
    address = f"host={postgres_socket} user=tidemark dbname=postgres"
    with psycopg.connect(address) as connection:
        for name, columns in TABLES.items():
            connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
            connection.execute(f"CREATE TABLE {name} ({columns})".encode())
        connection.execute("CREATE UNIQUE INDEX ON partial (a) WHERE b IS NULL")
    return address


def source(table: str, *keys: str) -> SourceEntry:
    return SourceEntry(
        name=table,
        format=SourceFormat.DEBEZIUM,
        topic=f"shop.public.{table}",
        table=f"public.{table}",
        keys=keys,
        file=f"sources/{table}.yml",
        columns=tuple(Column(name=name, type="string") for name in keys),
    )


@pytest.mark.parametrize(
    ("table", "keys", "actual"),
    [
        pytest.param("keyed", ("a", "b"), None, id="in any order"),
        pytest.param("keyed", ("a",), ("b", "a"), id="a part of the key"),
        pytest.param("keyed", ("a", "b", "c"), ("b", "a"), id="more than the key"),
        pytest.param("keyless", ("a", "b"), (), id="no key"),
        pytest.param("indexed", ("a",), None, id="a unique index"),
        pytest.param("nullable", ("a",), (), id="a unique index with NULL"),
        pytest.param("partial", ("a",), (), id="a unique index over some rows"),
    ],
)
def test_keys_that_identify_no_rows_are_refused(
    dsn: str, table: str, keys: tuple[str, ...], actual: tuple[str, ...] | None
) -> None:
    found = list(source_problems(dsn, [source(table, *keys)], missing=True))
    if actual is None:
        assert found == []
        return
    [problem] = found
    assert isinstance(problem, SourceKeyError)
    assert (problem.table, problem.declared, problem.actual) == (f"public.{table}", keys, actual)
    assert problem.location is not None
    assert problem.location.file == f"sources/{table}.yml"


def test_a_table_that_is_not_there(dsn: str) -> None:
    absent = source("absent", "a")
    assert list(source_problems(dsn, [absent], missing=False)) == []
    [problem] = source_problems(dsn, [absent], missing=True)
    assert isinstance(problem, SourceTableMissingError)


def test_a_domain_is_the_type_below_it_and_an_array_its_elements(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE DOMAIN code AS CHAR(3)")
        connection.execute("CREATE DOMAIN narrow AS code")
        connection.execute("CREATE TABLE typed (a narrow, b CHAR(4), c NUMERIC(8,2)[])")
        table = describe_table(connection, "public.typed")
        connection.rollback()
    assert table is not None
    shown = {name: (one.name, one.array is not None) for name, one in table.columns.items()}
    assert shown == {"a": ("bpchar", False), "b": ("bpchar", False), "c": ("numeric", True)}
    assert table.key == ()
