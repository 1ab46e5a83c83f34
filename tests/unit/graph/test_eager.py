"""Which groupings above a left join read sums instead of rows."""

from __future__ import annotations

import pytest

from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.states import Cutter

TYPES = {
    "silver.u": {
        "id": "bigint",
        "name": "string",
        "code": "int",
        "boss": "bigint",
        "ratio": "double",
        "place": "struct<at:timestamp>",
    },
    "silver.o": {
        "user_id": "bigint",
        "amount": "decimal(12,2)",
        "fine": "decimal(30,8)",
        "weight": "double",
        "ratio": "double",
        "at": "timestamp",
        "late": "boolean",
    },
}
SUMS = (
    "SELECT u.id, u.name, COUNT(o.at) AS n, SUM(o.amount) AS s, AVG(o.user_id) AS m "
    "FROM silver.u AS u {} GROUP BY {}"
)
INNER = "JOIN silver.o AS o ON o.user_id = u.id"
JOIN = f"LEFT {INNER}"


def tables(query: str) -> list[str]:
    cutter = Cutter(TYPES)
    cutter.cut(build(query)[0])
    return [one.table for one in cutter.states]


@pytest.mark.parametrize("more", ["", " AND o.amount > 1", " AND o.at IS NOT NULL"])
def test_the_matches_of_each_left_group_are_summed_before_the_join(more: str) -> None:
    assert tables(SUMS.format(JOIN + more, "u.id, u.name")) == ["state.100"]


def test_either_side_of_the_equality_may_come_first() -> None:
    join = "LEFT JOIN silver.o AS o ON u.id = o.user_id"
    assert tables(SUMS.format(join, "u.id, u.name")) == ["state.100"]


def test_a_condition_on_the_left_side_does_not_prevent_it() -> None:
    query = f"SELECT u.id, COUNT(o.at) AS n FROM silver.u AS u {JOIN} WHERE u.id > 1 GROUP BY u.id"
    assert tables(query) == ["state.100"]


@pytest.mark.parametrize(
    "query",
    [
        # The columns of the join must be those of the group, of one type whose values are compared
        # exactly, and nothing else may decide about a match.
        SUMS.format(JOIN.replace("u.id", "u.code"), "u.id, u.name, u.code"),
        SUMS.format("LEFT JOIN silver.o AS o ON o.ratio = u.ratio", "u.id, u.name, u.ratio"),
        SUMS.format(JOIN + " AND o.at < CURRENT_TIMESTAMP()", "u.id, u.name"),
        SUMS.format(JOIN + " AND o.ratio > u.ratio", "u.id, u.name"),
        SUMS.format(JOIN + " AND u.boss = u.id", "u.id, u.name, u.boss"),
        SUMS.format(JOIN + " AND o.user_id = u.boss", "u.id, u.name, u.boss"),
        "SELECT DISTINCT u.id FROM silver.u AS u LEFT SEMI JOIN silver.o AS o ON o.user_id = u.id",
        (
            f"SELECT CAST(u.id AS STRING) AS k, COUNT(o.at) AS n FROM silver.u AS u {JOIN} "
            "GROUP BY CAST(u.id AS STRING)"
        ),
        # Without a match it is 0 and not NULL.
        f"SELECT u.id, COUNT_IF(o.late) AS n FROM silver.u AS u {JOIN} GROUP BY u.id",
        f"SELECT u.id, COUNT(o.at, o.late) AS n FROM silver.u AS u {JOIN} GROUP BY u.id",
        f"SELECT u.id, o.at, COUNT(o.amount) AS n FROM silver.u AS u {JOIN} GROUP BY u.id, o.at",
        f"SELECT u.id, COUNT(o.at) AS n FROM silver.u AS u {JOIN} GROUP BY u.id, UPPER(u.name)",
        f"SELECT u.id, COUNT(o.at) AS n FROM silver.u AS u {INNER} GROUP BY u.id",
        SUMS.format("LEFT JOIN silver.o AS o ON o.amount > 1", "u.id, u.name"),
        f"SELECT u.id, COUNT(DISTINCT o.at) AS n FROM silver.u AS u {JOIN} GROUP BY u.id",
        f"SELECT u.name, COUNT(o.at) AS n FROM silver.u AS u {JOIN} GROUP BY u.name",
        f"SELECT u.id, COUNT(*) AS n FROM silver.u AS u {JOIN} GROUP BY u.id",
        f"SELECT u.id, SUM(u.id) AS n FROM silver.u AS u {JOIN} GROUP BY u.id",
        # A field of the left side with the name of a column of the right side.
        SUMS.format(f"{JOIN} AND o.at IS NOT NULL", "u.id, u.name").replace(
            "o.at)", "(u.place).at)"
        ),
        # A product of this many decimal places may not be exact.
        f"SELECT u.id, SUM(o.fine) AS n FROM silver.u AS u {JOIN} GROUP BY u.id",
        f"SELECT u.id, COUNT(o.at) AS n FROM silver.u AS u {JOIN} WHERE o.amount > 1 GROUP BY u.id",
    ],
)
def test_other_groupings_are_not_taken_apart(query: str) -> None:
    assert "state.100" not in tables(query)


def test_a_condition_may_read_all_columns_of_the_right_side() -> None:
    query = f"SELECT u.id, COUNT(o.user_id) AS n FROM silver.u AS u {JOIN} {{}} GROUP BY u.id"
    assert tables(query.format("AND o.user_id > 1")) == ["state.100"]


def test_an_aggregate_that_is_not_stored_leaves_the_grouping_as_it_is() -> None:
    for call in ("MAX(o.at)", "AVG(o.weight)", "SUM(o.weight)"):
        query = (
            f"SELECT u.id, {call} AS t, COUNT(o.at) AS n FROM silver.u AS u {JOIN} GROUP BY u.id"
        )
        assert tables(query) == []
        assert maintenance_of(query, types=TYPES)[0].rule == "affected_group_recompute"


def test_other_state_has_the_numbers_that_it_has_without_this_rule() -> None:
    inner = f"SELECT u.id, COUNT(o.at) AS n FROM silver.u AS u {JOIN} GROUP BY u.id"
    query = f"SELECT g.n, COUNT(*) AS many FROM ({inner}) AS g GROUP BY g.n"
    assert tables(query) == ["state.100", "state.1"]
    # The same with a condition on both sides, which is not taken apart.
    both = query.replace(JOIN, f"{JOIN} AND o.ratio > u.ratio")
    assert tables(both) == ["state.0", "state.1"]


def test_operators_are_described_in_the_authors_words() -> None:
    found, error = maintenance_of(SUMS.format(JOIN, "u.id, u.name"), types=TYPES)
    assert error is None
    words = [one.operator for one in found.operators]
    assert "aggregate COUNT(at), SUM(amount), AVG(user_id) by user_id" in words
    assert "outer join on id = user_id" in words
