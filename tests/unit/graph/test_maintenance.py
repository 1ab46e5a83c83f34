"""Which maintenance strategy a view gets, and its obstacles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from sqlglot import exp

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Scan,
    TopK,
    Union,
    Window,
    children,
)
from spark_jobs.graph.maintenance.clauses import join_all, next_tied
from spark_jobs.graph.maintenance.column_types import (
    EXACT,
    column_types,
    expression_types,
    is_exact,
    of_one_type,
)
from spark_jobs.graph.maintenance.delta import Deltas, StateUpdate, Step
from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.incomparable import MAP, VARIANT, is_computed
from spark_jobs.graph.maintenance.keys import Keys, restricted
from spark_jobs.graph.maintenance.program import Program, derive
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.maintenance.relation import When, Writer, whole_groups
from spark_jobs.graph.maintenance.scope import named
from spark_jobs.graph.maintenance.state_columns import state_columns
from spark_jobs.graph.maintenance.states import Cutter
from tests.properties.maintenance import NOON, InDuckDb, canonical

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
        (
            "SELECT SUM(CAST(a.k AS DECIMAL(9, 2)) / 3) AS s FROM silver.a AS a GROUP BY a.k",
            "aggregate_state",
        ),
        # Texts are added up as DOUBLE.
        (
            "SELECT SUM(IF(a.k > 1, '0.1', '0.2')) AS s FROM silver.a AS a GROUP BY a.k",
            "affected_group_recompute",
        ),
        ("SELECT MAX(a.y) AS m FROM silver.a AS a", "aggregate_state"),
        # The precision of a product is not known here, but that of a comparison is.
        (
            "SELECT MAX(s.v > 1) AS m FROM (SELECT a.x * a.x AS v FROM silver.a AS a) AS s",
            "aggregate_state",
        ),
        ("SELECT a.k FROM silver.a AS a ORDER BY a.k LIMIT 3", "aggregate_state"),
        # Constants, not positions.
        (
            (
                "SELECT a.k FROM silver.a AS a UNION ALL SELECT b.k FROM silver.b AS b "
                "ORDER BY 'x', k LIMIT 3"
            ),
            "aggregate_state",
        ),
        (
            (
                "SELECT a.k FROM silver.a AS a UNION ALL SELECT b.k FROM silver.b AS b "
                "ORDER BY 1e0, k LIMIT 3"
            ),
            "aggregate_state",
        ),
        # EXISTS over an array is no subquery.
        ("SELECT a.k FROM silver.a AS a WHERE EXISTS(ARRAY(a.k), v -> v > 1)", "row_deltas"),
        (
            (
                "SELECT a.k FROM silver.a AS a WHERE EXISTS(ARRAY(a.k), v -> v > 1) "
                "OR a.k IN (SELECT b.k FROM silver.a AS b)"
            ),
            "aggregate_state",
        ),
        (
            "SELECT a.k IN (SELECT b.k FROM silver.a AS b) AS v FROM silver.a AS a",
            "aggregate_state",
        ),
        # Only the query in parentheses is known to have the column.
        (
            "SELECT v FROM silver.d AS d CROSS JOIN (SELECT a.k AS v FROM silver.a AS a) AS s",
            "row_deltas",
        ),
        # The type of the mean is that of the values, which is not known here.
        (
            "SELECT AVG(ROUND(a.x, 1)) AS m FROM silver.a AS a GROUP BY a.k",
            "affected_group_recompute",
        ),
        (
            "SELECT SUM(IF(a.k > 1, 1.5, 2)) AS s FROM silver.a AS a GROUP BY a.k",
            "aggregate_state",
        ),
        (
            (
                "SELECT window.start AS since, COUNT(*) AS n FROM silver.b AS b "
                "GROUP BY WINDOW(b.s, '1 hour')"
            ),
            "aggregate_state",
        ),
        # Only Spark knows how many digits such a number has.
        (
            (
                "SELECT s.k, SUM(s.v) AS v FROM (SELECT a.k, a.x + NULL AS v FROM silver.a AS a) s "
                "GROUP BY s.k"
            ),
            "aggregate_state",
        ),
        (
            (
                "SELECT r.k, SUM(COALESCE(r.v, r.k)) AS v, AVG(r.x) AS m FROM (SELECT s.k, s.x, "
                "s.v + 1 AS v FROM (SELECT a.k, a.x, a.x + NULL AS v FROM silver.a AS a) AS s) "
                "AS r GROUP BY r.k"
            ),
            "aggregate_state",
        ),
        (
            "SELECT a.k, n FROM silver.a AS a, LATERAL EXPLODE(SEQUENCE(1, a.k)) AS t(n)",
            "row_deltas",
        ),
        (
            (
                "SELECT a.k, n FROM silver.a AS a "
                "JOIN LATERAL EXPLODE(SEQUENCE(1, a.k)) AS t(n) ON TRUE"
            ),
            "row_deltas",
        ),
        # A new row may join two sessions, so that their counts cannot be added to.
        (
            "SELECT COUNT(*) AS n FROM silver.b AS b GROUP BY b.k, SESSION_WINDOW(b.s, '1 hour')",
            "affected_group_recompute",
        ),
        # Of a quotient that may be one of integers, no sum is kept, although its type is known.
        (
            "SELECT a.k, AVG(a.k / COALESCE(a.x, 1)) AS m FROM silver.a AS a GROUP BY a.k",
            "affected_group_recompute",
        ),
        (
            "SELECT MAX(s.v) AS m FROM (SELECT a.x + NULL AS v FROM silver.a AS a) AS s",
            "aggregate_state",
        ),
        # Of whatever type, values that are not NULL can be counted.
        ("SELECT a.k, COUNT(ARRAY(a.y)) AS n FROM silver.a AS a GROUP BY a.k", "aggregate_state"),
        ("SELECT b.k, COUNT(b.z) AS n FROM silver.b AS b GROUP BY b.k", "aggregate_state"),
        (
            "SELECT a.k, COUNT(a.x, a.y) AS n FROM silver.a AS a GROUP BY a.k",
            "affected_group_recompute",
        ),
        # Rows of a generator do not hide the types of the others.
        (
            (
                "SELECT a.k, SUM(a.x) AS s FROM silver.a AS a LATERAL VIEW EXPLODE(ARRAY(1)) g "
                "AS n GROUP BY a.k"
            ),
            "aggregate_state",
        ),
        (
            "SELECT a.k, MAP('x', MAX(a.x)) AS m FROM silver.a AS a GROUP BY a.k",
            "affected_group_recompute",
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
            "SELECT COUNT(DISTINCT a.k) AS n, STDDEV(a.x) AS m FROM silver.a AS a",
            "DEPENDS_ON_EVERY_ROW",
        ),
        ("SELECT MAP('x', a.x) AS m FROM silver.a AS a", "INCOMPARABLE_TYPE"),
        ("SELECT a.k, PARSE_JSON('1') AS v FROM silver.a AS a", "INCOMPARABLE_TYPE"),
        (
            (
                "SELECT s.k, VARIANT_GET(s.j, '$', 'int') AS x FROM (SELECT a.k, "
                "PARSE_JSON('1') AS j FROM silver.a AS a) AS s JOIN silver.b AS b ON b.k = s.k"
            ),
            "INCOMPARABLE_TYPE",
        ),
        (
            (
                "SELECT b.k, s.j FROM silver.b AS b JOIN (SELECT a.k, MAP('x', a.x) AS j "
                "FROM silver.a AS a) AS s ON b.k = s.k"
            ),
            "INCOMPARABLE_TYPE",
        ),
        (
            (
                "SELECT s.j, COUNT(*) OVER (PARTITION BY s.k) AS n FROM (SELECT a.k, "
                "MAP('x', a.x) AS j FROM silver.a AS a) AS s"
            ),
            "INCOMPARABLE_TYPE",
        ),
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
        # Over no rows it is an empty array, while a row without a group has NULL.
        (
            (
                "SELECT a.k, (SELECT APPROX_TOP_K(b.x) FROM silver.a AS b WHERE b.k = a.k) AS t "
                "FROM silver.a AS a"
            ),
            "UNSUPPORTED_SUBQUERY",
        ),
        (
            (
                "SELECT a.k, HLL_SKETCH_ESTIMATE((SELECT HLL_SKETCH_AGG(b.x) FROM silver.a AS b "
                "WHERE b.k = a.k)) AS n FROM silver.a AS a"
            ),
            "UNSUPPORTED_SUBQUERY",
        ),
        (
            (
                "SELECT a.k, THETA_SKETCH_ESTIMATE((SELECT THETA_SKETCH_AGG(b.x) "
                "FROM silver.a AS b WHERE b.k = a.k)) AS n FROM silver.a AS a"
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


_NOT_IN = "SELECT a.k FROM silver.a AS a WHERE {} NOT IN (SELECT {} FROM silver.a AS b{})"


@pytest.mark.parametrize(
    ("value", "other", "more", "followed"),
    [
        ("a.y", "b.y", "", False),
        ("a.k", "CAST(b.y AS FLOAT)", "", False),
        ("a.k / 2", "b.k", "", False),
        ("a.k", "b.x", "", True),
        # These are joined like all other equalities.
        ("(a.k, a.y)", "b.k, b.y", "", True),
        ("a.y", "b.y", " WHERE b.k = a.k", True),
    ],
)
def test_not_in_of_values_with_two_zeros_is_an_obstacle(
    value: str, other: str, more: str, followed: bool
) -> None:
    query = _NOT_IN.format(value, other, more)
    found, error = maintenance_of(query, types=TYPES)
    assert (error is None) is followed
    assert followed or found.obstacle == Obstacle.UNSUPPORTED_SUBQUERY


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
        # The rows of both tables that have the keys of the changed groups, before grouping.
        grouped = text[text.index("MAX(") : text.index("GROUP BY")]
        assert grouped.count("LEFT SEMI JOIN") == 2, text


def test_changed_partitions_are_read_alone() -> None:
    tree = build(
        canonical(
            "SELECT a.k, RANK() OVER (PARTITION BY a.k ORDER BY a.y) AS place FROM silver.a AS a"
        )
    )
    program = derive(tree, InDuckDb(frozenset({"silver.a"})), {}, last=DeleteInsert())
    assert program.change is not None
    (ranked,) = (one for one in program.change.find_all(exp.Select) if is_ranked(one))
    assert "LEFT SEMI JOIN" in to_sql(ranked.args["from_"])
    # The table and the published rows, once each.
    assert to_sql(program.change).count("LEFT SEMI JOIN") == 2


def is_ranked(query: exp.Select) -> bool:
    return any(one.find(exp.Window) for one in query.selects)


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        # Of changed groups, only the change is added to the state.
        ("SELECT a.k, SUM(a.x) AS s FROM silver.a AS a GROUP BY a.k", 7),
        # State with a MAX is written anew.
        ("SELECT MAX(a.x) AS m FROM silver.a AS a", 14),
        # The state of b does not change.
        (
            (
                "SELECT s.k, t.n FROM (SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k) "
                "AS s JOIN (SELECT b.k, COUNT(*) AS n FROM silver.b AS b GROUP BY b.k) AS t "
                "ON s.k = t.k"
            ),
            9,
        ),
    ],
)
def test_the_tables_that_a_refresh_reads_are_counted(query: str, tables: int) -> None:
    root, outputs = build(canonical(query))
    cutter = Cutter(TYPES)
    program = derive(
        (cutter.cut(root), outputs),
        InDuckDb(frozenset({"silver.a"})),
        {},
        last=DeleteInsert(),
        states=cutter.states,
    )
    assert program.tables == tables


def test_a_program_does_not_compute_with_the_clock() -> None:
    tree = build(canonical("SELECT a.k, CURRENT_DATE() AS today FROM silver.a AS a"))
    with pytest.raises(NotIncrementalError, match="CLOCK_OUTSIDE_WHERE"):
        derive(tree, InDuckDb(frozenset({"silver.a"})), {}, last=DeleteInsert())


def test_operators_are_listed_as_they_are_written() -> None:
    query = (
        "SELECT a.k, MAX(a.x) AS m FROM silver.a AS a WHERE a.k = 1 OR a.x = 2 GROUP BY a.k "
        "UNION ALL SELECT b.k, RANK() OVER (PARTITION BY b.k ORDER BY b.x) FROM silver.b AS b"
    )
    found, _ = maintenance_of(canonical(query), types=TYPES)
    assert [one.operator for one in found.operators] == [
        "union all",
        "aggregate MAX(x) by k",
        "filter k = 1 OR x = 2",
        "scan silver.a",
        "window rank by k",
        "scan silver.b",
    ]
    query = (
        "SELECT s.k, SUM(s.x) FILTER (WHERE s.x > 1) OVER (PARTITION BY s.k) AS v, "
        "FIRST_VALUE(s.x) IGNORE NULLS OVER (PARTITION BY s.k ORDER BY s.x) AS w FROM "
        "(SELECT DISTINCT a.k, a.x FROM silver.a AS a LATERAL VIEW EXPLODE(ARRAY(1)) g AS n) AS s "
        "JOIN (SELECT COUNT(DISTINCT b.k) AS n FROM silver.b AS b) AS t ON s.k = t.n "
        "LEFT JOIN silver.c AS c ON s.k = c.k "
        "WHERE EXISTS (SELECT 1 FROM silver.d AS d WHERE d.k = s.k) "
        "AND NOT EXISTS (SELECT 1 FROM silver.e AS e WHERE e.k = s.k) ORDER BY s.k LIMIT 3"
    )
    found, _ = maintenance_of(query, types=TYPES)
    assert [one.operator for one in found.operators] == [
        "first rows by k",
        "aggregate COUNT(*) by k, v, w",
        "window sum, first_value by k",
        "anti join on k = k",
        "semi join on k = k",
        "outer join on k = k",
        "join of 2",
        "aggregate distinct rows by k, x",
        "generate",
        "scan silver.a",
        "aggregate COUNT(k) over all rows",
        "aggregate distinct rows by k",
        *("scan silver.b", "scan silver.c", "scan silver.d", "scan silver.e"),
    ]


COUNTS = "SELECT b.k, COUNT(*) AS n FROM silver.b AS b GROUP BY b.k"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "SELECT COUNT(DISTINCT b.k, b.x) AS n FROM silver.b AS b",
            "aggregate COUNT(IF(k IS NULL OR x IS NULL, NULL, 1)) over all rows",
        ),
        (
            "SELECT SUM(DISTINCT b.x) FILTER (WHERE b.k > 1) AS n FROM silver.b AS b",
            "aggregate SUM(IF(k > 1, x, NULL)) over all rows",
        ),
        (
            f"SELECT s.k, RANK() OVER (ORDER BY s.n) AS r FROM ({COUNTS}) AS s",
            "window rank over all rows",
        ),
        (
            f"SELECT s.k, s.n FROM ({COUNTS}) AS s LIMIT 3",
            "first rows",
        ),
    ],
)
def test_all_rows_and_distinct_values_have_words_of_the_author(query: str, words: str) -> None:
    found, _ = maintenance_of(query, types=TYPES)
    assert found.operators[0].operator == words


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b.k FROM silver.b AS b WHERE b.x > 1",
        "SELECT b.k, g.n FROM silver.b AS b LATERAL VIEW EXPLODE(b.l) g AS n",
        "SELECT b.k FROM silver.b AS b JOIN silver.c AS c ON b.k = c.k",
        "SELECT b.k, c.x FROM silver.b AS b LEFT JOIN silver.c AS c ON b.k = c.k",
        "SELECT b.k FROM silver.b AS b UNION ALL SELECT c.k FROM silver.c AS c",
        "SELECT b.k, MAX(b.x) AS m FROM silver.b AS b GROUP BY b.k",
        "SELECT MAX(b.x) AS m FROM silver.b AS b GROUP BY b.k",
        "SELECT MAX(b.x) AS m FROM silver.b AS b",
        "SELECT b.k, RANK() OVER (PARTITION BY b.k ORDER BY b.x) AS r FROM silver.b AS b",
        "SELECT b.k FROM silver.b AS b ORDER BY b.k LIMIT 3",
        "SELECT v.k FROM VALUES (1) AS v(k)",
    ],
)
def test_without_a_changed_table_nothing_changes(query: str) -> None:
    """The types of b are those of a, which is the only table that changed."""
    types = {"silver.b": TYPES["silver.a"]}
    root, outputs = build(query)
    tables = InDuckDb(frozenset({"silver.a"}))
    assert Deltas(Writer(tables, {})).delta(root) is None
    cutter = Cutter(types)
    program = derive(
        (cutter.cut(root), outputs), tables, {}, last=DeleteInsert(), states=cutter.states
    )
    assert program.change is None
    assert not any(isinstance(step, Step) for step in program.steps)
    updates = [step for step in program.steps if isinstance(step, StateUpdate)]
    assert [(one.update, one.change) for one in updates] == [(None, None)] * len(cutter.states)


@pytest.mark.parametrize(("large", "steps"), [(True, 1), (False, 0)])
def test_the_change_is_joined_before_a_large_table_is(large: bool, steps: int) -> None:
    root, outputs = build(
        "SELECT a.k FROM silver.a AS a JOIN silver.b AS b ON a.k = b.x JOIN silver.c AS c "
        "ON b.x = c.y"
    )
    tables = InDuckDb(frozenset({"silver.a"}), all_large=large)
    program = derive((root, outputs), tables, {}, last=DeleteInsert())
    assert program.change is not None
    queries = [step.query for step in program.steps if isinstance(step, Step)]
    assert len(queries) == 1 + steps
    joined = [one for one in queries if one.find(exp.Join)]
    assert [to_sql(one).count("k = x") for one in joined] == [1] * steps
    assert to_sql(program.change).count("k = x") == 1 - steps
    assert to_sql(program.change).count("x = y") == 1


def changed(query: str, clocks: Mapping[When, datetime] | None = None) -> Program:
    """The program of a view after a change of silver.a."""
    root, outputs = build(canonical(query))
    cutter = Cutter(TYPES)
    built = cutter.cut(root), outputs
    tables = InDuckDb(frozenset({"silver.a"}))
    return derive(built, tables, clocks or {}, last=DeleteInsert(), states=cutter.states)


def read(program: Program) -> Counter[str]:
    """How often a program reads each relation."""
    queries = [step.query for step in program.steps if isinstance(step, Step)]
    queries += [program.change] if program.change is not None else []
    return Counter(table.name for one in queries for table in one.find_all(exp.Table))


def test_rows_that_did_not_change_are_read_only_for_a_condition_on_the_clock() -> None:
    query = "SELECT a.k FROM silver.a AS a WHERE a.x > 1"
    assert read(changed(query)) == {"silver_a_change": 1}
    clocks = {When.OLD: NOON, When.NEW: NOON + timedelta(days=1)}
    assert read(changed(query, clocks)) == {"silver_a_change": 1}
    # For the rows that come in, and for those that leave.
    found = read(changed(f"{query} AND a.d <= CURRENT_DATE()", clocks))
    assert found == {"silver_a_change": 1, "silver_a_old": 2}


def test_first_rows_of_a_table_that_did_not_change_are_not_read() -> None:
    query = (
        "SELECT a.k FROM silver.a AS a UNION ALL SELECT s.k FROM "
        "(SELECT {} AS k FROM silver.b AS b ORDER BY k LIMIT 2) AS s"
    )
    assert read(changed(query.format("CAST(b.k AS INT)"))) == {"silver_a_change": 1}
    # For the types of the union: none of these rows.
    assert read(changed(query.format("b.k"))) == {"silver_a_change": 1, "state_0_old": 1}


def test_of_aggregate_state_only_the_changed_groups_are_read() -> None:
    program = changed("SELECT a.k, SUM(a.x) AS s FROM silver.a AS a GROUP BY a.k")
    name = InDuckDb(frozenset()).change("state.0").name
    # Rows that cancel out need not be found before they are added up.
    assert [one.name for one in program.steps if isinstance(one, Step)] == ["__groups_2", name]
    [change] = [one.query for one in program.steps if isinstance(one, Step) and one.name == name]
    # Before the change and after it.
    assert to_sql(change).count("LEFT SEMI JOIN __groups") == 2


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


@pytest.mark.parametrize("field", ["a.s.k", "a.s.t.k", "a.s.t.u.k"])
def test_a_field_may_be_written_without_parentheses(field: str) -> None:
    root = operators(f"SELECT {field} AS f FROM silver.b AS a")[0]
    assert isinstance(root, Project)
    assert [to_sql(value) for _, value in root.outputs] == [field.replace("a.s", "(s)")]


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
    top = operators("SELECT a.k AS k FROM silver.a AS a LIMIT 3")[0]
    assert isinstance(top, TopK)
    assert top.order == ()


def test_a_condition_on_one_table_is_tested_before_the_join() -> None:
    query = "SELECT b.x FROM silver.a AS a CROSS JOIN silver.b AS b WHERE a.y > 1 AND b.x > 1"
    held = [one for one in operators(query) if isinstance(one, Filter)]
    assert sorted(to_sql(one.condition) for one in held) == ["x > 1", "y > 1"]
    assert all(isinstance(one.child, Scan) for one in held)


def filters(query: str) -> list[tuple[str, type[Node]]]:
    """The conditions from the top down, each with the kind of operator below it."""
    found = [one for one in operators(query) if isinstance(one, Filter)]
    return [(to_sql(one.condition), type(one.child)) for one in found]


def test_a_condition_on_the_left_side_of_an_outer_join_is_tested_before_it() -> None:
    query = (
        "SELECT a.k, b.x FROM silver.a AS a LEFT JOIN silver.b AS b ON a.k = b.k "
        "WHERE b.x > 1 AND a.k > 5 AND b.y > 2 AND 3 > 4"
    )
    assert filters(query) == [
        ("3 > 4", Filter),
        ("y > 2", Filter),
        ("x > 1", LeftJoin),
        ("k > 5", Scan),
    ]


def test_a_condition_on_the_left_side_passes_those_on_the_right_side() -> None:
    query = (
        "SELECT a.k, b.x FROM silver.a AS a LEFT JOIN silver.b AS b ON a.k = b.k "
        "WHERE b.x > 1 AND b.y > 2 AND a.k > 5"
    )
    assert filters(query) == [("y > 2", Filter), ("x > 1", LeftJoin), ("k > 5", Scan)]


def test_a_condition_on_no_table_is_one_of_the_join() -> None:
    query = "SELECT a.k FROM silver.a AS a CROSS JOIN silver.b AS b WHERE 1 > 2 AND a.k = b.k"
    [join] = [one for one in operators(query) if isinstance(one, Join)]
    assert [to_sql(one) for one in join.conditions] == ["1 > 2", "k = k__2"]
    assert filters(query) == []


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT a.k FROM silver.a AS a GROUP BY a.k", ["k__2"]),
        ("SELECT MAX(a.k + 1) AS u FROM silver.a AS a HAVING MAX(a.k + 1) > 2", ["max"]),
        (
            "SELECT SIZE(COLLECT_SET(a.k)) + MAX(a.x) AS u FROM silver.a AS a",
            ["collect_set", "max"],
        ),
        ("SELECT 1 AS one FROM silver.a AS a HAVING TRUE", ["rows"]),
        ("SELECT 1 AS one FROM silver.a AS a GROUP BY a.k + 1, YEAR(a.d)", ["key", "year"]),
    ],
)
def test_a_group_has_its_keys_and_each_aggregate_once(query: str, columns: list[str]) -> None:
    [group] = [one for one in operators(query) if isinstance(one, Aggregate)]
    assert list(group.columns) == columns


def test_a_window_that_is_written_twice_is_computed_once() -> None:
    rank = "RANK() OVER (PARTITION BY a.k ORDER BY a.x)"
    first = "FIRST_VALUE(a.x) IGNORE NULLS OVER (PARTITION BY a.k ORDER BY a.x)"
    query = f"SELECT {rank} AS u, {first} AS v FROM silver.a AS a QUALIFY {rank} = 1"
    [window] = [one for one in operators(query) if isinstance(one, Window)]
    assert [name for name, _ in window.functions] == ["rank", "window"]


def test_rows_are_restricted_by_all_keys() -> None:
    rows = parse("SELECT k, x FROM t")
    keys = Keys("changed", ((named("k"), "k0"), (parse("x OR y"), "k1")))
    assert to_sql(restricted(rows, ("k", "x"), keys)) == (
        "SELECT __t.k, __t.x FROM (SELECT k, x FROM t) AS __t LEFT SEMI JOIN changed AS __k "
        "ON __t.k IS NOT DISTINCT FROM __k.k0 AND (__t.x OR __t.y) IS NOT DISTINCT FROM __k.k1"
    )
    assert restricted(rows, ("k",), Keys("changed", ())) is rows
    assert restricted(rows, ("k",), None) is rows


def test_inputs_are_joined_in_the_order_of_their_conditions() -> None:
    inputs = [([name], parse(f"SELECT {name} FROM t{name}")) for name in ("a", "b", "c")]
    found = join_all(inputs, [parse("a = c"), parse("b > a + c")], "w")
    assert to_sql(found) == (
        "SELECT a, b, c, w FROM (SELECT a FROM ta) AS t1 "
        "INNER JOIN (SELECT c FROM tc) AS t2 ON a = c "
        "INNER JOIN (SELECT b FROM tb) AS t3 ON b > a + c"
    )
    assert to_sql(join_all(inputs[:2], [])) == (
        "SELECT a, b FROM (SELECT a FROM ta) AS t1 CROSS JOIN (SELECT b FROM tb) AS t2"
    )


def test_the_next_join_is_one_that_a_condition_ties() -> None:
    conditions = [parse("a > 1"), parse("a = c"), parse("d = b")]
    assert next_tied([("b",), ("c",)], {"a"}, conditions) == 1
    assert next_tied([("b",), ("c",)], {"d"}, conditions) == 0
    assert next_tied([("b",), ("c",)], {"x"}, conditions) == 0
    # A condition that reads a third input does not tie the second.
    three = [parse("a = b + c"), parse("a = d")]
    assert next_tied([("b",), ("c",), ("d",)], {"a"}, three) == 2
    # A condition on an input alone ties it to nothing.
    assert next_tied([("b",), ("c",)], {"a"}, [parse("b > 1"), parse("a = c")]) == 1


def test_aggregate_state_is_described_in_terms_of_sql() -> None:
    query = (
        "SELECT a.k, SUM(a.x) AS s, COUNT(a.y) AS n, COUNT(*) AS rows, COUNT_IF(a.y > 1) AS m "
        "FROM silver.a AS a GROUP BY a.k"
    )
    assert state_columns(query, TYPES) == {
        "state.0": (
            ("k0", "k"),
            ("n", "COUNT(*)"),
            ("nn0", "COUNT(x)"),
            ("sum0", "SUM(x)"),
            ("nn1", "COUNT(y)"),
            ("nn2", "COUNT(IF(y > 1, 1, NULL))"),
        )
    }


@pytest.mark.parametrize(
    ("calls", "extremes"),
    [("SUM(a.x) AS s, COUNT(a.y) AS n", []), ("MAX(a.x) AS m, COUNT(a.y) AS n", ["max0"])],
)
def test_of_each_argument_only_what_the_view_needs_is_stored(
    calls: str, extremes: list[str]
) -> None:
    cutter = Cutter(TYPES)
    cutter.cut(build(f"SELECT {calls} FROM silver.a AS a")[0])
    (state,) = cutter.states
    rows = parse("SELECT x, y, 1 AS w FROM t")
    assert isinstance(rows, exp.Query)
    assert state.content(rows).named_selects == list(state.columns)
    moved = state.change(rows, "w").named_selects
    ways = [f"{one}_{way}" for one in extremes for way in ("in", "out")]
    assert sorted(moved) == sorted({*state.columns} - {*extremes} | {*ways})


def test_an_extreme_of_stored_groups_is_not_stored() -> None:
    groups = "(SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k) AS s"
    assert list(state_columns(f"SELECT MAX(s.n) AS m FROM {groups}", TYPES)) == ["state.0"]


def test_rows_that_a_query_uses_twice_are_stored_once() -> None:
    groups = "(SELECT {0}.k, COUNT(*) AS n FROM silver.{0} AS {0} GROUP BY {0}.k)"
    query = f"SELECT s.n FROM {groups.format('a')} AS s FULL JOIN {groups.format('b')} AS t"
    assert list(state_columns(f"{query} ON s.k = t.k", TYPES)) == ["state.0", "state.1"]


def test_both_parts_of_a_full_join_have_its_types_whatever_they_are() -> None:
    query = "SELECT a.k, b.k AS j FROM silver.a AS a FULL JOIN silver.b AS b ON a.k = b.k"
    found = [Cutter({}).cut(build(query)[0])]
    for one in found:
        found += children(one)
    (union,) = (one for one in found if isinstance(one, Union))
    assert union.alike


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


def test_a_row_is_once_in_each_window_of_several_grouping_sets() -> None:
    query = (
        "SELECT a.k, COUNT(*) AS n FROM silver.b AS a "
        "GROUP BY ROLLUP (WINDOW(a.s, '2 hours', '1 hour'), a.k)"
    )
    rows = {id(one): one for one in operators(query) if isinstance(one, Project) and one.multiplies}
    calls = [
        value
        for one in rows.values()
        for _, value in one.outputs
        if isinstance(value, exp.Func) and called_name(value) == "window"
    ]
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["collect_list", "listagg"])
def test_an_obstacle_names_the_function_as_it_is_written(name: str) -> None:
    query = f"SELECT a.k, {name}(a.x) AS l FROM silver.a AS a GROUP BY a.k"
    found, _ = maintenance_of(query, types=TYPES)
    assert found.detail == f"{name} takes rows in the order in which they are met"


def test_the_top_of_stored_groups_stores_nothing_more() -> None:
    query = "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k ORDER BY n DESC, a.k LIMIT 2"
    assert list(state_columns(query, TYPES)) == ["state.0"]


@pytest.mark.parametrize(
    ("kind", "mean"),
    [("decimal(8,2)", "decimal(12,6)"), ("decimal(20,4)", "decimal(24,8)")],
)
def test_a_mean_of_stored_decimals_has_the_type_that_spark_gives_it(kind: str, mean: str) -> None:
    types = {"silver.a": {"k": "int", "x": kind}}
    cutter = Cutter(types)
    root = cutter.cut(build("SELECT a.k, AVG(a.x) AS m FROM silver.a AS a GROUP BY a.k")[0])
    assert len(cutter.states) == 1
    assert column_types(root, types)["m"] == mean


@pytest.mark.parametrize("word", ["ROLLUP", "CUBE"])
def test_sets_behind_the_keys_are_those_of_the_keys(word: str) -> None:
    query = "SELECT a.k, a.y, COUNT(*) AS n FROM silver.a AS a GROUP BY "
    behind = maintenance_of(f"{query} a.k, a.y WITH {word}", types=TYPES)
    around = maintenance_of(f"{query} {word} (a.k, a.y)", types=TYPES)
    assert behind == around


def test_a_key_that_is_in_no_set_is_null() -> None:
    query = (
        "SELECT a.x, COUNT(*) AS n, GROUPING(a.x) AS g, GROUPING_ID() AS id FROM silver.a AS a "
        "GROUP BY a.k, a.x GROUPING SETS ((a.k), ())"
    )
    groups = [one for one in operators(query) if isinstance(one, Aggregate)]
    calls = [[to_sql(value) for _, value in one.aggregates] for one in groups]
    null = "MAX(IF(FALSE, {}, NULL))"
    assert calls == [
        [null.format("x"), "COUNT(*)", "MAX(1)", "MAX(1)"],
        [null.format("k"), null.format("x"), "COUNT(*)", "MAX(1)", "MAX(3)"],
    ]


@pytest.mark.parametrize("kind", ["decimal(25,3)", "decimal(38,18)"])
def test_a_mean_that_needs_more_digits_than_a_quotient_has_is_computed_again(kind: str) -> None:
    types = {"silver.a": {"k": "int", "x": kind}}
    query = "SELECT a.k, AVG(a.x) AS m FROM silver.a AS a GROUP BY a.k"
    assert maintenance_of(query, types=types)[0].rule == "affected_group_recompute"


def test_the_sum_for_a_mean_of_a_bigint_does_not_overflow() -> None:
    types = {"silver.a": {"k": "int", "x": "bigint"}}
    query = "SELECT a.k, AVG(a.x) AS m, SUM(a.x) AS s FROM silver.a AS a GROUP BY a.k"
    assert dict(state_columns(query, types)["state.0"]) == {
        "k0": "k",
        "n": "COUNT(*)",
        "nn0": "COUNT(CAST(x AS DECIMAL(20, 0)))",
        "sum0": "SUM(CAST(x AS DECIMAL(20, 0)))",
        "nn1": "COUNT(x)",
        "sum1": "SUM(x)",
    }
    found, _ = maintenance_of(query, types=types)
    assert found.rule == "aggregate_state"


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("decimal(37,18)", "aggregate_state"),
        ("decimal(38,6)", "aggregate_state"),
        ("decimal(38,18)", "affected_group_recompute"),
    ],
)
def test_a_sum_is_stored_of_values_whose_negative_has_all_their_digits(
    kind: str, rule: str
) -> None:
    """In Spark, ``0 - x`` is a decimal(38,17) if x is a decimal(38,18)."""
    types = {"silver.a": {"k": "int", "x": kind}}
    query = "SELECT a.k, SUM(a.x) AS m FROM silver.a AS a GROUP BY a.k"
    assert maintenance_of(query, types=types)[0].rule == rule


@pytest.mark.parametrize(
    "more",
    [
        "JOIN silver.b AS b USING (k)",
        "NATURAL JOIN silver.b AS b",
        ", LATERAL (SELECT b.x AS v FROM silver.b AS b WHERE b.k = a.k) AS g",
        ", LATERAL (SELECT b.x FROM silver.b AS b WHERE b.k = a.k) AS g(v)",
        ", LATERAL EXPLODE(SEQUENCE(1, a.k))",
        "LATERAL VIEW EXPLODE(SEQUENCE(1, a.k)) g",
        "JOIN silver.b AS b(k, x) ON b.k = a.k",
        "CROSS JOIN (SELECT b.k, b.x FROM silver.b AS b) AS s(k)",
    ],
)
def test_what_does_not_write_its_names_or_condition_out_is_refused(more: str) -> None:
    found, _ = maintenance_of(f"SELECT a.k FROM silver.a AS a {more}", types=TYPES)
    assert found.obstacle == "UNSUPPORTED_RELATION"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (
            "SELECT a.k, a.x FROM silver.a AS a GROUP BY a.k",
            "UNRESOLVED_COLUMN: x is neither grouped by nor aggregated",
        ),
        (
            "SELECT b.x FROM silver.a AS a LEFT SEMI JOIN silver.b AS b ON a.k = b.k",
            "UNRESOLVED_COLUMN: the column x is not one of the query or of the one around it",
        ),
        (
            "SELECT a.k, GROUPING(a.x) AS g FROM silver.a AS a GROUP BY ROLLUP (a.k)",
            "UNSUPPORTED_CLAUSE: grouping of something else than a key has no incremental rule",
        ),
        (
            (
                "SELECT a.k FROM silver.a AS a "
                "WHERE EXISTS(ARRAY(a.k), v -> a.x IN (SELECT b.k FROM silver.b AS b))"
            ),
            "UNSUPPORTED_SUBQUERY: this form of subquery has no incremental rule",
        ),
        (
            (
                "SELECT a.k, (SELECT MAX(b.x + a.k) FROM silver.b AS b WHERE b.k = a.k) AS v "
                "FROM silver.a AS a"
            ),
            (
                "UNSUPPORTED_SUBQUERY: a scalar subquery that computes with columns from around "
                "it has no incremental rule"
            ),
        ),
    ],
)
def test_the_reason_of_an_obstacle_is_the_one_next_to_it(query: str, text: str) -> None:
    _, error = maintenance_of(query, types=TYPES)
    assert str(error) == text


@pytest.mark.parametrize(("key", "drops"), [(frozenset({"k"}), True), (frozenset[str](), False)])
def test_a_group_of_all_rows_stays_without_rows(key: frozenset[str], drops: bool) -> None:
    state = Scan("state.0", tuple((name, name) for name in (*key, "n")), key)
    whole = whole_groups(state, parse("SELECT * FROM state_0"), {"n": "bigint"})
    assert (whole.args.get("where") is not None) is drops


@pytest.mark.parametrize(("column", "before"), [("k0", True), ("n", False)])
def test_state_in_parts_is_restricted_by_its_keys_before_it_is_added_up(
    column: str, before: bool
) -> None:
    tables = InDuckDb(frozenset(), {"state.0": {"n": "bigint"}})
    state = Scan("state.0", (("k0", "k0"), ("n", "n")), frozenset({"k0"}))
    keys = Keys("changed", ((named(column), "c"),))
    text = to_sql(Writer(tables, {}).relation(state, When.NEW, keys))
    assert text.count("LEFT SEMI JOIN") == 1
    assert (text.index("LEFT SEMI JOIN") < text.index("GROUP BY")) is before


def test_the_window_of_a_group_is_that_of_its_own_query() -> None:
    root = operators(
        "SELECT window AS v, COUNT(*) AS n FROM (SELECT window.start AS at, COUNT(*) AS n "
        "FROM silver.b AS b GROUP BY WINDOW(b.s, '1 hour')) AS s GROUP BY WINDOW(s.at, '2 hours')"
    )[0]
    assert isinstance(root, Project)
    assert to_sql(root.outputs[0][1]) == "window__2"


def test_a_field_of_a_column_called_window_is_not_of_the_window() -> None:
    query = (
        "SELECT s.window.start AS v, COUNT(*) AS n FROM silver.g AS s "
        "GROUP BY WINDOW(s.at, '5 minutes'), s.window"
    )
    types = {"silver.g": {"at": "timestamp", "window": "struct<start:int>"}}
    _, error = maintenance_of(query, types=types)
    assert error is not None
    assert error.obstacle is Obstacle.UNRESOLVED_COLUMN


KINDS = {
    "i": "int",
    "d": "decimal(9,2)",
    "f": "double",
    "s": "string",
    "day": "date",
    # Of a number of digits that only Spark knows.
    "x": EXACT,
}


@pytest.mark.parametrize(
    "text",
    [
        *("i", "d", "x", "7", "0.5", "NULL", "-(d)", "(i)", "CAST(f AS INT)", "LENGTH(s)"),
        *("i + d * 2", "i % 3 - x", "IF(f > 1, i, d)", "IF(f > 1, i)", "COALESCE(i, d, 0)"),
        *("CASE WHEN f > 1 THEN i WHEN f > 0 THEN 1 ELSE d END", "CASE WHEN f > 1 THEN i END"),
        # A quotient is exact if one of its sides is a decimal.
        *("d / i", "i / d", "i / 1.5", "-d / 3", "(d) / 3", "(d + i) / 3", "3 / (i - d)"),
        "i / CAST(f AS DECIMAL(9,2))",
    ],
)
def test_the_sum_of_exact_values_depends_on_no_order(text: str) -> None:
    assert is_exact(parse(text), KINDS)


@pytest.mark.parametrize(
    "text",
    [
        *("f", "s", "unknown", "'7'", "1e3", "2E3", "CAST(i AS DOUBLE)", "SQRT(i)", "s || i"),
        *("f + i", "i * f", "IF(f > 1, i, f)", "IF(f > 1, f, i)", "COALESCE(i, f)"),
        *("CASE WHEN f > 1 THEN i ELSE f END", "CASE WHEN f > 1 THEN f ELSE 0 END"),
        *("i / 3", "x / 3", "CAST(i AS INT) / 3", "d / f", "f / d"),
        # It may be one of integers.
        "i / COALESCE(d, 1)",
    ],
)
def test_that_of_other_values_does(text: str) -> None:
    assert not is_exact(parse(text), KINDS)


@pytest.mark.parametrize("text", ["i = s", "s = i", "s = day", "d = f"])
def test_an_equality_of_other_types_restricts_no_keys(text: str) -> None:
    left, right = text.split(" = ")
    assert to_sql(of_one_type(parse(text), KINDS)) == f"{left} = ({right})"
    both = to_sql(of_one_type(parse(f"i = d OR NOT {text}"), KINDS))
    assert both == f"i = d OR NOT {left} = ({right})"


@pytest.mark.parametrize(
    "text",
    ["i = i", "i = d", "x = i", "s = s", "i = unknown", "unknown = s", "i < s", "i = s || 1"],
)
def test_an_equality_of_one_type_or_of_an_unknown_one_does(text: str) -> None:
    assert to_sql(of_one_type(parse(text), KINDS)) == text


def test_types_follow_from_those_of_the_columns() -> None:
    texts = ("i", "d > x", "unknown", "x", "s")
    found = expression_types([parse(one) for one in texts], KINDS)
    assert found == ["int", "boolean", "", "", "string"]


def test_columns_of_an_operator_have_the_types_of_their_tables() -> None:
    types = {"silver.a": {"k": "int", "x": "decimal(9,2)"}, "silver.b": {"k": "string"}}
    generated = "silver.a AS a LATERAL VIEW EXPLODE(ARRAY(1)) g AS n"
    counted = "COUNT(*) OVER (PARTITION BY a.k) AS n"
    for query, kinds in (
        ("SELECT a.k, a.x FROM silver.a AS a", ["int", "decimal(9,2)"]),
        ("SELECT a.k, a.y FROM silver.a AS a WHERE a.k > 1", ["int", ""]),
        (f"SELECT a.k, g.n FROM {generated}", ["int", ""]),
        (f"SELECT a.k, {counted} FROM silver.a AS a", ["int", "bigint"]),
        (
            "SELECT a.k, b.k AS b FROM silver.a AS a JOIN silver.b AS b ON a.k > b.k",
            ["int", "string"],
        ),
        (
            "SELECT a.k, b.k AS b FROM silver.a AS a LEFT JOIN silver.b AS b ON a.k > b.k",
            ["int", "string"],
        ),
        ("SELECT a.x, COUNT(*) AS n FROM silver.a AS a GROUP BY a.x", ["decimal(9,2)", "bigint"]),
        ("SELECT a.x + NULL AS y FROM silver.a AS a ORDER BY 1 LIMIT 3", [EXACT]),
        ("SELECT a.k FROM silver.a AS a UNION ALL SELECT c.k FROM silver.a AS c", ["int"]),
        ("SELECT a.k FROM silver.a AS a UNION ALL SELECT b.k FROM silver.b AS b", [""]),
        ("SELECT v.k FROM VALUES (1) AS v(k)", [""]),
    ):
        root, outputs = build(query)
        found = column_types(root, types)
        assert [found.get(name, "") for _, name in outputs] == kinds, query


@pytest.mark.parametrize(
    ("word", "text"),
    [
        *(
            (MAP, text)
            for text in (
                *("MAP(1, 2)", "STR_TO_MAP(s)", "ARRAY(MAP(1, 2))", "STRUCT(STR_TO_MAP(s) AS m)"),
                *("CAST(s AS MAP<INT, INT>)", "FROM_JSON(s, 'a MAP<STRING, INT>')"),
                *("COALESCE(STR_TO_MAP(s), NULL)", "CASE WHEN b THEN u ELSE MAP_CONCAT(u, u) END"),
                *("(MAP_FILTER(u, (k, v) -> v > 1))", "NULLIF(MAP_CONCAT(u, u), u)"),
            )
        ),
        *(
            (VARIANT, text)
            for text in (
                *("PARSE_JSON(s)", "TRY_PARSE_JSON(s)", "TO_VARIANT_OBJECT(s)", "u::VARIANT"),
                *("VARIANT_GET(u, '$')", "VARIANT_GET(u, '$', 'variant')"),
                *("TRY_VARIANT_GET(u, '$', 'VARIANT')", "FROM_JSON(s, 'a VARIANT')"),
                *("COALESCE(PARSE_JSON(s), u)", "IF(b, u, PARSE_JSON(s))", "ARRAY(PARSE_JSON(s))"),
                *("NVL2(u, PARSE_JSON(s), u)", "STRUCT(s, PARSE_JSON(s) AS v)"),
                *("MAX_BY(PARSE_JSON(s), u) FILTER (WHERE b)", "ANY_VALUE(PARSE_JSON(s))"),
                "FIRST_VALUE(PARSE_JSON(s)) IGNORE NULLS OVER (PARTITION BY u ORDER BY s)",
                "LAG(PARSE_JSON(s)) OVER (PARTITION BY u ORDER BY s)",
            )
        ),
    ],
)
def test_a_value_that_is_or_holds_one_without_equality_is_seen(word: str, text: str) -> None:
    assert is_computed(parse(text), {"s": "string"}, word)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        *((MAP, text) for text in ("MAP(1, 2)[1]", "SIZE(STR_TO_MAP(s))", "FROM_JSON(s, 'a INT')")),
        *((MAP, text) for text in ("CAST(s AS INT)", "s", "u", "PARSE_JSON(s)", "IF(b, s, u)")),
        *(
            (MAP, text)
            for text in ("VARIANT_GET(u, '$')", "STRUCT(s, u)", "MAX_BY(s, PARSE_JSON(s))")
        ),
        *((VARIANT, text) for text in ("STR_TO_MAP(s)", "MAP(1, 2)", "FROM_JSON(s, 'a INT')")),
        *((VARIANT, text) for text in ("VARIANT_GET(u, '$', 'int')", "MAX_BY(s, PARSE_JSON(s))")),
        *((VARIANT, text) for text in ("ARRAY(u)", "LAG(u) OVER (ORDER BY PARSE_JSON(s))")),
    ],
)
def test_one_that_is_computed_from_such_a_value_is_not(word: str, text: str) -> None:
    assert not is_computed(parse(text), {"s": "string"}, word)


def test_a_variant_of_which_only_a_part_is_written_is_no_obstacle() -> None:
    query = (
        "SELECT VARIANT_GET(s.j, '$', 'int') AS x FROM (SELECT PARSE_JSON('1') AS j "
        "FROM silver.a AS a) AS s"
    )
    assert maintenance_of(query, types=TYPES)[1] is None


@pytest.mark.parametrize("value", ["PARSE_JSON(a.t)", "STR_TO_MAP(a.t)"])
@pytest.mark.parametrize(
    ("output", "refused"),
    [
        ("s.j", True),
        ("STRUCT(s.j) AS v", True),
        ("ARRAY(STRUCT(s.j)) AS v", True),
        ("MAX_BY(s.j, s.k) OVER (PARTITION BY s.k) AS v", True),
        ("TO_JSON(s.j) AS v", False),
        ("STRUCT(s.k) AS v", False),
    ],
)
def test_a_value_without_equality_is_followed_into_what_holds_it(
    value: str, output: str, refused: bool
) -> None:
    query = f"SELECT {output} FROM (SELECT a.k, {value} AS j FROM silver.a AS a) AS s"
    found, _ = maintenance_of(query, types={"silver.a": {"k": "int", "t": "string"}})
    assert (found.obstacle == "INCOMPARABLE_TYPE") is refused
