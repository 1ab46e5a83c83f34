"""Which maintenance strategy a view gets, and its obstacles."""

from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Filter,
    Node,
    Project,
    Scan,
    TopK,
    Window,
    children,
)
from spark_jobs.graph.maintenance.clauses import next_tied
from spark_jobs.graph.maintenance.delta import Step
from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.program import derive
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.state_columns import state_columns
from tests.properties.maintenance import InDuckDb, canonical

TYPES = {"silver.a": {"k": "int", "x": "decimal(9,2)", "y": "double"}}


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("SELECT a.k FROM silver.a AS a WHERE a.x > 1", "row_deltas"),
        ("SELECT a.k, MAX(a.x) AS m FROM silver.a AS a GROUP BY a.k", "affected_group_recompute"),
        (
            "SELECT a.k, SUM(a.x * (1 - a.x)) AS s FROM silver.a AS a GROUP BY a.k",
            "aggregate_state",
        ),
        ("SELECT COUNT(*) AS n FROM silver.a AS a", "aggregate_state"),
        (
            "SELECT SUM(CASE WHEN k = 1 THEN x ELSE 0 END) AS s FROM silver.a GROUP BY k",
            "aggregate_state",
        ),
        (
            "SELECT SUM(CASE WHEN k = 1 THEN x ELSE y END) AS s FROM silver.a GROUP BY k",
            "affected_group_recompute",
        ),
        ("SELECT SUM((2 * a.x - a.k) / 3) AS s FROM silver.a AS a GROUP BY a.k", "aggregate_state"),
        ("SELECT SUM(a.k % a.x / 1.5) AS s FROM silver.a AS a GROUP BY a.k", "aggregate_state"),
        ("SELECT SUM(a.k / 3) AS s FROM silver.a AS a GROUP BY a.k", "affected_group_recompute"),
        ("SELECT SUM(a.x / a.y) AS s FROM silver.a AS a GROUP BY a.k", "affected_group_recompute"),
        ("SELECT a.k FROM silver.a AS a ORDER BY a.k LIMIT 3", "aggregate_state"),
        # The type of the mean is that of the values, which is not known here.
        (
            "SELECT AVG(IF(a.k > 1, 1.5, 2)) AS m FROM silver.a AS a GROUP BY a.k",
            "affected_group_recompute",
        ),
        (
            "SELECT SUM(IF(a.k > 1, 1.5, 2)) AS s FROM silver.a AS a GROUP BY a.k",
            "aggregate_state",
        ),
        # In another order of adding a DOUBLE may come out otherwise.
        ("SELECT a.k, SUM(a.y) AS s FROM silver.a AS a GROUP BY a.k", "affected_group_recompute"),
        (
            (
                "SELECT s.k, SUM(s.v) AS v FROM (SELECT a.k, a.x * a.x AS v FROM silver.a AS a) s "
                "GROUP BY s.k HAVING SUM(s.v) > (SELECT SUM(b.x) FROM silver.a AS b)"
            ),
            "aggregate_state",
        ),
    ],
)
def test_the_rule_follows_from_the_sql(query: str, rule: str) -> None:
    found, error = maintenance_of(canonical(query), types=TYPES)
    assert error is None
    assert found.rule == rule


@pytest.mark.parametrize(
    ("query", "obstacle"),
    [
        ("SELECT STDDEV(a.x) AS m FROM silver.a AS a", "DEPENDS_ON_EVERY_ROW"),
        ("SELECT a.k, SUM(a.x) OVER () AS s FROM silver.a AS a", "DEPENDS_ON_EVERY_ROW"),
        (
            "SELECT a.k, COLLECT_LIST(a.x) AS l FROM silver.a AS a GROUP BY a.k",
            "ORDER_DEPENDENT",
        ),
        # Operators carry the columns that are named: HASH(*) would be one of fewer columns.
        ("SELECT a.k, HASH(*) AS h FROM silver.a AS a", "UNRESOLVED_COLUMN"),
        ("SELECT a.k, STRUCT(a.*) AS s FROM silver.a AS a", "UNRESOLVED_COLUMN"),
        ("SELECT a.k, CURRENT_DATE AS d FROM silver.a AS a", "CLOCK_OUTSIDE_WHERE"),
        (
            (
                "SELECT a.k FROM silver.a AS a WHERE a.x > (SELECT MAX(b.x) FROM silver.a AS b "
                "WHERE b.k < a.k)"
            ),
            "UNSUPPORTED_SUBQUERY",
        ),
    ],
)
def test_an_obstacle_is_named(query: str, obstacle: str) -> None:
    found, error = maintenance_of(canonical(query), types=TYPES)
    assert error is not None
    assert found.rule == "full"
    assert found.obstacle == obstacle
    assert found.suggestion
    assert str(error) == f"{obstacle}: {found.detail}"


@pytest.mark.parametrize("kind", ["map<string,int>", "array<map<int,int>>", "variant"])
def test_a_column_without_equality_is_an_obstacle(kind: str) -> None:
    query = canonical("SELECT a.k, a.t FROM silver.a AS a")
    found, error = maintenance_of(query, types={"silver.a": {"k": "int", "t": kind}})
    assert error is not None
    assert found.obstacle == "INCOMPARABLE_TYPE"
    assert kind in error.text
    assert maintenance_of(query, types={"silver.a": {"k": "int", "t": "string"}})[1] is None


def test_changed_groups_are_read_alone() -> None:
    tree = build(
        canonical(
            "SELECT b.k, MAX(a.x) AS m FROM silver.a AS a JOIN silver.b AS b ON a.k = b.k "
            "GROUP BY b.k"
        )
    )
    program = derive(tree, InDuckDb(frozenset({"silver.a"})), {}, last=DeleteInsert())
    assert program.change is not None
    written = [to_sql(step.query) for step in program.steps if isinstance(step, Step)]
    texts = [one for one in (*written, to_sql(program.change)) if "MAX(" in one]
    assert texts
    for text in texts:
        # The rows of both tables that have the keys of the changed groups.
        assert text.count("LEFT SEMI JOIN") >= 2, text


# The parser has one class and one text of its own for each of these three.
_SORTED = ("SORT_ARRAY(a.l)", "SORT_ARRAY(a.l, FALSE)", "ARRAY_SORT(a.l)")


def operators(query: str) -> list[Node]:
    """The operators of a query, from the root down."""
    found = [build(query)[0]]
    for one in found:
        found += children(one)
    return found


@pytest.mark.parametrize(
    ("query", "kind", "attribute"),
    [
        (
            "SELECT a.k, MAX({}) AS u, MAX({}) AS v, MAX({}) AS w FROM silver.b AS a GROUP BY a.k",
            Aggregate,
            "aggregates",
        ),
        (
            "SELECT {} AS u, {} AS v, {} AS w FROM silver.b AS a GROUP BY {}, {}, {}",
            Aggregate,
            "keys",
        ),
        (
            (
                "SELECT MAX({}) OVER (PARTITION BY a.k) AS u, MAX({}) OVER (PARTITION BY a.k) "
                "AS v, MAX({}) OVER (PARTITION BY a.k) AS w FROM silver.b AS a"
            ),
            Window,
            "functions",
        ),
    ],
)
def test_values_that_spark_distinguishes_stay_distinct(
    query: str, kind: type[Node], attribute: str
) -> None:
    found = [one for one in operators(query.format(*_SORTED, *_SORTED)) if isinstance(one, kind)]
    values = vars(found[0])[attribute]
    assert len({to_sql(value) for _, value in values}) == len(_SORTED)


def test_what_an_or_says_of_an_input_alone_filters_it() -> None:
    found = operators(
        "SELECT a.k FROM silver.a AS a JOIN silver.b AS b ON a.k = b.k JOIN silver.c AS c "
        "ON a.k = c.k WHERE (a.x = 1 AND b.y = 2 AND c.z = 3) "
        "OR (a.x = 4 AND b.y > a.y AND c.z < 6)"
    )
    filters = {to_sql(one.condition) for one in found if isinstance(one, Filter)}
    assert filters == {"x = 1 OR x = 4", "z = 3 OR z < 6"}


def test_an_order_that_differs_from_the_output_column_is_a_separate_column() -> None:
    found = operators("SELECT {} AS u FROM silver.b AS a ORDER BY {}, {} LIMIT 2".format(*_SORTED))
    top = next(one for one in found if isinstance(one, TopK))
    assert len(top.columns) == len(_SORTED)
    assert len({to_sql(one) for one in top.order}) == len(top.order)


def test_windows_with_different_partitions_are_separate_operators() -> None:
    counts = ", ".join(
        f"COUNT(*) OVER (PARTITION BY {one}) AS n{i}" for i, one in enumerate(_SORTED)
    )
    found = operators(f"SELECT {counts} FROM silver.b AS a")
    assert sum(isinstance(one, Window) for one in found) == len(_SORTED)


def test_a_field_is_not_taken_for_the_key_of_its_name() -> None:
    root = operators("SELECT (a.s).k AS f, a.k AS k FROM silver.b AS a GROUP BY a.s, a.k")[0]
    assert isinstance(root, Project)
    assert [to_sql(value) for _, value in root.outputs] == ["(s__2).k", "k__2"]


def test_a_clause_may_read_an_output_by_its_name_or_its_number() -> None:
    """Canonical queries have these written out, as far as the columns of all tables are known."""
    by_name = "SELECT a.k, SUM(a.x) AS total FROM silver.a AS a GROUP BY a.k HAVING total > 1"
    _, held = operators(by_name)[:2]
    assert isinstance(held, Filter)
    assert to_sql(held.condition) == "(sum) > 1"
    by_rank = (
        "SELECT a.k, RANK() OVER (PARTITION BY a.k ORDER BY a.x) AS place FROM silver.a AS a "
        "QUALIFY place = 1"
    )
    _, held = operators(by_rank)[:2]
    assert isinstance(held, Filter)
    assert to_sql(held.condition) == "(rank) = 1"
    top = operators("SELECT a.k AS k, a.x AS x FROM silver.a AS a ORDER BY 2 DESC, 1 LIMIT 3")[0]
    assert isinstance(top, TopK)
    assert [one.this.name for one in top.order] == [top.columns[1], top.columns[0]]


def test_a_condition_on_one_table_is_tested_before_the_join() -> None:
    query = "SELECT b.x FROM silver.a AS a CROSS JOIN silver.b AS b WHERE a.y > 1 AND b.x > 1"
    held = [one for one in operators(query) if isinstance(one, Filter)]
    assert sorted(to_sql(one.condition) for one in held) == ["x > 1", "y > 1"]
    assert all(isinstance(one.child, Scan) for one in held)


def test_the_next_join_is_one_that_a_condition_ties() -> None:
    conditions = [parse("a > 1"), parse("a = c"), parse("d = b")]
    assert next_tied([("b",), ("c",)], {"a"}, conditions) == 1
    assert next_tied([("b",), ("c",)], {"d"}, conditions) == 0
    assert next_tied([("b",), ("c",)], {"x"}, conditions) == 0


def test_aggregate_state_is_described_in_terms_of_sql() -> None:
    query = "SELECT a.k, SUM(a.x) AS s, COUNT(a.y) AS n FROM silver.a AS a GROUP BY a.k"
    assert state_columns(query, TYPES) == {
        "state.0": (
            ("k0", "k"),
            ("n", "COUNT(*)"),
            ("nn0", "COUNT(x)"),
            ("sum0", "SUM(x)"),
            ("nn1", "COUNT(y)"),
        )
    }


def test_extremes_without_group_by_are_stored() -> None:
    query = "SELECT MAX(a.x) AS most, MIN(a.x) AS least, SUM(a.x) AS s FROM silver.a AS a"
    assert dict(state_columns(query, TYPES)["state.0"]) == {
        "n": "COUNT(*)",
        "nn0": "COUNT(x)",
        "sum0": "SUM(x)",
        "min0": "MIN(x)",
        "max0": "MAX(x)",
    }


@pytest.mark.parametrize("kind", ["array<int>", "interval day", ""])
def test_extremes_of_other_than_plain_values_are_not_stored(kind: str) -> None:
    types = {"silver.a": {"x": kind}}
    found, _ = maintenance_of("SELECT MAX(a.x) AS m FROM silver.a AS a", types=types)
    assert found.obstacle == "DEPENDS_ON_EVERY_ROW"


def test_a_session_window_is_not_a_row_key() -> None:
    session = "SESSION_WINDOW(a.s, '5 minutes')"
    root, _ = build(f"SELECT a.k, COUNT(*) AS n FROM silver.b AS a GROUP BY a.k, {session}")
    while not isinstance(root, Aggregate):
        (root,) = children(root)
    assert (len(root.keys), [value.name for _, value in root.row_keys]) == (2, ["k"])
