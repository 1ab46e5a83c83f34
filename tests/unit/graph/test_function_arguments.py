"""Numbers of arguments: what Spark takes passes, all else is refused with its place."""

from __future__ import annotations

import pytest

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.argument_checks import check_arguments
from spark_jobs.graph.function_arguments import function_arguments
from spark_jobs.graph.functions import spark_functions
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.semantic_errors import FunctionArgumentsError

# Words that have a grammar of their own, here or in Spark.
SYNTAX = {"and", "any", "between", "case", "cast", "exists", "extract", "in", "not", "or", "when"}
COUNTS = range(9)


def problems_of(select: str) -> list[LakehouseError]:
    text = SqlText("view.sql", select)
    try:
        return list(check_arguments(parse_select(text), text))
    except LakehouseError as error:
        return [error]


def called(name: str, count: int) -> list[LakehouseError]:
    arguments = ", ".join(["t.x"] * count)
    return problems_of(f"SELECT\n{name}({arguments}) AS x FROM t")


@pytest.mark.parametrize("name", sorted(spark_functions().keys() - SYNTAX))
def test_exactly_the_numbers_that_spark_takes_pass(name: str):
    takes = function_arguments(name)
    for count in COUNTS:
        found = called(name, count)
        # sqlglot does not read all that Spark takes: LAG().
        wrong = [one for one in found if isinstance(one, FunctionArgumentsError)]
        if takes is None or takes.allow(count):
            assert not wrong, count
            continue
        assert found, count
        for one in wrong:
            assert (one.name, one.count, str(one.location)) == (name, count, "view.sql:2:1")


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (
            "SUBSTRING(t.x)",
            "SUBSTRING has 1 argument, and takes 2 or 3",
            "Write SUBSTRING(str, pos[, len]).",
        ),
        (
            "COALESCE()",
            "COALESCE has 0 arguments, and takes 1 or more",
            "Write COALESCE(expr1, expr2, ...).",
        ),
        ("MAP('a')", "MAP has 1 argument, and takes an even number", "Write MAP(key0, value0, "),
        ("upper('a', 2)", "UPPER has 2 arguments, and takes 1", "Write UPPER(str)."),
        ("MD5('a', UPPER('b'), 'c')", "MD5 has 3 arguments, and takes 1", "Write MD5(expr)."),
        ("DATE_TRUNC('day')", "DATE_TRUNC has 1 argument, and takes 2", "Write DATE_TRUNC(fmt, "),
        ("PI(1)", "PI has 1 argument, and takes none", "Write PI()."),
        ("LIKE(t.x)", "LIKE has 1 argument, and takes 2 or 3", "Spark's list of functions"),
    ],
)
def test_a_wrong_number_is_named_with_what_is_right(call: str, message: str, hint: str):
    [found] = problems_of(f"SELECT {call} AS x FROM t")
    assert isinstance(found, FunctionArgumentsError)
    assert found.primary == message
    assert str(found.hint).startswith(hint)
    assert str(found.location) == "view.sql:1:8"


@pytest.mark.parametrize(
    "select",
    [
        "WITH first (x, y, z) AS (SELECT 1, 2, 3) SELECT first.x FROM first",
        "SELECT s.a FROM VALUES (1, 2, 3) AS sum (a, b, c), t AS s",
        "SELECT t.x IN (1, 2, 3) OR NOT (t.x, 1) = (t.y, 2) AS x FROM t",
        "SELECT CAST(t.x AS DECIMAL(12, 2)) AS x FROM t JOIN u USING (x, y, z)",
        "SELECT UPPER(-- of, all\n t.x /* , */) AS x FROM t",
        "SELECT UPPER(CAST(t.x AS STRUCT<a: INT, b: INT>).a) AS x FROM t",
        "SELECT UPPER(t.x::STRUCT<a: INT, b: INT>.a) AS x FROM t",
        "SELECT TRIM(LEADING FROM t.x) || SUBSTRING(t.x FROM 2) || POSITION('a' IN x) FROM t",
    ],
)
def test_lists_that_are_no_arguments_are_not_counted(select: str):
    assert not [one for one in problems_of(select) if isinstance(one, FunctionArgumentsError)]
