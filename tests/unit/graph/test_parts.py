"""Which definitions have the same rows, and which of their columns are the same."""

from __future__ import annotations

import pytest

from spark_jobs.graph.manifest import Parts
from spark_jobs.graph.parts import parts_of

TYPES = {"silver.t": {"k": "INT", "a": "INT", "b": "INT"}}
ONE = "SELECT t.k AS k, SUM(t.a) AS s FROM silver.t AS t GROUP BY t.k"


def parts(query: str, types: dict[str, dict[str, str]] = TYPES) -> Parts:
    found = parts_of(query, types)
    assert found is not None
    return found


def changed(query: str, types: dict[str, dict[str, str]] = TYPES) -> list[str]:
    """The columns that differ from the first definition; the rows are the same."""
    before, now = parts(ONE), parts(query, types)
    assert now.rows == before.rows
    return [name for name, digest in now.columns.items() if before.columns.get(name) != digest]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (ONE.replace("AS t ", "AS x ").replace("t.", "x.").replace("silverx.", "silver."), []),
        (ONE.replace("AS s", "AS s, MAX(t.b) AS m"), ["m"]),
        (ONE.replace("SUM(t.a) AS s", "COUNT(*) AS n, SUM(t.a) AS s"), ["n"]),
        (ONE.replace("SUM(t.a)", "SUM(t.a + 1)"), ["s"]),
        (ONE.replace("AS s", "AS total"), ["total"]),
        (ONE.replace(", SUM(t.a) AS s", ""), []),
    ],
    ids=["alias", "added", "added before", "other expression", "renamed", "removed"],
)
def test_columns_change_alone(query: str, columns: list[str]) -> None:
    assert changed(query) == columns


def test_a_type_changes_the_columns_that_read_it() -> None:
    assert changed(ONE, {"silver.t": {**TYPES["silver.t"], "a": "BIGINT"}}) == ["s"]
    assert changed(ONE, {"silver.t": {**TYPES["silver.t"], "b": "BIGINT"}}) == []


@pytest.mark.parametrize(
    "query",
    [
        ONE.replace("GROUP BY", "WHERE t.b > 0 GROUP BY"),
        ONE.replace("GROUP BY t.k", "GROUP BY t.k, t.b"),
        ONE + " HAVING SUM(t.a) > 0",
        ONE + " ORDER BY s LIMIT 3",
        ONE.replace("silver.t AS t", "silver.t AS t CROSS JOIN silver.t AS u"),
    ],
)
def test_other_rows_are_another_definition(query: str) -> None:
    assert parts(query).rows != parts(ONE).rows


def test_a_column_that_chooses_rows_counts_as_rows() -> None:
    top = ONE + " ORDER BY s DESC LIMIT 3"
    assert parts(top).rows != parts(top.replace("SUM(t.a)", "SUM(t.b)")).rows
    assert parts(top).rows == parts(top.replace("AS s", "AS s, MAX(t.b) AS m")).rows


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT t.k AS k FROM silver.t AS t",
        f"{ONE} UNION ALL {ONE}",
        ONE + " ORDER BY 2 LIMIT 3",
    ],
)
def test_all_columns_together_may_decide(query: str) -> None:
    assert parts_of(query, TYPES) is None
