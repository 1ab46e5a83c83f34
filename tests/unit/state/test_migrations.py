"""Control databases of earlier releases: what they held is there, and all that is new."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.engine import make_engine
from spark_jobs.state.migrate import found_version
from spark_jobs.state.progress import StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.tables import METADATA, SCHEMA_VERSION

# A file of statements for each version and database, and rows that all versions can hold.
SCHEMAS = Path(__file__).parent / "schemas"
EARLIER = range(1, SCHEMA_VERSION)


def execute(engine: Engine, statements: str) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL TIME ZONE 'UTC'")).close()
        for statement in statements.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement).close()


def described(engine: Engine) -> dict[str, Any]:
    """All that a database says of its tables, in an order of its own."""
    found = inspect(engine)

    def columns(table: str) -> list[tuple[str, str, bool]]:
        seen = found.get_columns(table)
        return sorted((one["name"], str(one["type"]), one["nullable"]) for one in seen)

    return {
        table: {
            "columns": columns(table),
            "key": found.get_pk_constraint(table)["constrained_columns"],
            "unique": sorted(map(str, found.get_unique_constraints(table))),
            "indexes": sorted(map(str, found.get_indexes(table))),
        }
        for table in sorted(found.get_table_names())
    }


@pytest.fixture
def fresh(control_url: str) -> dict[str, Any]:
    """What this release makes where there is nothing."""
    ControlStore.open(control_url).close()
    engine = make_engine(control_url)
    try:
        expected = described(engine)
        METADATA.drop_all(engine)
    finally:
        engine.dispose()
    assert set(expected) == set(METADATA.tables)
    return expected


@pytest.fixture
def engine(control_url: str, fresh: dict[str, Any]) -> Engine:
    return make_engine(control_url)


@pytest.fixture(params=EARLIER)
def earlier(request: pytest.FixtureRequest, engine: Engine) -> int:
    """The version of a database that an earlier release left behind."""
    version: int = request.param
    execute(engine, (SCHEMAS / f"{version}.{engine.dialect.name}.sql").read_text())
    execute(engine, (SCHEMAS / "rows.sql").read_text())
    stamp = f"INSERT INTO tidemark_schema VALUES (1, {version}, '2024-05-01 00:00:00.000000')"
    execute(engine, stamp)
    return version


def test_an_earlier_database_becomes_what_this_release_makes_and_keeps_its_rows(
    control_url: str, engine: Engine, earlier: int, fresh: dict[str, Any]
) -> None:
    assert described(engine) != fresh
    assert found_version(control_url) == earlier
    orders = TableName.parse("silver.orders")
    with ControlStore.open(control_url) as store:
        (attempt,) = store.attempts("daily")
        assert attempt.status is AttemptStatus.PUBLISHED
        assert (attempt.sequence, attempt.epoch, attempt.published_version) == (7, 2, 12)
        assert attempt.vector == {"silver.orders": {"table_id": "x", "version": 3}}
        assert attempt.started_at == datetime(2024, 5, 2, 12, 30, 15, 123456, tzinfo=UTC)
        assert attempt.scope is None
        assert store.pins("2024-05-02T12:30") == {orders: TableVersion("x", 3)}
        assert store.epoch("gold.daily") == 2
        assert store.silver_totals("orders").accounted == 10
        (progress,) = store.progress()
        assert progress.end_offsets == {"orders": {"0": 99}}
        # Fencing numbers go on: a writer of the old release must not pass for a new one.
        with store.lease("gold.daily", owner="me", seconds=60) as keeper:
            assert keeper.lease.fencing == 42
    assert described(engine) == fresh
    assert found_version(control_url) == SCHEMA_VERSION

    # Migrating again changes nothing.
    with engine.begin() as connection:
        first = connection.execute(text("SELECT * FROM tidemark_schema")).all()
    for _ in range(2):
        with ControlStore.open(control_url) as store:
            store.migrate()
            assert len(store.attempts()) == 1
    with engine.begin() as connection:
        assert connection.execute(text("SELECT * FROM tidemark_schema")).all() == first
    engine.dispose()


def test_names_that_an_earlier_release_stored_are_read_under_their_new_ones(
    control_url: str, engine: Engine, earlier: int
) -> None:
    statements = [
        "UPDATE attempts SET status = 'held', reason_code = 'VIEW_HELD'",
        """UPDATE attempts SET verdict = '{"outcome": "held", "expectations": 1, "failed": 1}'""",
        "UPDATE stream_progress SET state = 'held'",
    ]
    kept = (
        "INSERT INTO holds VALUES ('daily', 3, 'ann', 'wrong', 'r1', '2024-05-01 00:00:00.000000')"
    )
    has_holds = "holds" in inspect(engine).get_table_names()
    execute(engine, ";\n".join([*statements, *([kept] if has_holds else [])]))
    engine.dispose()
    with ControlStore.open(control_url) as store:
        (attempt,) = store.attempts("daily", statuses=(AttemptStatus.BLOCKED,))
        assert attempt.reason_code == ReasonCode.VIEW_PINNED
        assert (attempt.verdict or {})["outcome"] == "blocked"
        assert [one.state for one in store.progress()] == [StreamState.BLOCKED]
        pinned = store.pinned_views()
        assert {name: one.version for name, one in pinned.items()} == (
            {"daily": 3} if has_holds else {}
        )


def test_a_change_of_the_tables_is_a_version_of_its_own() -> None:
    """Raise SCHEMA_VERSION with each change of the tables, then run with REWRITE=1."""
    for dialect in (sqlite.dialect(), postgresql.dialect()):
        statements = ""
        for table in METADATA.sorted_tables:
            indexes = sorted(table.indexes, key=lambda one: str(one.name))
            for one in (CreateTable(table), *map(CreateIndex, indexes)):
                statements += f"{str(one.compile(dialect=dialect)).strip()};\n\n"
        lines = [line.rstrip().replace("\t", "  ") for line in statements.splitlines()]
        path = SCHEMAS / f"{SCHEMA_VERSION}.{dialect.name}.sql"
        if os.environ.get("REWRITE") and not path.exists():
            path.write_text("".join(f"{line}\n" for line in lines))
        assert path.read_text().splitlines() == lines


def test_no_database_has_no_version_and_looking_makes_none(tmp_path: Path) -> None:
    path = tmp_path / "state/control.db"
    assert found_version(f"sqlite:///{path}") is None
    assert not path.exists()
