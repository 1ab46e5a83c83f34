"""What DuckDB gives for each expression on its list: the types and values that Spark gave.

``tests/spark/test_duck.py`` compares the same expressions with Spark itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot import exp

from spark_jobs.gold.engine.database import Duck, DuckError
from spark_jobs.graph.dialect import parse
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import Kind, kind_of
from spark_jobs.graph.duck.queries import Translated, translated
from spark_jobs.graph.maintenance.clauses import each_copy
from tests.spark.duck_expressions import (
    BEYOND,
    FAILING,
    QUERIES,
    REFUSED,
    ROWS,
    TIED,
    TYPED,
    select,
)

GOLDEN = Path(__file__).with_name("duck_values.txt")
TYPES = {
    "i": "int",
    "t": "tinyint",
    "s": "smallint",
    "l": "bigint",
    "d": "decimal(15,2)",
    "e": "decimal(12,4)",
    "wide": "decimal(38,2)",
    "c": "string",
    "w": "string",
    "day": "date",
    "at": "timestamp",
    "b": "boolean",
    "f": "double",
}


@pytest.fixture(scope="module")
def duck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Duck]:
    with Duck(memory="1 GiB", spill=tmp_path_factory.mktemp("spill")) as found:
        load_edges(found)
        yield found


def load_edges(duck: Duck) -> None:
    """The rows of the Spark test."""
    kinds: dict[str, Kind] = {name: kind_of(kind) or Kind("null") for name, kind in TYPES.items()}
    typed = ", ".join(
        f'CAST("{name}" AS {kind.in_duckdb}) AS "{name}"' for name, kind in kinds.items()
    )
    rows = parse(TYPED.format(ROWS)).sql(dialect="duckdb")
    duck.compute("edges", Translated(f"SELECT {typed} FROM ({rows}) AS t", kinds))


def values_of(duck: Duck) -> str:
    """A line for each expression: it, its type, and its values."""
    lines = []
    for expressions, rest in QUERIES:
        lines.append(f"FROM edges{rest}")
        found = translated(parse(select(expressions, rest)), duck.known)
        rows = duck.fetch(found.sql)
        for at, (one, kind) in enumerate(zip(expressions, found.columns.values(), strict=True)):
            values = sorted(map(str, rows.column(at).to_pylist()))
            lines.append(f"  {one} | {kind} | {', '.join(values)}")
    return "\n".join(lines) + "\n"


def test_duckdb_gives_the_recorded_types_and_values(duck: Duck) -> None:
    found = values_of(duck)
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found.splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("sql", TIED)
def test_an_order_with_ties_is_an_error(duck: Duck, sql: str) -> None:
    found = translated(parse(sql), duck.known)
    with pytest.raises(DuckError, match="leaves ties"):
        duck.fetch(found.sql)


@pytest.mark.parametrize("expression", BEYOND)
def test_a_value_that_hangs_on_the_order_of_rows_is_left_to_spark(
    duck: Duck, expression: str
) -> None:
    found = translated(parse(f"SELECT {expression} AS v FROM edges"), duck.known)
    with pytest.raises(DuckError, match="beyond"):
        duck.fetch(found.sql)


@pytest.mark.parametrize("expression", FAILING)
def test_expressions_that_fail_in_spark_fail_in_duckdb(duck: Duck, expression: str) -> None:
    found = translated(parse(f"SELECT {expression} AS v FROM edges"), duck.known)
    with pytest.raises(DuckError):
        duck.fetch(found.sql)


@pytest.mark.parametrize("sql", REFUSED)
def test_untranslatable_queries_are_refused(duck: Duck, sql: str) -> None:
    with pytest.raises(NotTranslatedError):
        translated(parse(sql), duck.known)


def check_copies(duck: Duck) -> None:
    """A row as often as a whole number says; less than once is an error."""
    for sign in ("", "0 - "):
        query = parse("SELECT i FROM edges WHERE i <= 3").select(
            each_copy(parse(f"{sign}i")).as_("n")
        )
        sql = translated(query, duck.known).sql
        if sign:
            with pytest.raises(DuckError, match="less than once"):
                duck.fetch(sql)
        else:
            assert sorted(duck.fetch(sql).column("i").to_pylist()) == [1, 2, 2, 3, 3, 3]
    # From another number than 1, or to one that is not whole.
    for first, last in ((2, "i"), (1, "d")):
        series = exp.func("SEQUENCE", exp.Literal.number(first), exp.column(last))
        query = parse("SELECT i FROM edges").select(exp.func("EXPLODE", series).as_("n"))
        with pytest.raises(NotTranslatedError):
            translated(query, duck.known)


def test_a_row_comes_as_often_as_a_number_says(duck: Duck) -> None:
    check_copies(duck)
