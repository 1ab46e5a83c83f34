"""New sources against a real database: each problem is reported with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import psycopg
import pytest
from psycopg import sql

from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.sources import new_source_facts
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.errors import ArraysLeftOutError, SlotRightsError, SourceKeyError
from tests.golden.declaration_cases import RIGHT, write_project

TABLE = "public.deployed"
ROWS = 50
SOURCE = RIGHT["sources/orders.yml"].replace(
    "keys: [order_id]", f"keys: [order_id]\ntable: {TABLE}"
)


@pytest.fixture
def address(postgres_socket: Path) -> Iterator[str]:
    admin = f"host={postgres_socket} dbname=postgres user=tidemark"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("CREATE TABLE deployed (order_id BIGINT PRIMARY KEY, amount BIGINT)")
        connection.execute(f"INSERT INTO deployed SELECT i, i FROM generate_series(1, {ROWS}) AS i")
        connection.execute("CREATE ROLE capturing LOGIN")
        try:
            yield f"host={postgres_socket} dbname=postgres user=capturing"
        finally:
            connection.execute("DROP TABLE deployed")
            connection.execute("DROP PUBLICATION IF EXISTS tidemark")
            connection.execute("DROP ROLE capturing")


def facts(tmp_path: Path, address: str) -> tuple[list[str], dict[str, int]]:
    folder = tmp_path / "shop"
    folder.mkdir(exist_ok=True)
    write_project(folder, {"sources/orders.yml": SOURCE})
    settings: Settings = load_settings(
        folder, state_dir=tmp_path / "state", source_database=address
    )
    problems, rows = new_source_facts(settings, Manifest(project="shop"), compile_project(folder))
    return [one.render() for one in problems], rows


def run(postgres_socket: Path, statement: str) -> None:
    admin = f"host={postgres_socket} dbname=postgres user=tidemark"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(statement)


def test_rights_and_publication_are_asked_for_and_rows_counted(
    tmp_path: Path, postgres_socket: Path, address: str
) -> None:
    problems, rows = facts(tmp_path, address)
    assert len(problems) == 2
    assert f"GRANT SELECT ON {TABLE} TO capturing;" in problems[0]
    assert f"ALTER PUBLICATION tidemark ADD TABLE {TABLE};" in problems[1]
    assert rows == {}
    run(postgres_socket, f"GRANT SELECT ON {TABLE} TO capturing")
    run(postgres_socket, f"CREATE PUBLICATION tidemark FOR TABLE {TABLE}")
    assert facts(tmp_path, address) == ([], {"orders": ROWS})


def test_a_table_that_is_not_there(tmp_path: Path, postgres_socket: Path, address: str) -> None:
    run(postgres_socket, "ALTER TABLE deployed RENAME TO elsewhere")
    try:
        [problem] = facts(tmp_path, address)[0]
    finally:
        run(postgres_socket, "ALTER TABLE elsewhere RENAME TO deployed")
    assert "SOURCE_TABLE_MISSING" in problem


def test_a_database_that_does_not_answer(tmp_path: Path) -> None:
    [problem] = facts(tmp_path, f"host={tmp_path} dbname=postgres user=nobody")[0]

    assert "SOURCE_UNREADABLE" in problem
    assert "does not answer" in problem


class Closed:
    """A connection of a role that may use no schema: PostgreSQL looks up no name in it."""

    info = SimpleNamespace(user="capturing")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, *_: object) -> None:
        raise psycopg.errors.InsufficientPrivilege("permission denied for schema sales\nLINE 1")


def test_statements_to_run_have_the_names_as_they_are() -> None:
    """PostgreSQL takes names without quotes for lower case."""
    key = SourceKeyError("sources/orders.yml", "public.Orders", ["orderId"], [])
    assert 'ALTER TABLE public."Orders" ADD PRIMARY KEY ("orderId")' in key.hint
    arrays = ArraysLeftOutError("sources/orders.yml", "public.Orders", ["tags"])
    assert 'ALTER TABLE public."Orders" REPLICA IDENTITY' in arrays.hint
    assert 'ALTER ROLE "my-role" REPLICATION' in SlotRightsError("my-role", "s").hint


def test_a_schema_that_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: Closed())
    monkeypatch.setattr(sql.Identifier, "as_string", lambda *_: TABLE)
    [problem], rows = facts(tmp_path, "host=elsewhere")

    assert "SOURCE_UNREADABLE" in problem
    assert "permission denied for schema sales" in problem
    assert "GRANT USAGE ON SCHEMA public TO capturing;" in problem
    assert rows == {}
