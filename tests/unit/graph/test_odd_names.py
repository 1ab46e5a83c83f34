"""Columns whose names need quotes, read by a star."""

from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import Layer, TableName

SCHEMAS = {
    TableName(Layer.BRONZE, "visits"): {
        "id": "int",
        "placed at": "date",
        "a.b": "int",
        "größe": "int",
    }
}


@pytest.mark.parametrize("star", ["*", "v.*", "* EXCEPT (id)", "v.* EXCEPT (`a.b`)"])
def test_a_column_that_a_star_names_has_its_quotes(star: str) -> None:
    sql = f"SELECT s.`placed at` AS at FROM (SELECT {star} FROM bronze.visits AS v) AS s"
    text = SqlText("v.sql", sql)
    found = resolve(parse_select(text), SCHEMAS, text, "v")
    assert not found.problems
    written = to_sql(found.tree)
    assert "v.`placed at` AS `placed at`" in written
    assert "v.`größe` AS `größe`" in written
    assert to_sql(parse(written)) == written
