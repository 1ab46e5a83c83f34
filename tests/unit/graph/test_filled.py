"""The columns that are never NULL, as the SQL shows it."""

from __future__ import annotations

import pytest

from spark_jobs.graph.filled import filled_columns


@pytest.mark.parametrize(
    ("output", "filled"),
    [
        ("COUNT(*)", True),
        ("CAST(COUNT(t.a) AS INT)", True),
        ("COUNT(*) FILTER(WHERE t.a > 1)", True),
        ("COUNT(DISTINCT t.a) OVER (PARTITION BY t.b)", True),
        ("ROW_NUMBER() OVER (ORDER BY t.a)", True),
        ("COALESCE(t.a, (0))", True),
        ("'fixed'", True),
        ("TRUE", True),
        ("NULL", False),
        ("TRY_CAST('x' AS INT)", False),
        ("SUM(t.a)", False),
        ("MAX(t.a) OVER (PARTITION BY t.b)", False),
        ("COALESCE(t.a, t.b)", False),
        ("COUNT(*) / t.b", False),
        ("LAG(1) OVER (ORDER BY t.a)", False),
        ("t.a", False),
    ],
)
def test_an_output(output: str, filled: bool) -> None:
    assert filled_columns(f"SELECT {output} AS x FROM silver.t AS t") == (
        {"x"} if filled else set()
    )


def test_a_union_may_have_null_in_its_other_part() -> None:
    assert not filled_columns("SELECT 1 AS x UNION ALL SELECT t.a AS x FROM silver.t AS t")
