"""The endpoint's gate without a server, for statements that name no table of ``ops``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.endpoint_sections import EndpointRole
from spark_jobs.errors import ProblemsError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.serving.sql.gate import EndpointSession, judge
from spark_jobs.serving.sql.grants import check_roles, granted_tables
from spark_jobs.serving.sql.ops_tables import OPS_TABLES
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.stack.endpoint_users import ANALYST, add_user, remove_user
from tests.shipped import shipped_project

NO_SPARK: Any = None


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return shipped_project()


@pytest.fixture
def session(tmp_path: Path, manifest: Manifest) -> EndpointSession:
    """Over the shipped project, of which one table was written, twice."""
    settings = load_settings(REPOSITORY, state_dir=tmp_path, lake_root="", control_db="")
    for count in (1, 2):
        rows = pa.table({"status": ["new"], "orders": [count]})
        write_deltalake(tmp_path / "lake/gold/orders_by_status", rows, mode="append")
    return EndpointSession(settings=settings, driver=NO_SPARK, compiled=lambda: manifest)


def told(session: EndpointSession, text: str, kind: str = "Project", **more: str) -> dict[str, str]:
    statement = {"schema": "default", "changed": "", "tables": "", "schemas": ""}
    statement |= {"user": ANALYST, **more}
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
        ("PlanWithUnresolvedIdentifier", "DESCRIBE IDENTIFIER('a' || '.b')", "NOT_READ_ONLY"),
        ("Project", "SELECT * FROM bronze.orders", "UNKNOWN_TABLE"),
        ("Project", "SELECT * FROM delta.`/lake/_quarantine/orders`", "UNKNOWN_TABLE"),
        ("Project", "SELECT * FROM gold.user_dashboard", "TABLE_NOT_WRITTEN"),
    ],
)
def test_a_refusal_says_why(session: EndpointSession, kind: str, text: str, condition: str) -> None:
    assert f"{condition}]" in told(session, text, kind)["refusal"]


def test_the_names_of_schemas_are_shown(session: EndpointSession) -> None:
    for text in ("SHOW SCHEMAS", "SHOW DATABASES LIKE 'g*'"):
        # Spark names the root of all schemas, which has no name.
        assert told(session, text, "ShowNamespacesCommand", schemas="\n")["sql"] == text
    other = told(session, "SHOW SCHEMAS IN x", "ShowNamespacesCommand", schemas="x\n")
    assert "SCHEMA_UNKNOWN]" in other["refusal"]


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


ROLES = {
    "statuses": {"tables": ["gold.orders_by_status"]},
    "golden": {"schemas": ["gold"]},
    "operator": {"schemas": ["ops"]},
}


@pytest.fixture
def with_roles(session: EndpointSession) -> EndpointSession:
    """The session of a project with roles, each with a user of its name."""
    settings = load_settings(
        REPOSITORY, state_dir=session.settings.state, endpoint={"roles": ROLES}
    )
    for name in ROLES:
        add_user(settings, name, name)
    return replace(session, settings=settings)


@pytest.mark.parametrize(
    ("user", "text", "granted"),
    [
        ("statuses", "SELECT * FROM gold.orders_by_status", True),
        ("golden", "SELECT * FROM gold.orders_by_status", True),
        ("operator", "SELECT * FROM gold.orders_by_status", False),
        ("statuses", "SELECT * FROM gold.orders_by_user AS o", False),
        ("statuses", "SELECT * FROM ops.freshness", False),
        ("golden", "SELECT * FROM silver.orders", False),
        (
            "statuses",
            "SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM gold.user_revenue)",
            False,
        ),
    ],
)
def test_a_user_reads_what_the_role_grants(
    with_roles: EndpointSession, user: str, text: str, granted: bool
) -> None:
    found = told(with_roles, text, user=user)
    assert ("sql" in found) is granted
    if not granted:
        assert found["refusal"].startswith(f"user '{user}' may not query ")
        assert "[TABLE_NOT_GRANTED]" in found["refusal"]
        explained = told(with_roles, f"EXPLAIN {text}", "ExplainCommand", user=user)
        assert "[TABLE_NOT_GRANTED]" in explained["refusal"]


def test_a_user_does_not_see_the_columns_of_tables_that_the_role_does_not_grant(
    with_roles: EndpointSession,
) -> None:
    def described(table: str) -> dict[str, str]:
        text = f"DESCRIBE {table}"
        return told(with_roles, text, "DescribeRelation", tables=table, user="statuses")

    assert "sql" in described("gold.orders_by_status")
    assert "refusal" in described("gold.user_revenue")


def test_a_removed_user_a_changed_role_and_an_empty_user_are_refused(
    with_roles: EndpointSession,
) -> None:
    text = "SELECT * FROM gold.orders_by_status"
    remove_user(with_roles.settings, "golden")
    assert "[USER_UNKNOWN]" in told(with_roles, text, user="golden")["refusal"]
    assert "[USER_UNKNOWN]" in told(with_roles, text, user="")["refusal"]
    add_user(with_roles.settings, "statuses", "operator")
    assert "[TABLE_NOT_GRANTED]" in told(with_roles, text, user="statuses")["refusal"]
    fewer = load_settings(REPOSITORY, state_dir=with_roles.settings.state)
    without = replace(with_roles, settings=fewer)
    assert "[ROLE_UNKNOWN]" in told(without, text, user="statuses")["refusal"]


def test_the_tags_of_a_role_grant_tables_of_all_layers(manifest: Manifest) -> None:
    tag = next(tag for one in manifest.gold.values() for tag in one.tags)
    granted = granted_tables(EndpointRole(tags=(tag,)), manifest)
    entries = (*manifest.silver.values(), *manifest.gold.values(), *manifest.sources.values())
    assert granted == {str(one.table_name) for one in entries if tag in one.tags}


def test_what_a_role_names_must_exist(manifest: Manifest) -> None:
    roles = {
        "none": EndpointRole(),
        "typo": EndpointRole(tables=("gold.orders_by_statuss",), tags=("finnance",)),
        "right": EndpointRole(schemas=("ops",), tables=("gold.orders_by_status",)),
    }
    with pytest.raises(ProblemsError) as raised:
        check_roles(roles, manifest)
    text = str(raised.value)
    assert "endpoint.roles.none" in text
    assert "gold.orders_by_statuss" in text
    assert "finnance" in text
    assert "right" not in text
