"""Mistakes that Spark's analyzer would find, found before Spark is asked."""

from __future__ import annotations

import pytest

from spark_jobs.graph.checks import check_functions, check_tables
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import Layer, TableName
from tests.unit.graph.semantic_cases import REFUSED, SCHEMAS, TAKEN


def problems_of(sql: str):
    text = SqlText("view.sql", sql)
    tree = parse_select(text)
    return (*check_functions(tree, text, "view"), *resolve(tree, SCHEMAS, text, "view").problems)


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_named_with_its_place(case: str):
    sql, condition, place = REFUSED[case]
    (found,) = problems_of(sql)
    assert found.condition == condition
    assert str(found.location).startswith(f"view.sql:{place}")
    assert found.hint


@pytest.mark.parametrize("case", TAKEN)
def test_queries_that_spark_accepts_have_no_problems(case: str):
    assert problems_of(TAKEN[case]) == ()


def test_a_table_in_one_pair_of_back_ticks_is_no_table():
    text = SqlText("view.sql", "SELECT o.a FROM `silver.orders` AS o")
    (found,) = check_tables(parse_select(text), [TableName(Layer.SILVER, "orders")], text, "view")
    assert found.condition == "QUOTED_TABLE"
    assert "without backticks" in found.hint


@pytest.mark.parametrize("call", ["SAFE_CAST(o.a AS INT)", "SAFE_DIVIDE(o.a, 2)", "ISNULL(o.a)"])
def test_a_function_of_another_engine_is_unknown(call: str):
    text = SqlText("view.sql", f"SELECT {call} AS a\nFROM silver.orders AS o")
    found = [one.condition for one in check_functions(parse_select(text), text, "view")]
    assert found == ([] if call.startswith("ISNULL") else ["UNKNOWN_FUNCTION"])


def test_a_computed_name_is_refused_with_its_remedy():
    (found,) = problems_of("SELECT IDENTIFIER('day') AS d FROM silver.orders AS o")
    assert found.condition == "UNKNOWN_FUNCTION"
    assert "write the name" in found.hint


def test_distinct_rows_are_ordered_by_outputs_as_spark_knows_no_relation_behind_an_alias():
    sql = (
        "SELECT DISTINCT o.day, o.amount FROM silver.orders AS o ORDER BY o.day + 1, AMOUNT LIMIT 3"
    )
    text = SqlText("view.sql", sql)
    ordered = resolve(parse_select(text), SCHEMAS, text, "view").tree.args["order"]
    assert to_sql(ordered) == "ORDER BY day + 1, amount"
