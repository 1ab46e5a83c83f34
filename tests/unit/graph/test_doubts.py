from __future__ import annotations

import pytest

from spark_jobs.graph.doubts import ImplicitAliasError, doubts, implicit_aliases
from spark_jobs.graph.parsing import SqlText
from spark_jobs.settings import REPOSITORY
from tests.shipped import shipped_project


def found(sql: str) -> list[ImplicitAliasError]:
    return list(implicit_aliases(SqlText("a.sql", sql), subject='gold view "a"'))


def test_a_missing_comma_is_reported_with_its_location() -> None:
    (one,) = found("SELECT\n  o.order_id\n  status\nFROM silver.orders AS o")
    assert (one.column, one.alias) == ("order_id", "status")
    assert str(one.location) == "a.sql:3:3"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT o.order_id AS status FROM silver.orders AS o",
        "SELECT o.order_id, status FROM silver.orders o",
        "SELECT COUNT(*) orders FROM silver.orders o JOIN silver.users u USING (user_id)",
        "SELECT o.order_id as /* why */ status FROM silver.orders AS o",
    ],
)
def test_harmless_aliases_raise_no_doubt(sql: str) -> None:
    assert not found(sql)


def test_subqueries_are_looked_into() -> None:
    sql = "WITH a AS (SELECT b c FROM silver.x) SELECT a.c FROM a WHERE 1 = (SELECT d e FROM a)"
    assert [one.alias for one in found(sql)] == ["c", "e"]


def test_the_shipped_project_leaves_no_doubt() -> None:
    assert not doubts(shipped_project(), REPOSITORY)
