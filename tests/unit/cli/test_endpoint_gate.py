"""What becomes of statements, without a server: those that name no table of ``ops``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.serving.sql.gate import EndpointSession, judge
from spark_jobs.serving.sql.ops_tables import OPS_TABLES
from spark_jobs.settings import REPOSITORY, load_settings

NO_SPARK: Any = None


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return compile_project(REPOSITORY)


@pytest.fixture
def session(tmp_path: Path, manifest: Manifest) -> EndpointSession:
    """Over the shipped project, of which one table was written, twice."""
    settings = load_settings(REPOSITORY, state_dir=tmp_path, lake_root="", control_db="")
    for count in (1, 2):
        rows = pa.table({"status": ["new"], "orders": [count]})
        write_deltalake(tmp_path / "lake/gold/orders_by_status", rows, mode="append")
    return EndpointSession(settings=settings, driver=NO_SPARK, compiled=lambda: manifest)


def told(session: EndpointSession, text: str, kind: str = "Project", **more: str) -> dict[str, str]:
    statement = {"schema": "default", "changed": "", "tables": "", "schemas": "", **more}
    statement |= {"kind": kind, "text": text}
    judge(session, statement)
    assert ("sql" in statement) != ("refusal" in statement)
    return statement


def test_a_query_reads_each_table_at_its_newest_version(session: EndpointSession) -> None:
    place = f"delta.`{session.settings.lake}/gold/orders_by_status`"
    newest = f"SELECT * FROM {place} VERSION AS OF 1 AS orders_by_status"
    assert told(session, "SELECT * FROM gold.orders_by_status")["sql"] == newest
    assert told(session, "SELECT * FROM orders_by_status", schema="gold")["sql"] == newest
    explained = told(session, "EXPLAIN SELECT * FROM gold.orders_by_status", "ExplainCommand")
    assert explained["sql"] == f"EXPLAIN {newest}"
    older = told(session, "SELECT * FROM gold.orders_by_status VERSION AS OF 0 AS o")
    assert older["sql"] == f"SELECT * FROM {place} VERSION AS OF 0 AS o"


@pytest.mark.parametrize(
    ("kind", "text", "condition"),
    [
        ("InsertIntoStatement", "INSERT INTO gold.orders_by_status VALUES (1)", "NOT_READ_ONLY"),
        ("DeleteFromTable", "DELETE FROM gold.orders_by_status", "NOT_READ_ONLY"),
        ("CreateTable", "CREATE TABLE gold.x (a INT) USING delta", "NOT_READ_ONLY"),
        ("CreateFunction", "CREATE FUNCTION f AS 'x.Y' USING JAR '/x.jar'", "NOT_READ_ONLY"),
        ("AddJarsCommand", "ADD JAR '/tmp/x.jar'", "NOT_READ_ONLY"),
        ("CompoundBody", "BEGIN DROP VIEW gold.orders_by_status; END", "NOT_READ_ONLY"),
        ("ShowCreateTable", "SHOW CREATE TABLE gold.orders_by_status", "NOT_READ_ONLY"),
        ("Project", "SELECT reflect('java.lang.System', 'exit', 1)", "NOT_READ_ONLY"),
        ("SetCommand", "SET spark.sql.ansi.enabled=false", "SETTING_REFUSED"),
        ("Project", "SELECT * FROM bronze.orders", "UNKNOWN_TABLE"),
        ("Project", "SELECT * FROM delta.`/lake/_quarantine/orders`", "UNKNOWN_TABLE"),
        ("Project", "SELECT * FROM gold.user_dashboard", "TABLE_NOT_WRITTEN"),
    ],
)
def test_a_refusal_says_why(session: EndpointSession, kind: str, text: str, condition: str) -> None:
    assert f"{condition}]" in told(session, text, kind)["refusal"]


def test_a_failure_of_ours_lets_nothing_pass(
    session: EndpointSession, caplog: pytest.LogCaptureFixture
) -> None:
    answer = told(session, "SELECT * FROM ops.freshness AS f")
    assert "its log says why" in answer["refusal"]
    assert "statement not checked" in caplog.text


def test_silver_gold_and_ops_are_listed_with_what_they_are(
    session: EndpointSession, manifest: Manifest
) -> None:
    listed = session.listed()
    assert set(OPS_TABLES) < set(listed)
    assert {name.partition(".")[0] for name in listed} == {"silver", "gold", "ops"}
    written = listed["gold.orders_by_status"]
    assert [one.name for one in written.columns] == ["status", "orders"]
    assert written.description == manifest.gold["orders_by_status"].description
    declared = manifest.gold["user_order_stats"]
    assert [(one.name, one.description) for one in listed["gold.user_order_stats"].columns] == [
        (one.name, one.description or "") for one in declared.columns
    ]
