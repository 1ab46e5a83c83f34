"""The types of a union's columns, which its first part does not decide alone."""

from __future__ import annotations

import pytest

from spark_jobs.graph.canonical import output_columns
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName

COLUMNS = {TableName.parse("silver.a"): {"k": "int", "l": "bigint", "m": "decimal(8,2)"}}


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT k FROM silver.a UNION ALL SELECT k FROM silver.a", "int"),
        ("SELECT k FROM silver.a UNION ALL SELECT l FROM silver.a", "bigint"),
        (
            "SELECT k FROM silver.a UNION (SELECT k FROM silver.a EXCEPT SELECT m FROM silver.a)",
            "decimal(12,2)",
        ),
        (
            "SELECT u.k FROM (SELECT k FROM silver.a UNION SELECT m FROM silver.a) AS u",
            "decimal(12,2)",
        ),
        ("SELECT k FROM silver.a UNION SELECT CAST(l AS STRING) FROM silver.a", ""),
        ("SELECT NULL AS k UNION SELECT l FROM silver.a", "bigint"),
        ("SELECT SUM(k) AS k FROM (SELECT k FROM silver.a UNION SELECT k FROM silver.a)", "bigint"),
        ("SELECT -k::STRING AS k FROM silver.a", "double"),
    ],
)
def test_numbers_are_widened_and_other_types_are_left_to_spark(sql: str, kind: str) -> None:
    source = SqlText("query", sql)
    tree = parse_select(source)
    resolved = resolve(tree, COLUMNS, source, "query")
    assert not resolved.problems
    assert [one.type for one in output_columns(tree, resolved.tree)] == [kind]
