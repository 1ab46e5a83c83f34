"""Orders are completed so that tied rows are chosen alike, and only where that is allowed."""

from __future__ import annotations

import pytest
from sqlglot import exp

from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.maintained_query import maintained_query
from spark_jobs.graph.maintenance.reasons import Obstacle
from spark_jobs.graph.manifest import MaintenanceStrategy
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import resolve
from spark_jobs.graph.revised_forms import revised_forms
from spark_jobs.graph.tie_breakers import with_tie_breakers
from spark_jobs.names import TableName

TYPES = {
    "silver.a": {"k": "int", "x": "string", "y": "int", "m": "map<string,int>", "l": "array<int>"},
    "silver.b": {"k": "int", "x": "string", "z": "double"},
}
INNER = "SELECT MAX(a.z) AS z FROM silver.b AS a"
A, PLACE = "FROM silver.a AS a", "ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY a.y{}) AS p"


def canonical(sql: str) -> exp.Query:
    tree = parse(sql)
    schemas = {TableName.parse(name): columns for name, columns in TYPES.items()}
    resolved = resolve(tree, schemas, SqlText("v.sql", sql), "v")
    assert not resolved.problems
    return canonical_query(tree, resolved.tree)


@pytest.mark.parametrize(
    ("query", "completed"),
    [
        # What the output does not have makes no difference: neither m nor the join's z.
        (
            f"SELECT a.x AS x, {PLACE.format('')} {A} WHERE a.m IS NULL",
            f"SELECT a.x AS x, {PLACE.format(', a.x')} {A} WHERE a.m IS NULL",
        ),
        (
            f"SELECT a.x AS x, {PLACE.format(' DESC')} {A} JOIN silver.b AS b ON a.k = b.z",
            f"SELECT a.x AS x, {PLACE.format(' DESC, a.x')} {A} JOIN silver.b AS b ON a.k = b.z",
        ),
        # A map has no order.
        (
            f"SELECT a.l AS l, a.m AS m, {PLACE.format('')} {A}",
            f"SELECT a.l AS l, a.m AS m, {PLACE.format(', a.l')} {A}",
        ),
        (
            f"SELECT a.k AS k {A} QUALIFY FIRST_VALUE(a.x) OVER (PARTITION BY a.k) = 'a'",
            (
                f"SELECT a.k AS k {A} "
                "QUALIFY FIRST_VALUE(a.x) OVER (PARTITION BY a.k ORDER BY a.x) = 'a'"
            ),
        ),
        (
            f"SELECT LAG(a.x) IGNORE NULLS OVER (ORDER BY a.y) AS p {A}",
            f"SELECT LAG(a.x) IGNORE NULLS OVER (ORDER BY a.y, a.x) AS p {A}",
        ),
        (
            f"SELECT a.x AS x, SUM(a.k) OVER (ORDER BY a.y ROWS 1 PRECEDING) AS s {A}",
            f"SELECT a.x AS x, SUM(a.k) OVER (ORDER BY a.y, a.x, a.k ROWS 1 PRECEDING) AS s {A}",
        ),
        # Keys tell groups apart.
        (
            f"SELECT a.x AS x, NTILE(4) OVER (ORDER BY SUM(a.y)) AS p {A} GROUP BY a.x, a.k",
            (
                f"SELECT a.x AS x, NTILE(4) OVER (ORDER BY SUM(a.y), a.x, a.k) AS p {A} "
                "GROUP BY a.x, a.k"
            ),
        ),
        (
            f"SELECT a.x AS x, NTILE(4) OVER (ORDER BY SUM(a.y)) AS p {A} GROUP BY ROLLUP(a.x)",
            (
                f"SELECT a.x AS x, NTILE(4) OVER (ORDER BY SUM(a.y), a.x) AS p {A} "
                "GROUP BY ROLLUP(a.x)"
            ),
        ),
        # An inner table of the same name is another one.
        (
            f"SELECT a.x AS x, ({INNER}) AS z, {PLACE.format('')} {A}",
            f"SELECT a.x AS x, ({INNER}) AS z, {PLACE.format(', a.x')} {A}",
        ),
        (
            f"SELECT a.x AS x, a.m AS m {A} ORDER BY a.y DESC LIMIT 3",
            f"SELECT a.x AS x, a.m AS m {A} ORDER BY a.y DESC, x LIMIT 3",
        ),
        (
            f"SELECT a.x AS x, a.y AS y {A} ORDER BY 2 LIMIT 3",
            f"SELECT a.x AS x, a.y AS y {A} ORDER BY y, x LIMIT 3",
        ),
        (f"SELECT a.x AS x {A} LIMIT 3", f"SELECT a.x AS x {A} ORDER BY x LIMIT 3"),
        (
            f"SELECT a.x AS x {A} UNION ALL SELECT b.x AS x FROM silver.b AS b LIMIT 3",
            f"SELECT a.x AS x {A} UNION ALL SELECT b.x AS x FROM silver.b AS b ORDER BY x LIMIT 3",
        ),
    ],
)
def test_orders_are_completed(query: str, completed: str) -> None:
    assert to_sql(with_tie_breakers(canonical(query))) == to_sql(canonical(completed))
    found = maintained_query(canonical(query), types=TYPES)
    assert found.breaks_ties == (found.obstacle is None)


def test_the_greatest_of_tied_values_is_taken() -> None:
    completed = to_sql(with_tie_breakers(canonical(f"SELECT MAX_BY(a.x, a.y) AS x {A}")))
    # A row without a y does not count.
    assert "MAX_BY(a.x, IF(a.y IS NULL, NULL, STRUCT(a.y AS place, a.x AS value)))" in completed


def test_a_list_of_values_ends_its_order_with_them() -> None:
    call = f"LISTAGG(a.x, ',') WITHIN GROUP (ORDER BY a.y{{}}) AS x {A}"
    written, completed = (canonical(f"SELECT {call.format(more)}") for more in ("", ", a.x"))
    assert to_sql(with_tie_breakers(written)) == to_sql(completed)
    assert to_sql(with_tie_breakers(completed)) == to_sql(completed)


@pytest.mark.parametrize(
    "query",
    [
        # Ties have the same value, or the frame would change.
        f"SELECT a.x AS x, RANK() OVER (ORDER BY a.y) AS p {A}",
        f"SELECT a.x AS x, SUM(a.k) OVER (ORDER BY a.y) AS p {A}",
        f"SELECT a.x AS x, LAST_VALUE(a.x) OVER (ORDER BY a.y) AS p {A}",
        f"SELECT a.x AS x, FIRST_VALUE(a.x) IGNORE NULLS OVER (ORDER BY a.y) AS p {A}",
        f"SELECT a.x AS x, NTH_VALUE(a.x, 2) OVER (ORDER BY a.y) AS p {A}",
        f"SELECT MAX_BY(a.m, a.y) AS m {A}",
        f"SELECT MAX_BY(a.y, a.y) AS y {A}",
        f"SELECT LISTAGG(DISTINCT a.x) WITHIN GROUP (ORDER BY a.x) AS x {A}",
        f"SELECT a.x AS x, a.y AS y {A} ORDER BY a.y",
        f"SELECT COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS p {A}",
    ],
)
def test_other_orders_stay(query: str) -> None:
    found = canonical(query)
    assert to_sql(with_tie_breakers(found)) == to_sql(found)


def test_a_query_whose_order_a_key_ends_stays_as_it_is() -> None:
    query = canonical(f"SELECT a.x AS x, {PLACE.format('')} {A}")
    keys = {"silver.a": frozenset({"k", "y"})}
    found = maintained_query(query, types=TYPES, keys=keys)
    assert (found.breaks_ties, found.tree) == (False, query)


def test_the_author_is_told_what_decides() -> None:
    query = canonical(f"SELECT a.x AS x, a.k AS k, {PLACE.format('')} {A}")
    (told,) = [
        one.note for one in maintained_query(query, types=TYPES).maintenance.operators if one.note
    ]
    assert told == (
        "ORDER BY y may leave ties, and the other columns decide between them; "
        "add columns of a unique key at its end"
    )


OVER = "OVER (PARTITION BY a.k ORDER BY a.y{})"


@pytest.mark.parametrize(
    "call",
    [
        f"LAST_VALUE(a.x) {OVER.format('')}",
        f"NTH_VALUE(a.x, 2) {OVER.format(' DESC')}",
        f"FIRST_VALUE(a.x) IGNORE NULLS {OVER.format('')}",
        f"FIRST_VALUE(a.x) {OVER.format(' RANGE BETWEEN 1 PRECEDING AND CURRENT ROW')}",
    ],
)
def test_a_view_whose_ties_nothing_breaks_is_computed_in_full(call: str) -> None:
    query = canonical(f"SELECT a.k AS k, a.x AS x, {call} AS p {A}")
    found = maintained_query(query, types=TYPES)
    assert found.obstacle is not None
    assert found.obstacle.obstacle is Obstacle.ORDER_DEPENDENT
    assert found.maintenance.rule is MaintenanceStrategy.FULL
    assert (found.breaks_ties, found.tree) == (False, query)
    assert "row of a frame by value" in revised_forms(query)
    # A key of the table decides.
    keys = {"silver.a": frozenset({"k", "y"})}
    assert maintained_query(query, types=TYPES, keys=keys).obstacle is None


@pytest.mark.parametrize(
    "call",
    [
        f"LAST_VALUE(a.y) {OVER.format('')}",
        f"LAST_VALUE(a.x) {OVER.format(' ROWS BETWEEN 1 PRECEDING AND CURRENT ROW')}",
        f"FIRST_VALUE(a.x) {OVER.format('')}",
    ],
)
def test_a_view_whose_ties_are_broken_or_alike_is_maintained(call: str) -> None:
    query = canonical(f"SELECT a.k AS k, a.x AS x, {call} AS p {A}")
    assert maintained_query(query, types=TYPES).obstacle is None
    assert revised_forms(query) == ()
