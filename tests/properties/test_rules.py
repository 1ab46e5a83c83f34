"""Each rule of incremental maintenance by its name, through one history that has every known trap.

The same histories run through all rules, so that a new rule meets them all by being listed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import duckdb
import pytest
from sqlglot import exp

from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.program import derive
from spark_jobs.graph.maintenance.subqueries import SEVERAL_ROWS
from spark_jobs.graph.manifest import MaintenanceStrategy
from tests.properties.engine import Engine
from tests.properties.maintenance import NOON, Content, InDuckDb, Maintained, canonical
from tests.properties.tables import TYPES, Row

ROWS, GROUPS, KEPT = (
    MaintenanceStrategy.ROW_DELTAS,
    MaintenanceStrategy.AFFECTED_GROUP_RECOMPUTE,
    MaintenanceStrategy.AGGREGATE_STATE,
)
A, B, C = "silver.a", "silver.b", "silver.c"
# Whole numbers are enough to see a rule; the random tests have all types.
INTS = {table: dict(list(columns.items())[:3]) for table, columns in TYPES.items()}


def history(*contents: Content) -> tuple[Content, ...]:
    """Contents one after the other; a table that one does not name stays as it was."""
    found: list[Content] = [dict.fromkeys(INTS, ())]
    for one in contents:
        found.append({**found[-1], **one})
    return tuple(found[1:])


_A = [(1, 1, 5), (1, 2, 7), (2, 1, None), (None, 1, 3), (None, 1, 3), (3, None, 9)]
_B = [(1, 1, 4), (2, 2, None), (2, 2, None), (None, 5, 5)]
_C = [(1, 5, 1), (2, None, 2)]
FULL = {A: _A, B: _B, C: _C}
HISTORIES = {
    "from nothing and back": history({}, FULL, {A: [], B: [], C: []}, FULL),
    "one side empty": history(FULL, {B: []}, {B: _B}, {A: []}, {A: _A}),
    "every value of a group becomes NULL and again one": history(
        FULL,
        {A: [(1, None, None), (1, None, None), (2, None, None), *_A[3:]]},
        {A: [(1, None, None), (1, 4, 4), (2, None, None), *_A[3:]]},
    ),
    "the last row of a group goes and comes": history(
        FULL, {A: _A[:2] + _A[3:]}, {A: _A[2:]}, {A: _A[:2]}, {A: _A}
    ),
    "a NULL key comes and goes": history(
        FULL, {A: _A[:3], B: _B[:3]}, {A: _A, B: _B[:3]}, {A: _A[:3], B: _B}, FULL
    ),
    "duplicates come and go": history(
        FULL, {A: _A * 3}, {A: _A * 2, B: _B * 2}, {A: _A + _A[:1], B: _B[:2]}, FULL
    ),
    "matches come and go": history(
        FULL,
        {B: [(3, 1, 1), (3, 2, 2)]},
        {B: [(3, 2, 2), (1, 1, 1)]},
        {B: [(9, 9, 9)]},
        {A: [*_A, (9, 9, 9)], B: [(9, 9, 9), (9, 9, 9)]},
    ),
    "both sides at once": history(
        FULL,
        {A: [(1, 1, 6), (2, 2, 2)], B: [(2, 1, 4), (1, 2, 0)], C: [(1, 5, 1), (1, 6, 6)]},
        {A: [(2, 2, 2), (4, 0, 0)], B: [(4, 0, 0), (None, 2, 0)], C: []},
    ),
    "extremes go and come": history(
        FULL, {A: [(1, 1, 5), (1, 1, 0), (2, 9, 9)]}, {A: [(1, 1, 5), (2, 8, 8), (2, 9, 9)]}
    ),
    "an extreme goes, one equal to it comes, and the group ends and begins again": history(
        {A: [(1, 2, 5), (1, 2, 5), (1, 3, 1), (2, 2, 7), (2, 2, 3)]},
        {A: [(1, 2, 5), (1, 3, 1), (2, 2, 3), (2, 4, 7)]},
        {A: [(1, 3, 2), (2, 2, 3), (2, 4, None)]},
        {A: [(2, 5, None)]},
        {A: [(1, 3, -1), (2, 5, 4)]},
    ),
    "written again as it was": history(FULL, {A: list(reversed(_A))}),
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    """One database; each view writes over the tables of the one before."""
    return Engine()


def follow(view: Maintained, contents: Sequence[Content]) -> None:
    """Assert that a view equals its SQL after every step."""
    view.start(contents[0])
    for number, content in enumerate(contents[1:], start=1):
        if all(content[table] is view.content[table] for table in view.tables):
            continue
        maintained, computed = view.move(content)
        assert maintained == computed, f"{view.sql}\nstep {number}"


_OF_A = "SELECT a.x FROM silver.a AS a WHERE"
_JOINED = "silver.a AS a {} silver.b AS b ON a.k = b.k"
RULES: dict[str, tuple[MaintenanceStrategy, str]] = {
    "filter and projection": (ROWS, "SELECT a.x + 1 AS u, a.y FROM silver.a AS a WHERE a.k > 1"),
    "filter on NULL": (ROWS, "SELECT a.x FROM silver.a AS a WHERE a.k IS NULL OR a.y > 4"),
    "rows without columns of their table": (ROWS, "SELECT 1 AS one FROM silver.a AS a"),
    "inner join": (ROWS, f"SELECT a.x, b.z FROM {_JOINED.format('JOIN')}"),
    "join of a condition other than equality": (
        ROWS,
        "SELECT a.x, b.z FROM silver.a AS a JOIN silver.b AS b ON a.x < b.x",
    ),
    "null-safe join": (
        ROWS,
        "SELECT a.x, b.z FROM silver.a AS a JOIN silver.b AS b ON a.k <=> b.k",
    ),
    "rows of a cross join counted, without a column": (
        KEPT,
        "SELECT COUNT(*) AS n FROM silver.a AS a CROSS JOIN silver.c AS c",
    ),
    "rows of an outer join counted, without a column": (
        KEPT,
        "SELECT COUNT(*) AS n FROM silver.a AS a LEFT JOIN silver.c AS c ON TRUE WHERE TRUE",
    ),
    "cross join": (ROWS, "SELECT a.k, c.y FROM silver.a AS a CROSS JOIN silver.c AS c"),
    "self join": (
        ROWS,
        "SELECT l.x, r.y FROM silver.a AS l JOIN silver.a AS r ON l.k = r.x",
    ),
    "join of three": (
        ROWS,
        f"SELECT a.x, c.y FROM {_JOINED.format('JOIN')} JOIN silver.c AS c ON c.j = b.x",
    ),
    "left join": (GROUPS, f"SELECT a.k, b.z FROM {_JOINED.format('LEFT JOIN')}"),
    "left join with a further condition": (
        GROUPS,
        f"SELECT a.k, b.z FROM {_JOINED.format('LEFT JOIN')} AND b.x < a.y",
    ),
    "right join": (GROUPS, f"SELECT a.x, b.k FROM {_JOINED.format('RIGHT JOIN')}"),
    "full join": (GROUPS, f"SELECT a.x, b.z FROM {_JOINED.format('FULL JOIN')}"),
    "full join of a table with itself": (
        GROUPS,
        "SELECT l.x, r.y FROM silver.a AS l FULL JOIN silver.a AS r ON l.k = r.x",
    ),
    "left semi join": (GROUPS, f"SELECT a.x FROM {_JOINED.format('LEFT SEMI JOIN')}"),
    "left anti join": (GROUPS, f"SELECT a.x FROM {_JOINED.format('LEFT ANTI JOIN')}"),
    "IN and a condition, below NOT": (
        KEPT,
        f"{_OF_A} NOT (a.x IN (SELECT c.y FROM silver.c AS c) AND a.y > 6)",
    ),
    "NOT IN beside OR": (
        KEPT,
        f"{_OF_A} a.y > 6 OR NOT a.x IN (SELECT c.y FROM silver.c AS c)",
    ),
    "NOT IN as a condition of IF": (
        KEPT,
        "SELECT IF(NOT a.x IN (SELECT b.z FROM silver.b AS b), 1, 2) AS v FROM silver.a AS a",
    ),
    "IN as a condition of CASE, NOT IN as another": (
        KEPT,
        (
            "SELECT CASE WHEN 4 IN (SELECT b.z FROM silver.b AS b WHERE b.k > 0) THEN 1 "
            "WHEN NOT a.x IN (SELECT c.y FROM silver.c AS c) THEN 2 END AS v FROM silver.a AS a"
        ),
    ),
    "IN an aggregate": (
        KEPT,
        f"{_OF_A} a.x IN (SELECT MAX(b.z) FROM silver.b AS b)",
    ),
    "IN ranks": (
        GROUPS,
        f"{_OF_A} a.x IN (SELECT RANK() OVER (PARTITION BY b.k ORDER BY b.z) FROM silver.b AS b)",
    ),
    "a count with FILTER for each row, 0 without a match": (
        KEPT,
        (
            "SELECT (SELECT COUNT(*) FILTER (WHERE b.z > 1) FROM silver.b AS b "
            "WHERE b.k = a.k) AS n FROM silver.a AS a"
        ),
    ),
    "a count in an expression for each row, 0 without a match": (
        KEPT,
        "SELECT (SELECT COUNT(*) + 1 FROM silver.b AS b WHERE b.k = a.k) AS n FROM silver.a AS a",
    ),
    "IN the keys of groups": (
        KEPT,
        f"{_OF_A} a.k IN (SELECT b.k FROM silver.b AS b GROUP BY b.k HAVING COUNT(*) > 1)",
    ),
    "NOT IN a union": (
        KEPT,
        f"{_OF_A} a.k NOT IN (SELECT b.x FROM silver.b AS b UNION SELECT c.j FROM silver.c AS c)",
    ),
    "union as a scalar subquery": (
        KEPT,
        (
            f"{_OF_A} a.x > (SELECT MAX(b.z) FROM silver.b AS b "
            "UNION SELECT MAX(b.z) FROM silver.b AS b)"
        ),
    ),
    "IN over two columns": (
        GROUPS,
        f"{_OF_A} (a.k, a.x) IN (SELECT c.j, c.y FROM silver.c AS c)",
    ),
    "IN over conditions": (
        GROUPS,
        f"{_OF_A} (a.y > 4) IN (SELECT b.z > 3 OR b.x = 1 FROM silver.b AS b WHERE b.k = a.k)",
    ),
    "IN over a condition beside a column": (
        GROUPS,
        f"{_OF_A} (a.y IS NULL, a.k) IN (SELECT b.z IS NULL, b.k FROM silver.b AS b)",
    ),
    "NOT IN over conditions": (
        GROUPS,
        f"{_OF_A} (a.y > 4) NOT IN (SELECT b.z > 3 AND b.x > 1 FROM silver.b AS b)",
    ),
    "subquery on the left of a list": (
        KEPT,
        f"{_OF_A} (SELECT MAX(b.z) FROM silver.b AS b) IN (4, 5)",
    ),
    "EXISTS": (
        GROUPS,
        (
            "SELECT a.x FROM silver.a AS a WHERE EXISTS "
            "(SELECT 1 FROM silver.b AS b WHERE b.k = a.k AND b.x > a.x)"
        ),
    ),
    "NOT EXISTS": (
        GROUPS,
        (
            "SELECT a.x FROM silver.a AS a WHERE NOT EXISTS "
            "(SELECT 1 FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "IN": (GROUPS, "SELECT a.x FROM silver.a AS a WHERE a.k IN (SELECT b.k FROM silver.b AS b)"),
    "NOT IN": (
        GROUPS,
        "SELECT a.x FROM silver.a AS a WHERE NOT a.k IN (SELECT b.k FROM silver.b AS b)",
    ),
    "NOT IN, correlated": (
        GROUPS,
        (
            "SELECT a.x FROM silver.a AS a WHERE NOT a.x IN "
            "(SELECT b.x FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "EXISTS beside OR": (
        KEPT,
        (
            "SELECT a.x FROM silver.a AS a WHERE a.x = 2 OR EXISTS "
            "(SELECT 1 FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "IN beside OR": (
        KEPT,
        (
            "SELECT a.x FROM silver.a AS a WHERE a.x = 2 OR a.y IN "
            "(SELECT b.z FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "scalar subquery": (
        GROUPS,
        (
            "SELECT a.x FROM silver.a AS a WHERE a.y > (SELECT MAX(b.z) FROM silver.b AS b "
            "WHERE b.k = a.k)"
        ),
    ),
    "count as scalar subquery": (
        KEPT,
        "SELECT a.k, (SELECT COUNT(*) FROM silver.b AS b WHERE b.k = a.k) AS n FROM silver.a AS a",
    ),
    "scalar subquery over everything": (
        KEPT,
        "SELECT a.x FROM silver.a AS a WHERE a.y >= (SELECT AVG(b.x) FROM silver.b AS b)",
    ),
    "first row as scalar subquery": (
        KEPT,
        (
            "SELECT a.x FROM silver.a AS a "
            "WHERE a.y > (SELECT b.z FROM silver.b AS b ORDER BY b.z DESC LIMIT 1)"
        ),
    ),
    "only distinct value as scalar subquery": (
        KEPT,
        (
            "SELECT a.x FROM silver.a AS a "
            "WHERE a.y > (SELECT DISTINCT b.x * 0 + 4 FROM silver.b AS b WHERE b.x > 1)"
        ),
    ),
    "only group as scalar subquery": (
        KEPT,
        (
            "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k HAVING COUNT(*) >= "
            "(SELECT COUNT(*) FROM silver.b AS b WHERE b.x = 2 GROUP BY b.x)"
        ),
    ),
    "row of a common table as scalar subquery": (
        KEPT,
        (
            "WITH m AS (SELECT MAX(b.z) AS most FROM silver.b AS b) "
            "SELECT a.x, (SELECT m.most FROM m AS m) AS most FROM silver.a AS a"
        ),
    ),
    "only row of a group as scalar subquery": (
        KEPT,
        (
            "SELECT a.x, (SELECT m.z FROM (SELECT b.k, SUM(b.z) AS z FROM silver.b AS b "
            "GROUP BY b.k) AS m WHERE m.k = a.k) AS z FROM silver.a AS a"
        ),
    ),
    "scalar subquery inside of another": (
        KEPT,
        (
            "SELECT a.x FROM silver.a AS a WHERE a.y > (SELECT AVG(b.z) - "
            "(SELECT MIN(c.y) FROM silver.c AS c) FROM silver.b AS b)"
        ),
    ),
    "EXISTS in an expression": (
        KEPT,
        (
            "SELECT a.x, CASE WHEN EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k) "
            "THEN 1 ELSE 0 END AS found FROM silver.a AS a"
        ),
    ),
    "NOT EXISTS in parentheses": (
        GROUPS,
        (
            "SELECT a.x FROM silver.a AS a WHERE (NOT EXISTS (SELECT 1 FROM silver.b AS b "
            "WHERE b.k = a.k) AND NOT EXISTS (SELECT 1 FROM silver.c AS c WHERE c.j = a.k))"
        ),
    ),
    "uncorrelated EXISTS beside OR": (
        KEPT,
        (
            "SELECT a.x FROM silver.a AS a WHERE a.x = 2 OR NOT EXISTS "
            "(SELECT 1 FROM silver.b AS b WHERE b.z > 3)"
        ),
    ),
    "last value for each row": (
        GROUPS,
        (
            "SELECT a.x, (SELECT b.z FROM silver.b AS b WHERE b.k = a.k ORDER BY b.x DESC, "
            "b.z LIMIT 1) AS v FROM silver.a AS a"
        ),
    ),
    "second value for each row, by position": (
        GROUPS,
        (
            "SELECT a.x, (SELECT b.z + 1 AS n FROM silver.b AS b WHERE b.k = a.k ORDER BY 1 "
            "DESC LIMIT 1 OFFSET 1) AS v FROM silver.a AS a"
        ),
    ),
    "last value of a join, by two columns, in a condition": (
        GROUPS,
        (
            "SELECT a.x FROM silver.a AS a WHERE a.y >= (SELECT c.y FROM silver.b AS b JOIN "
            "silver.c AS c ON c.j = b.k WHERE b.k = a.k AND c.z < b.z AND a.x = b.x ORDER BY "
            "c.y, b.z LIMIT 1)"
        ),
    ),
    "last value for an expression": (
        GROUPS,
        (
            "SELECT a.k, (SELECT b.z AS n FROM silver.b AS b WHERE b.k - 1 = a.x - 1 "
            "ORDER BY n DESC LIMIT 1) AS v FROM silver.a AS a WHERE a.y > 2"
        ),
    ),
    "last value in an aggregate": (
        GROUPS,
        (
            "SELECT a.k, MAX(IF(a.x > 0, (SELECT b.z FROM silver.b AS b WHERE b.k = a.k "
            "ORDER BY b.x, b.z LIMIT 1), 0)) AS v FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "largest group of a row": (
        KEPT,
        (
            "SELECT a.x, (SELECT b.x FROM silver.b AS b WHERE b.k = a.k GROUP BY b.x ORDER "
            "BY COUNT(*) DESC, b.x LIMIT 1) AS v FROM silver.a AS a"
        ),
    ),
    "IN the first rows of each row": (
        GROUPS,
        (
            f"{_OF_A} a.x IN (SELECT b.x FROM silver.b AS b WHERE b.k = a.k ORDER BY b.z, b.x "
            "LIMIT 1)"
        ),
    ),
    "NOT IN the first rows of each row": (
        GROUPS,
        (
            f"{_OF_A} NOT a.x IN (SELECT b.x FROM silver.b AS b WHERE b.k = a.k ORDER BY b.z, "
            "b.x LIMIT 2)"
        ),
    ),
    "EXISTS of a second row": (
        GROUPS,
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k ORDER BY b.z LIMIT "
            "1 OFFSET 1)"
        ),
    ),
    "QUALIFY of the rows of a row": (
        GROUPS,
        (
            "SELECT a.x, (SELECT b.z FROM silver.b AS b WHERE b.k = a.k QUALIFY ROW_NUMBER() "
            "OVER (ORDER BY b.x, b.z) = 1) AS v FROM silver.a AS a"
        ),
    ),
    "window over the rows of a row": (
        GROUPS,
        (
            f"{_OF_A} a.y IN (SELECT SUM(b.z) OVER (PARTITION BY b.x) FROM silver.b AS b "
            "WHERE b.k = a.k)"
        ),
    ),
    "distinct values of a row": (
        KEPT,
        (
            "SELECT a.x, (SELECT DISTINCT b.k * 2 FROM silver.b AS b WHERE b.k = a.k) AS v "
            "FROM silver.a AS a"
        ),
    ),
    "only group of a row": (
        KEPT,
        (
            "SELECT a.x, (SELECT COUNT(b.z) FROM silver.b AS b WHERE b.k = a.k GROUP BY b.k) "
            "AS v FROM silver.a AS a"
        ),
    ),
    "EXISTS of a group": (
        KEPT,
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k GROUP BY b.x HAVING "
            "COUNT(*) > 1)"
        ),
    ),
    "NOT EXISTS of a group": (
        KEPT,
        (
            f"{_OF_A} NOT EXISTS (SELECT b.x FROM silver.b AS b WHERE b.k = a.k AND b.z > 3 "
            "GROUP BY b.x HAVING SUM(b.z) > 4)"
        ),
    ),
    "EXISTS of a group by nothing else": (
        KEPT,
        f"{_OF_A} EXISTS (SELECT b.k FROM silver.b AS b WHERE b.k = a.k GROUP BY b.k)",
    ),
    "EXISTS of a group for some rows": (
        KEPT,
        (
            f"{_OF_A} NOT EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k AND a.y > 3 "
            "GROUP BY b.x HAVING COUNT(*) > 1)"
        ),
    ),
    "EXISTS of a group as a value": (
        KEPT,
        (
            "SELECT a.x, IF(EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k GROUP BY b.x "
            "HAVING COUNT(*) > 1), 1, 0) AS v FROM silver.a AS a"
        ),
    ),
    "EXISTS of a group or of a row": (
        KEPT,
        (
            f"{_OF_A} a.y > 5 OR EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k "
            "GROUP BY b.x HAVING COUNT(*) > 1)"
        ),
    ),
    "EXISTS within EXISTS of a group": (
        KEPT,
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k AND EXISTS (SELECT "
            "1 FROM silver.c AS c WHERE c.j = b.k GROUP BY c.y HAVING COUNT(*) > 0) GROUP BY "
            "b.x HAVING COUNT(*) > 1)"
        ),
    ),
    "IN the values of groups": (
        GROUPS,
        (
            f"{_OF_A} a.y IN (SELECT MAX(b.z) FROM silver.b AS b WHERE b.k = a.k GROUP BY b.x "
            "HAVING COUNT(*) > 0)"
        ),
    ),
    "NOT IN the values of groups": (
        GROUPS,
        (f"{_OF_A} NOT a.y IN (SELECT MAX(b.z) FROM silver.b AS b WHERE b.k = a.k GROUP BY b.x)"),
    ),
    "IN the keys of groups, in an OR": (
        KEPT,
        (
            f"{_OF_A} a.y > 5 OR a.x IN (SELECT b.x FROM silver.b AS b WHERE b.k = a.k GROUP "
            "BY b.x HAVING COUNT(*) > 1)"
        ),
    ),
    "EXISTS of an aggregate over nothing": (
        KEPT,
        f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k HAVING COUNT(*) = 0)",
    ),
    "NOT EXISTS of an aggregate over nothing": (
        KEPT,
        (
            f"{_OF_A} NOT EXISTS (SELECT SUM(b.z) FROM silver.b AS b WHERE b.k = a.k HAVING "
            "SUM(b.z) > 3 OR COUNT(b.z) = 0)"
        ),
    ),
    "EXISTS of an aggregate, which has a row": (
        ROWS,
        f"{_OF_A} EXISTS (SELECT MAX(b.z) FROM silver.b AS b WHERE b.k = a.k)",
    ),
    "EXISTS of an aggregate as a value": (
        KEPT,
        (
            "SELECT a.x, IF(EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k HAVING "
            "COUNT(*) <> 1), 1, 0) AS v FROM silver.a AS a"
        ),
    ),
    "IN an aggregate for each row": (
        GROUPS,
        f"{_OF_A} a.y IN (SELECT MAX(b.z) FROM silver.b AS b WHERE b.k = a.k)",
    ),
    "NOT IN an aggregate for each row": (
        KEPT,
        (
            f"{_OF_A} NOT a.x IN (SELECT COUNT(b.z) FROM silver.b AS b WHERE b.k = a.k) "
            "AND a.y NOT IN (SELECT SUM(b.z) FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "value of an aggregate with HAVING": (
        KEPT,
        (
            "SELECT a.x, (SELECT SUM(b.z) FROM silver.b AS b WHERE b.k = a.k HAVING COUNT(*) "
            "<> 1) AS v, (SELECT COUNT(*) FROM silver.b AS b WHERE b.k = a.k HAVING COUNT(*) "
            "< 2) AS n FROM silver.a AS a"
        ),
    ),
    "PIVOT of counts and sums": (
        KEPT,
        (
            "WITH a AS (SELECT a.k, a.x, a.y FROM silver.a AS a) "
            "SELECT p.k, p.one_n, p.one_s, p.`2_n` FROM a "
            "PIVOT (COUNT(y) AS n, SUM(y) AS s FOR x IN (1 AS one, 2)) AS p"
        ),
    ),
    "PIVOT of an extreme by two columns": (
        GROUPS,
        (
            "SELECT k, one FROM (SELECT a.k, a.x, a.y, b.z FROM silver.a AS a "
            "LEFT JOIN silver.b AS b ON b.k = a.k) PIVOT (MAX(z) FOR (x, y) IN ((1, 5) AS one))"
        ),
    ),
    "PIVOT of all rows": (
        KEPT,
        (
            "WITH s AS (SELECT a.x, a.y FROM silver.a AS a) "
            "SELECT `1`, `2` FROM s PIVOT (COUNT(y) FOR x IN (1, 2))"
        ),
    ),
    "UNPIVOT": (
        ROWS,
        (
            "SELECT k, n, v FROM (SELECT a.k, a.x, a.y FROM silver.a AS a) "
            "UNPIVOT (v FOR n IN (x, y AS z))"
        ),
    ),
    "UNPIVOT of pairs, with NULLs": (
        ROWS,
        (
            "SELECT p.k, p.n, p.v, p.w FROM (SELECT a.k, a.x, a.y FROM silver.a AS a) "
            "UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((x, y), (y, x))) AS p"
        ),
    ),
    "groups of the values of UNPIVOT": (
        KEPT,
        (
            "SELECT n, COUNT(*) AS v FROM (SELECT a.x, a.y FROM silver.a AS a) "
            "UNPIVOT (v FOR n IN (x, y)) GROUP BY n"
        ),
    ),
    "correlated on both sides of OR": (
        KEPT,
        (
            "SELECT a.x FROM silver.a AS a WHERE (SELECT COUNT(*) FROM silver.b AS b "
            "WHERE (b.k = a.k AND b.x > 1) OR (b.k = a.k AND b.z = 4)) > 0"
        ),
    ),
    "join on both sides of OR": (
        ROWS,
        (
            "SELECT a.x, b.z FROM silver.a AS a CROSS JOIN silver.b AS b "
            "WHERE (a.k = b.k AND b.x > 1 AND a.x = 1) OR (a.k = b.k AND b.z = 4)"
        ),
    ),
    "alternatives of both sides of a join": (
        ROWS,
        (
            f"SELECT a.x, b.z FROM {_JOINED.format('JOIN')} WHERE (a.x > 1 AND b.z = 4) "
            "OR (a.y IS NULL AND b.x > 1 AND (b.z < 4 OR a.x = 1)) OR (a.y = 2 AND a.x = b.x)"
        ),
    ),
    "alternatives of each side of a join": (
        ROWS,
        (
            f"SELECT a.x, b.z FROM {_JOINED.format('JOIN')} WHERE (a.x > 1 AND b.z = 4) "
            "OR (a.y IS NULL AND (b.x > 1 AND a.x = 1 OR b.z IS NULL AND a.x = 2)) "
            "OR (NOT (a.y > 2 OR a.x = 0) AND b.z IN (1, NULL))"
        ),
    ),
    "join without the rows for which two conditions hold": (
        ROWS,
        f"SELECT a.x, b.z FROM {_JOINED.format('JOIN')} WHERE NOT (a.x = 1 AND b.z = 4)",
    ),
    "COUNT DISTINCT of everything": (
        KEPT,
        (
            "SELECT COUNT(DISTINCT a.y) AS ys, COUNT(a.y) AS n, SUM(DISTINCT a.x) AS xs, "
            "COUNT(DISTINCT a.x, a.y) AS pairs FROM silver.a AS a"
        ),
    ),
    "COUNT DISTINCT of everything, filtered": (
        KEPT,
        "SELECT COUNT(DISTINCT a.y) FILTER (WHERE a.x = 1) AS ys FROM silver.a AS a",
    ),
    "COUNT DISTINCT of everything, of groups": (
        KEPT,
        (
            "SELECT COUNT(DISTINCT g.n) AS ns, MAX(g.n) AS most FROM "
            "(SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k) AS g"
        ),
    ),
    "COUNT": (
        KEPT,
        "SELECT a.k, COUNT(*) AS n, COUNT(a.y) AS m FROM silver.a AS a GROUP BY a.k",
    ),
    "SUM": (KEPT, "SELECT a.k, SUM(a.y) AS total FROM silver.a AS a GROUP BY a.k"),
    "values of one column counted and then added up": (
        KEPT,
        "SELECT a.k, COUNT(a.y) AS n, SUM(a.y) AS total FROM silver.a AS a GROUP BY a.k",
    ),
    "SUM of an expression": (
        KEPT,
        "SELECT a.k, SUM(a.x + a.y) AS total FROM silver.a AS a GROUP BY a.k",
    ),
    "SUM of a CASE without ELSE": (
        KEPT,
        "SELECT a.k, SUM(CASE WHEN a.x = 1 THEN a.y END) AS one FROM silver.a AS a GROUP BY a.k",
    ),
    "SUM over rows with a generator": (
        KEPT,
        (
            "SELECT a.k, SUM(a.y) AS twice FROM silver.a AS a "
            "LATERAL VIEW EXPLODE(SEQUENCE(1, 2)) t AS n GROUP BY a.k"
        ),
    ),
    "SUM without its key": (KEPT, "SELECT SUM(a.y) AS total FROM silver.a AS a GROUP BY a.k"),
    "AVG": (KEPT, "SELECT a.k, AVG(a.y) AS mean FROM silver.a AS a GROUP BY a.k"),
    "AVG of large whole numbers": (
        KEPT,
        (
            "SELECT a.k, AVG(CAST(a.y AS BIGINT) * 1000000000000000000) AS mean "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "FILTER": (
        KEPT,
        (
            "SELECT a.k, SUM(a.y) FILTER (WHERE a.x = 1) AS one, "
            "COUNT(*) FILTER (WHERE a.x > 1) AS n FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "groups of a join": (
        KEPT,
        f"SELECT b.x, SUM(a.y) AS total FROM {_JOINED.format('JOIN')} GROUP BY b.x",
    ),
    "groups of an outer join": (
        KEPT,
        (
            f"SELECT a.k, COUNT(b.k) AS n, SUM(b.z) AS z FROM {_JOINED.format('LEFT JOIN')} "
            "GROUP BY a.k"
        ),
    ),
    "global aggregate": (KEPT, "SELECT COUNT(*) AS n, SUM(a.y) AS total FROM silver.a AS a"),
    "VARIANCE and STDDEV": (
        GROUPS,
        (
            "SELECT a.k, ROUND(VAR_POP(a.y), 6) AS v, ROUND(STDDEV_SAMP(a.y), 6) AS s "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "BOOL_AND and BOOL_OR": (
        GROUPS,
        (
            "SELECT a.k, BOOL_AND(a.y > 4) AS every, BOOL_OR(a.y > 4) AS one "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "MIN and MAX": (
        GROUPS,
        "SELECT a.k, MIN(a.y) AS low, MAX(a.y) AS high FROM silver.a AS a GROUP BY a.k",
    ),
    "sums of a left join by its left columns": (
        KEPT,
        (
            "SELECT a.k, a.x, COUNT(b.z) AS n, SUM(b.z) AS total, AVG(b.x) AS mean FROM silver.a "
            "AS a LEFT JOIN silver.b AS b ON a.k = b.k AND b.x > 1 GROUP BY a.k, a.x"
        ),
    ),
    "sums of a left join on two columns": (
        KEPT,
        (
            "SELECT a.x, a.k, SUM(b.z) + 1 AS total FROM silver.a AS a LEFT JOIN silver.b AS b "
            "ON b.x = a.x AND a.k = b.k GROUP BY a.k, a.x HAVING COUNT(b.z) < 3"
        ),
    ),
    "number of groups with each count of a left join": (
        KEPT,
        (
            "SELECT g.n, COUNT(*) AS many, SUM(g.total) AS total FROM (SELECT a.k, "
            "COUNT(b.z) AS n, SUM(b.z) AS total FROM silver.a AS a "
            "LEFT JOIN silver.b AS b ON a.k = b.k GROUP BY a.k) AS g GROUP BY g.n"
        ),
    ),
    "sums of a right join by its right columns": (
        KEPT,
        f"SELECT b.k, SUM(a.y) AS total FROM {_JOINED.format('RIGHT JOIN')} GROUP BY b.k",
    ),
    "sums of a left join of the groups of another": (
        KEPT,
        (
            "SELECT g.k, g.n, COUNT(c.y) AS m FROM (SELECT a.k, COUNT(b.z) AS n FROM silver.a AS a "
            "LEFT JOIN silver.b AS b ON a.k = b.k GROUP BY a.k) AS g "
            "LEFT JOIN silver.c AS c ON g.n = c.j GROUP BY g.k, g.n"
        ),
    ),
    "all rows of a left join counted": (
        KEPT,
        f"SELECT a.k, COUNT(*) AS n FROM {_JOINED.format('LEFT JOIN')} GROUP BY a.k",
    ),
    "sums of a left join not by its columns": (
        KEPT,
        f"SELECT a.x, COUNT(b.z) AS n FROM {_JOINED.format('LEFT JOIN')} GROUP BY a.x",
    ),
    "MIN and MAX without GROUP BY": (
        KEPT,
        "SELECT MIN(a.y) AS low, MAX(a.y) AS high FROM silver.a AS a WHERE a.x > 0",
    ),
    "MIN and MAX beside sums without GROUP BY": (
        KEPT,
        (
            "SELECT COUNT(*) AS n, SUM(a.y) AS total, AVG(a.x) AS mean, MIN(a.x) AS low, "
            "MAX(a.y) FILTER (WHERE a.x > 1) AS high, MAX(3) AS three FROM silver.a AS a"
        ),
    ),
    "MAX over a join without GROUP BY": (
        KEPT,
        f"SELECT MAX(b.z) AS high FROM {_JOINED.format('JOIN')}",
    ),
    "MAX over a left join without GROUP BY": (
        KEPT,
        f"SELECT MIN(b.z) AS low, MAX(a.y) AS high FROM {_JOINED.format('LEFT JOIN')}",
    ),
    "rows with the newest value": (
        KEPT,
        "SELECT a.k, a.y FROM silver.a AS a WHERE a.y = (SELECT MAX(b.z) FROM silver.b AS b)",
    ),
    "MAX of maxima": (
        KEPT,
        (
            "SELECT MAX(g.high) AS high FROM (SELECT a.k, MAX(a.y) AS high "
            "FROM silver.a AS a GROUP BY a.k) AS g"
        ),
    ),
    "MAX of groups whose key is shown converted": (
        GROUPS,
        (
            "SELECT CAST(CAST(a.k AS BOOLEAN) AS INT) AS some, MAX(a.y) AS high "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "largest value of a left join by a column of its right side": (
        GROUPS,
        f"SELECT b.x, MAX(a.y) AS most FROM {_JOINED.format('LEFT JOIN')} GROUP BY b.x",
    ),
    "groups by the largest value of other groups": (
        GROUPS,
        (
            "SELECT g.most, MIN(g.k) AS least FROM (SELECT a.k, MAX(a.y) AS most "
            "FROM silver.a AS a GROUP BY a.k) AS g GROUP BY g.most"
        ),
    ),
    "MIN_BY and MAX_BY": (
        GROUPS,
        (
            "SELECT a.k, MIN_BY(a.y, a.y * 10) AS low, MAX_BY(a.y, a.y * 10) AS high "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "COUNT DISTINCT and SUM DISTINCT": (
        GROUPS,
        (
            "SELECT a.x, COUNT(DISTINCT a.y) AS n, SUM(DISTINCT a.y) AS total "
            "FROM silver.a AS a GROUP BY a.x"
        ),
    ),
    "percentile": (
        GROUPS,
        "SELECT a.x, PERCENTILE(a.y, 0.5) AS middle FROM silver.a AS a GROUP BY a.x",
    ),
    "MEDIAN": (GROUPS, "SELECT a.x, MEDIAN(a.y) AS middle FROM silver.a AS a GROUP BY a.x"),
    "list in an order of its own": (
        GROUPS,
        (
            "SELECT a.x, ARRAY_JOIN(ARRAY_SORT(COLLECT_LIST(CAST(a.y AS STRING))), ',') AS ys "
            "FROM silver.a AS a GROUP BY a.x"
        ),
    ),
    "text in an order of its own": (
        GROUPS,
        (
            "SELECT a.x, LISTAGG(CAST(a.y AS STRING), ',') WITHIN GROUP (ORDER BY a.y) AS ys "
            "FROM silver.a AS a GROUP BY a.x"
        ),
    ),
    "approx_count_distinct": (
        GROUPS,
        "SELECT a.x, APPROX_COUNT_DISTINCT(a.y) AS n FROM silver.a AS a GROUP BY a.x",
    ),
    "expressions above aggregates": (
        KEPT,
        (
            "SELECT a.k + 1 AS next, COALESCE(SUM(a.y), 0) * 2 + COUNT(*) AS n "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "grouping by an expression": (
        KEPT,
        "SELECT a.y % 2 AS odd, COUNT(*) AS n FROM silver.a AS a GROUP BY a.y % 2",
    ),
    "buckets": (
        KEPT,
        (
            "SELECT CAST(FLOOR(a.y / 4) AS INT) AS bucket, SUM(a.x) AS total FROM silver.a AS a "
            "GROUP BY CAST(FLOOR(a.y / 4) AS INT)"
        ),
    ),
    "spread of the sums of groups": (
        KEPT,
        (
            "SELECT ROUND(STDDEV(g.total), 6) AS spread FROM (SELECT a.k, SUM(a.y) AS total "
            "FROM silver.a AS a GROUP BY a.k) AS g"
        ),
    ),
    "nested aggregates": (
        KEPT,
        (
            "SELECT g.n, MAX(g.total) AS most FROM (SELECT a.k, COUNT(*) AS n, SUM(a.y) AS total "
            "FROM silver.a AS a GROUP BY a.k) AS g GROUP BY g.n"
        ),
    ),
    "aggregate state of aggregate state": (
        KEPT,
        (
            "SELECT g.n, COUNT(*) AS groups FROM (SELECT a.k, COUNT(*) AS n "
            "FROM silver.a AS a GROUP BY a.k) AS g GROUP BY g.n"
        ),
    ),
    "HAVING": (
        KEPT,
        "SELECT a.k, SUM(a.y) AS total FROM silver.a AS a GROUP BY a.k HAVING COUNT(*) > 1",
    ),
    "DISTINCT": (KEPT, "SELECT DISTINCT a.k, a.x FROM silver.a AS a"),
    "UNION": (KEPT, "SELECT a.k FROM silver.a AS a UNION SELECT b.x FROM silver.b AS b"),
    "UNION ALL": (ROWS, "SELECT a.k FROM silver.a AS a UNION ALL SELECT b.x FROM silver.b AS b"),
    "UNION ALL of a table with itself": (
        ROWS,
        "SELECT a.k FROM silver.a AS a UNION ALL SELECT r.x FROM silver.a AS r",
    ),
    "INTERSECT": (KEPT, "SELECT a.x FROM silver.a AS a INTERSECT SELECT b.x FROM silver.b AS b"),
    "INTERSECT ALL": (
        KEPT,
        "SELECT a.x FROM silver.a AS a INTERSECT ALL SELECT b.x FROM silver.b AS b",
    ),
    "EXCEPT": (KEPT, "SELECT a.k FROM silver.a AS a EXCEPT SELECT b.k FROM silver.b AS b"),
    "EXCEPT ALL": (KEPT, "SELECT a.k FROM silver.a AS a EXCEPT ALL SELECT b.k FROM silver.b AS b"),
    "subquery inside of an aggregate": (
        KEPT,
        (
            "SELECT a.k, SUM(a.y * (SELECT MAX(b.z) FROM silver.b AS b)) AS s "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "subquery in FILTER": (
        KEPT,
        (
            "SELECT a.k, SUM(a.y) FILTER (WHERE a.y > (SELECT MIN(b.z) FROM silver.b AS b)) AS s "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "EXISTS in an aggregate": (
        KEPT,
        (
            "SELECT a.x, SUM(CASE WHEN EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k) "
            "THEN a.y ELSE 0 END) AS total, COUNT(*) AS n FROM silver.a AS a GROUP BY a.x"
        ),
    ),
    "IN in an aggregate and its HAVING": (
        KEPT,
        (
            "SELECT a.x, MAX(IF(a.k IN (SELECT b.k FROM silver.b AS b), a.y, 0)) AS most "
            "FROM silver.a AS a GROUP BY a.x "
            "HAVING MAX(IF(a.k IN (SELECT b.k FROM silver.b AS b), a.y, 0)) > 1"
        ),
    ),
    "correlated scalar subquery in an aggregate": (
        KEPT,
        (
            "SELECT a.x, SUM(a.y + (SELECT COUNT(b.z) FROM silver.b AS b WHERE b.k = a.k)) AS s "
            "FROM silver.a AS a GROUP BY a.x"
        ),
    ),
    "HAVING of EXISTS over a key": (
        KEPT,
        (
            "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k HAVING COUNT(*) > 1 "
            "AND EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "HAVING of NOT IN over a key": (
        KEPT,
        (
            "SELECT a.k + 1 AS u, SUM(a.y) AS s FROM silver.a AS a GROUP BY a.k, a.x "
            "HAVING a.k NOT IN (SELECT b.k FROM silver.b AS b)"
        ),
    ),
    "HAVING of a correlated scalar subquery over a key": (
        KEPT,
        (
            "SELECT a.k AS u, SUM(a.y) AS s FROM silver.a AS a GROUP BY a.k "
            "HAVING u < (SELECT MAX(b.x) FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "ranking window": (
        GROUPS,
        "SELECT a.k, a.y, RANK() OVER (PARTITION BY a.k ORDER BY a.y) AS place FROM silver.a AS a",
    ),
    "window that is defined in a clause of its own": (
        GROUPS,
        (
            "SELECT a.k, RANK() OVER w AS place, SUM(a.x) OVER w AS total FROM silver.a AS a "
            "WINDOW w AS (PARTITION BY a.k ORDER BY a.y)"
        ),
    ),
    "running window": (
        GROUPS,
        (
            "SELECT a.x, a.y, SUM(a.y) OVER (PARTITION BY a.x ORDER BY a.y, a.k) AS so_far "
            "FROM silver.a AS a"
        ),
    ),
    "window over a join": (
        GROUPS,
        "SELECT a.x, COUNT(*) OVER (PARTITION BY b.x) AS n FROM " + _JOINED.format("JOIN"),
    ),
    "largest of a window of other groups": (
        GROUPS,
        (
            "SELECT r.k, MAX(r.n) AS most FROM (SELECT a.k, COUNT(*) OVER (PARTITION BY a.x) AS n "
            "FROM silver.a AS a) AS r GROUP BY r.k"
        ),
    ),
    "left join on a window of other groups": (
        GROUPS,
        (
            "SELECT b.z, r.n FROM silver.b AS b LEFT JOIN (SELECT a.k, COUNT(*) OVER "
            "(PARTITION BY a.x) AS n FROM silver.a AS a) AS r ON b.k = r.k"
        ),
    ),
    "neighbour in a window": (
        GROUPS,
        (
            "SELECT a.k, LAG(a.y) OVER (PARTITION BY a.k ORDER BY a.y DESC NULLS LAST, a.x) "
            "AS above FROM silver.a AS a"
        ),
    ),
    "frame of a window": (
        GROUPS,
        (
            "SELECT a.k, SUM(a.y) OVER (PARTITION BY a.k ORDER BY a.x, a.y "
            "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near FROM silver.a AS a"
        ),
    ),
    "top of each group": (
        GROUPS,
        (
            "SELECT r.k, r.y FROM (SELECT a.k, a.y, RANK() OVER (PARTITION BY a.k "
            "ORDER BY a.y DESC) AS place FROM silver.a AS a) AS r WHERE r.place <= 1"
        ),
    ),
    "top of all rows": (
        KEPT,
        "SELECT a.k, a.y FROM silver.a AS a ORDER BY a.y DESC NULLS LAST, a.k NULLS LAST LIMIT 2",
    ),
    "rows behind the top": (
        KEPT,
        (
            "SELECT a.k, a.y FROM silver.a AS a "
            "ORDER BY a.y NULLS FIRST, a.k NULLS FIRST LIMIT 2 OFFSET 1"
        ),
    ),
    "top of all groups": (
        KEPT,
        "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k ORDER BY n DESC, a.k LIMIT 2",
    ),
    "top of all groups by a key that is not shown": (
        KEPT,
        "SELECT COUNT(*) AS n FROM silver.a AS a GROUP BY a.k ORDER BY a.k LIMIT 2",
    ),
    "left join on a converted column": (
        GROUPS,
        (
            "SELECT a.k, b.z FROM silver.a AS a LEFT JOIN silver.b AS b "
            "ON a.k = CAST(CAST(b.x AS BOOLEAN) AS INT)"
        ),
    ),
    "window of a converted key": (
        GROUPS,
        (
            "SELECT a.k, RANK() OVER (PARTITION BY CAST(CAST(a.k AS BOOLEAN) AS INT) "
            "ORDER BY MAX(a.y)) AS place FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "EXISTS that selects from around it, beside another condition": (
        KEPT,
        (
            "SELECT a.k, a.y FROM silver.a AS a WHERE a.x = 2 OR EXISTS "
            "(SELECT a.y FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "window over groups in the order of a key": (
        KEPT,
        (
            "SELECT a.k, a.x, SUM(COUNT(*)) OVER (PARTITION BY a.x ORDER BY a.k) AS so_far "
            "FROM silver.a AS a GROUP BY a.k, a.x"
        ),
    ),
    "ROLLUP": (
        KEPT,
        "SELECT a.k, a.x, COUNT(*) AS n FROM silver.a AS a GROUP BY ROLLUP (a.k, a.x)",
    ),
    "CUBE": (
        GROUPS,
        (
            "SELECT a.k, a.x, SUM(a.y) AS n, GROUPING(a.k) AS g FROM silver.a AS a "
            "GROUP BY CUBE (a.k, a.x)"
        ),
    ),
    "GROUPING SETS": (
        GROUPS,
        (
            "SELECT a.k, a.x, SUM(a.y) AS n FROM silver.a AS a "
            "GROUP BY GROUPING SETS ((a.k), (a.x), ())"
        ),
    ),
    "top of what QUALIFY leaves": (
        KEPT,
        (
            "SELECT a.k, a.y AS x FROM silver.a AS a QUALIFY DENSE_RANK() OVER "
            "(PARTITION BY a.k ORDER BY a.x DESC) = 1 ORDER BY x, a.k LIMIT 2"
        ),
    ),
    "common table expression read twice": (
        KEPT,
        (
            "WITH g AS (SELECT a.k, SUM(a.y) AS total FROM silver.a AS a GROUP BY a.k) "
            "SELECT l.k, r.total FROM g AS l JOIN g AS r ON l.k = r.total"
        ),
    ),
    "common table expression with the name of a table": (
        ROWS,
        (
            "WITH a AS (SELECT b.k, b.z FROM silver.b AS b) "
            "SELECT t.x, a.z FROM silver.a AS t JOIN a ON a.k = t.k"
        ),
    ),
    "common table expression within one of the same name": (
        ROWS,
        (
            "WITH g AS (SELECT a.k FROM silver.a AS a), h AS (SELECT g.k FROM g) "
            "SELECT s.k FROM (WITH g AS (SELECT b.k FROM silver.b AS b) "
            "SELECT h.k FROM h JOIN g ON h.k = g.k) AS s"
        ),
    ),
    "grouping by an expression over computed columns": (
        GROUPS,
        (
            "SELECT s.u + 1 AS v, MAX(s.y) AS most FROM (SELECT a.k * 2 AS u, a.y "
            "FROM silver.a AS a) AS s GROUP BY s.u + 1"
        ),
    ),
    "common table expression whose columns are renamed": (
        ROWS,
        "WITH g AS (SELECT a.k, a.x FROM silver.a AS a) SELECT t.x FROM g AS t(x, k)",
    ),
    "scalar subquery with QUALIFY": (
        KEPT,
        (
            "SELECT a.k, (SELECT MAX(b.z) FROM silver.b AS b "
            "QUALIFY RANK() OVER (PARTITION BY MAX(b.z) ORDER BY MAX(b.z)) = 2) AS m "
            "FROM silver.a AS a"
        ),
    ),
    "column with the name of a keyword": (
        KEPT,
        "SELECT a.k AS `select`, a.x AS `not` FROM silver.a AS a ORDER BY `select`, `not` LIMIT 2",
    ),
    "join with constants": (
        ROWS,
        (
            "SELECT a.x, v.n FROM silver.a AS a JOIN VALUES (1, 'one'), (2, 'two') AS v(k, n) "
            "ON a.k = v.k"
        ),
    ),
    "first rows of a union": (
        KEPT,
        (
            "SELECT a.k, a.x AS n FROM silver.a AS a UNION ALL SELECT b.k, b.z FROM silver.b AS b "
            "ORDER BY 2 DESC NULLS LAST, K LIMIT 3"
        ),
    ),
    "QUALIFY over groups": (
        KEPT,
        (
            "SELECT a.k, a.x, SUM(a.y) AS s FROM silver.a AS a GROUP BY a.k, a.x "
            "QUALIFY RANK() OVER (PARTITION BY a.k ORDER BY SUM(a.y)) = 1"
        ),
    ),
    "QUALIFY": (
        GROUPS,
        (
            "SELECT a.k, a.y FROM silver.a AS a "
            "QUALIFY DENSE_RANK() OVER (PARTITION BY a.k ORDER BY a.y) = 1"
        ),
    ),
    "total of groups in each partition, without an order": (
        KEPT,
        (
            "SELECT a.k, SUM(COUNT(*)) OVER (PARTITION BY a.k % 2) AS n "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "ROLLUP behind a key": (
        KEPT,
        "SELECT a.k, a.x, COUNT(*) AS n FROM silver.a AS a GROUP BY a.x, ROLLUP (a.k)",
    ),
    "GROUPING SETS behind a key and a comma": (
        KEPT,
        (
            "SELECT a.x, a.k, COUNT(*) AS n FROM silver.a AS a "
            "GROUP BY a.x, GROUPING SETS ((a.k), ())"
        ),
    ),
    "GROUPING_ID of ROLLUP before a key": (
        GROUPS,
        (
            "SELECT a.x, a.k, COUNT(*) AS n, GROUPING_ID() AS g FROM silver.a AS a "
            "GROUP BY ROLLUP (a.k), a.x"
        ),
    ),
    "GROUPING of a key in parentheses": (
        GROUPS,
        (
            "SELECT a.k, a.x, COUNT(*) AS n, GROUPING((a.k)) AS g FROM silver.a AS a "
            "GROUP BY ROLLUP (a.k, a.x)"
        ),
    ),
    "keys in parentheses": (
        KEPT,
        "SELECT a.k, a.x, COUNT(*) AS n FROM silver.a AS a GROUP BY (a.k), (a.x)",
    ),
    "GROUPING SETS of several columns": (
        KEPT,
        (
            "SELECT a.k, a.x, COUNT(*) AS n FROM silver.a AS a "
            "GROUP BY GROUPING SETS ((a.k, a.x), (a.k), ())"
        ),
    ),
    "COUNT_IF": (KEPT, "SELECT a.k, COUNT_IF(a.y > 4) AS n FROM silver.a AS a GROUP BY a.k"),
    "COUNT_IF with FILTER": (
        KEPT,
        (
            "SELECT a.k, COUNT_IF(a.y > 4) FILTER (WHERE a.x = 1) AS n "
            "FROM silver.a AS a GROUP BY a.k"
        ),
    ),
    "count of a condition on the right side of a left join": (
        KEPT,
        (
            "SELECT a.k, COUNT_IF(s.big) AS n FROM silver.a AS a LEFT JOIN "
            "(SELECT b.k, b.z > 3 AS big FROM silver.b AS b) AS s ON s.k = a.k GROUP BY a.k"
        ),
    ),
    "sums of a left join by a converted column": (
        KEPT,
        (
            "SELECT CAST(CAST(a.k AS BOOLEAN) AS INT) AS some, COUNT(b.z) AS n "
            f"FROM {_JOINED.format('LEFT JOIN')} GROUP BY CAST(CAST(a.k AS BOOLEAN) AS INT)"
        ),
    ),
    "sums of a left join with a condition on the left row": (
        KEPT,
        (
            f"SELECT a.k, a.x, COUNT(b.z) AS n FROM {_JOINED.format('LEFT JOIN')} "
            "AND a.k = a.x GROUP BY a.k, a.x"
        ),
    ),
    "MAX of decimals of unknown precision": (
        KEPT,
        "SELECT MAX(a.y + CAST(a.x AS DECIMAL(8, 2))) AS most FROM silver.a AS a",
    ),
    "groups of constants beside each row": (
        GROUPS,
        (
            "SELECT a.k, v.n FROM silver.a AS a CROSS JOIN "
            "(SELECT COUNT(*) AS n FROM VALUES (1), (2) AS c(x)) AS v"
        ),
    ),
    "HAVING without an aggregate": (KEPT, "SELECT 1 AS one FROM silver.a AS a HAVING TRUE"),
    "EXISTS of the one group of HAVING": (
        KEPT,
        f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b HAVING TRUE)",
    ),
    "key of a column with the name of a group's": (
        GROUPS,
        (
            "SELECT s.k0 + 1 AS v, MAX(s.y) AS most FROM (SELECT a.k AS k0, a.y "
            "FROM silver.a AS a) AS s GROUP BY s.k0 + 1"
        ),
    ),
    "first value with RESPECT NULLS": (
        GROUPS,
        (
            "SELECT a.k, FIRST_VALUE(a.y) RESPECT NULLS OVER (PARTITION BY a.k ORDER BY a.x, a.y) "
            "AS first FROM silver.a AS a"
        ),
    ),
    "sums of a left join of decimals of two scales": (
        KEPT,
        (
            "SELECT a.k, SUM(b.v) AS total FROM silver.a AS a LEFT JOIN (SELECT b.k, "
            "COALESCE(CAST(b.z AS DECIMAL(8, 2)), CAST('0.0001' AS DECIMAL(10, 4))) AS v "
            "FROM silver.b AS b) AS b ON a.k = b.k GROUP BY a.k"
        ),
    ),
    "first rows of a common table expression whose columns are renamed": (
        KEPT,
        (
            "WITH s(x, k) AS (SELECT k, x FROM silver.a ORDER BY x NULLS LAST, k NULLS LAST "
            "LIMIT 2) SELECT s.x, s.k FROM s"
        ),
    ),
    "first rows of a union whose columns are renamed": (
        KEPT,
        (
            "SELECT s.x, s.k FROM (SELECT a.k, a.x FROM silver.a AS a UNION SELECT b.k, b.x "
            "FROM silver.b AS b ORDER BY x NULLS LAST, k NULLS LAST LIMIT 2) AS s(x, k)"
        ),
    ),
    "first rows in the order of all columns": (
        KEPT,
        "SELECT a.k, a.x FROM silver.a AS a ORDER BY ALL DESC NULLS LAST LIMIT 3",
    ),
    "rows counted in a partition by a constant, without a column": (
        GROUPS,
        "SELECT COUNT(*) OVER (PARTITION BY 2) AS n FROM silver.a AS a",
    ),
    "spread of a constant in a group by a constant": (
        GROUPS,
        "SELECT STDDEV(3) AS spread FROM silver.a AS a GROUP BY 'x'",
    ),
    "constant in front of the order": (
        KEPT,
        "SELECT a.x, a.y FROM silver.a AS a ORDER BY CAST(2 AS INT), a.x, a.y LIMIT 2",
    ),
    "groups above the first row of another table, with an output of the same name": (
        KEPT,
        (
            "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k HAVING COUNT(*) > "
            "(SELECT b.z - 4 AS n FROM silver.b AS b ORDER BY n NULLS LAST LIMIT 1)"
        ),
    ),
    "EXISTS that selects from around it": (
        GROUPS,
        (
            "SELECT a.k, a.y FROM silver.a AS a WHERE EXISTS "
            "(SELECT a.y FROM silver.b AS b WHERE b.k = a.k)"
        ),
    ),
    "EXISTS of rows that are IN a third table": (
        GROUPS,
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b "
            "WHERE b.k = a.k AND b.x IN (SELECT c.j FROM silver.c AS c))"
        ),
    ),
    "first rows of a union with two columns of one name, by position": (
        KEPT,
        (
            "SELECT s.m FROM (SELECT a.k AS m, a.x AS n, a.y AS n FROM silver.a AS a UNION ALL "
            "SELECT b.k, b.x, b.z FROM silver.b AS b ORDER BY 3 DESC NULLS LAST, 2, 1 LIMIT 3) AS s"
        ),
    ),
    "IN what a generator makes of rows": (
        GROUPS,
        f"{_OF_A} a.x IN (SELECT EXPLODE(SEQUENCE(1, b.z)) FROM silver.b AS b WHERE b.z > 0)",
    ),
    "REGR_COUNT for each row, 0 without a match": (
        GROUPS,
        (
            "SELECT a.k, (SELECT REGR_COUNT(b.z, b.x) FROM silver.b AS b WHERE b.k = a.k) AS n "
            "FROM silver.a AS a"
        ),
    ),
    "union of integers and doubles as text": (
        ROWS,
        (
            "SELECT CAST(u.v AS STRING) AS s FROM (SELECT a.x AS v FROM silver.a AS a "
            "UNION ALL SELECT CAST(b.z AS DOUBLE) FROM silver.b AS b) AS u"
        ),
    ),
    "union of rows and a constant of another type as text": (
        ROWS,
        (
            "SELECT CAST(u.v AS STRING) AS s FROM (SELECT a.x AS v FROM silver.a AS a "
            "UNION ALL SELECT 0.5) AS u"
        ),
    ),
    "window by the text of a union of three types": (
        GROUPS,
        (
            "SELECT COUNT(*) OVER (PARTITION BY CAST(u.v AS STRING)) AS n FROM (SELECT a.x AS v "
            "FROM silver.a AS a UNION ALL SELECT b.z * 1.0 FROM silver.b AS b "
            "UNION ALL SELECT CAST(c.y AS DOUBLE) FROM silver.c AS c) AS u"
        ),
    ),
    "window over a join of texts through a number": (
        GROUPS,
        (
            "SELECT l.s, r.y, COUNT(*) OVER (PARTITION BY l.s) AS n "
            "FROM (SELECT CONCAT('0', CAST(a.x AS STRING)) AS s FROM silver.a AS a) AS l "
            "JOIN silver.b AS b ON l.s = b.x "
            "JOIN (SELECT CAST(c.j AS STRING) AS s, c.y FROM silver.c AS c) AS r ON b.x = r.s"
        ),
    ),
    "left join of texts through a number": (
        GROUPS,
        (
            "SELECT l.s, r.y FROM (SELECT CONCAT('0', CAST(a.x AS STRING)) AS s "
            "FROM silver.a AS a) AS l LEFT JOIN (SELECT b.x, c.y FROM silver.b AS b JOIN "
            "(SELECT CAST(c.j AS STRING) AS s, c.y FROM silver.c AS c) AS c ON b.x = c.s) AS r "
            "ON l.s = r.x"
        ),
    ),
    "groups by a converted column of a query in parentheses": (
        GROUPS,
        (
            "SELECT CAST(CAST(s.u AS BOOLEAN) AS INT) AS v, MAX(s.y) AS most FROM "
            "(SELECT a.k AS u, a.y FROM silver.a AS a) AS s "
            "GROUP BY CAST(CAST(s.u AS BOOLEAN) AS INT)"
        ),
    ),
    "largest of a window by a converted column": (
        GROUPS,
        (
            "SELECT r.k, MAX(r.n) AS most FROM (SELECT a.k, COUNT(*) OVER "
            "(PARTITION BY CAST(CAST(a.k AS BOOLEAN) AS INT)) AS n FROM silver.a AS a) AS r "
            "GROUP BY r.k"
        ),
    ),
    "largest of a join by columns of both sides": (
        GROUPS,
        (f"SELECT a.x, b.z, MAX(a.y) AS most FROM {_JOINED.format('JOIN')} GROUP BY a.x, b.z"),
    ),
    "key beside GROUPING SETS of nothing": (
        KEPT,
        "SELECT a.x, COUNT(*) AS n FROM silver.a AS a GROUP BY a.x, GROUPING SETS (())",
    ),
    "groups without an aggregate": (
        KEPT,
        "SELECT a.k + 1 AS next FROM silver.a AS a GROUP BY a.k",
    ),
    "pair as a key": (KEPT, "SELECT COUNT(*) AS n FROM silver.a AS a GROUP BY (a.k, a.x)"),
    "rows behind the first": (
        KEPT,
        "SELECT a.k, a.y FROM silver.a AS a ORDER BY a.y NULLS FIRST, a.k NULLS FIRST OFFSET 2",
    ),
    "first distinct rows": (
        KEPT,
        "SELECT DISTINCT a.k, a.x FROM silver.a AS a ORDER BY a.x NULLS LAST, a.k LIMIT 3",
    ),
    "distinct rows in an order that does not matter": (
        KEPT,
        "SELECT DISTINCT a.k FROM silver.a AS a ORDER BY a.k + 1",
    ),
    "column with the name of the struct of a window": (
        ROWS,
        (
            "SELECT s.session_window AS w FROM (SELECT a.k AS session_window "
            "FROM silver.a AS a) AS s"
        ),
    ),
    "generator that keeps rows without values": (
        ROWS,
        ("SELECT a.x, g.n FROM silver.a AS a LATERAL VIEW OUTER EXPLODE(SEQUENCE(1, a.y)) g AS n"),
    ),
    "scalar subquery of a window over its aggregate": (
        KEPT,
        (
            "SELECT a.k, (SELECT SUM(MAX(b.z)) OVER (PARTITION BY COUNT(*) * 0) "
            "FROM silver.b AS b) AS m FROM silver.a AS a"
        ),
    ),
    "scalar subquery of a generator over its aggregate": (
        KEPT,
        (
            f"{_OF_A} a.x >= (SELECT EXPLODE(SEQUENCE(1, IF(MAX(b.z) > 0, 1, 1))) "
            "FROM silver.b AS b)"
        ),
    ),
    "NOT IN as a condition of IF, over columns named like numbered ones": (
        KEPT,
        (
            "SELECT IF(NOT s.x IN (SELECT b.z FROM silver.b AS b), 1, 2) AS v, s.x__2 "
            "FROM (SELECT a.x, a.y AS x__2 FROM silver.a AS a) AS s"
        ),
    ),
    "window over a converted column that is shown": (
        GROUPS,
        (
            "SELECT a.k, a.y, RANK() OVER (PARTITION BY CAST(a.k AS BOOLEAN) ORDER BY a.y) AS n "
            "FROM silver.a AS a"
        ),
    ),
    "left join of joined rows, with equalities of either side": (
        GROUPS,
        (
            "SELECT a.k, a.x, c.z, b.z AS w FROM silver.a AS a JOIN silver.c AS c ON a.x > c.j "
            "LEFT JOIN silver.b AS b ON a.k = b.k AND a.x = c.y AND b.x = b.z"
        ),
    ),
    "left join of joined rows by another condition than equality": (
        GROUPS,
        (
            "SELECT a.k, a.x, c.z, b.z AS w FROM silver.a AS a JOIN silver.c AS c ON a.x = c.y "
            "LEFT JOIN silver.b AS b ON a.k < b.k"
        ),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_holds_through_every_history(engine: Engine, name: str) -> None:
    expected, sql = RULES[name]
    view = Maintained(sql, engine, INTS)
    found, error = maintenance_of(view.query, types=INTS)
    assert (found.rule, error) == (expected, None)
    for title, contents in HISTORIES.items():
        try:
            follow(view, contents)
        except AssertionError as wrong:
            raise AssertionError(f"{title}: {wrong}") from wrong


def test_groups_that_a_view_shows_are_taken_from_the_published_table(engine: Engine) -> None:
    for name, reads in (
        ("MIN_BY and MAX_BY", True),
        ("ranking window", True),
        ("spread of the sums of groups", True),
        ("inner join", False),
    ):
        view = Maintained(RULES[name][1], engine, INTS)
        program = derive(
            (view.root, view.outputs),
            InDuckDb(frozenset({A})),
            {},
            last=DeleteInsert(),
            states=view.cutter.states,
        )
        assert program.change is not None
        tables = {table.name for table in program.change.find_all(exp.Table)}
        assert ("published" in tables) == reads, name


COMPUTED = (
    "SELECT a.k, MAP('x', MAX(a.x)) AS m FROM silver.a AS a GROUP BY a.k",
    "SELECT MAP('x', a.x)['x'] AS x FROM silver.a AS a",
    "SELECT VARIANT_GET(PARSE_JSON('1'), '$', 'int') AS x FROM silver.a AS a",
    "SELECT ARRAY_SORT(COLLECT_SET(a.x)) AS xs FROM silver.a AS a GROUP BY a.k",
    "SELECT SIZE(COLLECT_SET(a.x)) AS n FROM silver.a AS a GROUP BY a.k",
)


@pytest.mark.parametrize("sql", COMPUTED)
def test_what_is_computed_with_is_neither_compared_nor_in_an_order(sql: str) -> None:
    assert maintenance_of(canonical(sql), types=INTS)[1] is None


GENERATORS = ("INLINE_OUTER", "INLINE")


@pytest.mark.parametrize("generator", GENERATORS)
def test_rows_of_a_generator_have_no_key(generator: str) -> None:
    # Merged by this key, rows of it that stay would be deleted.
    sql = f"SELECT a.k, {generator}(ARRAY(STRUCT(a.x), STRUCT(a.y))) AS v FROM silver.a AS a"
    found, _ = maintenance_of(canonical(sql), types=INTS, keys={A: frozenset({"k"})})
    assert found.key == ()


REFUSED = {
    "window without PARTITION BY": (
        "DEPENDS_ON_EVERY_ROW",
        "SELECT a.k, RANK() OVER (ORDER BY a.y) AS place FROM silver.a AS a",
    ),
    "global aggregate that is not kept": (
        "DEPENDS_ON_EVERY_ROW",
        "SELECT STDDEV(a.y) AS spread FROM silver.a AS a",
    ),
    "list in the order of arrival": (
        "ORDER_DEPENDENT",
        "SELECT a.k, COLLECT_LIST(a.y) AS ys FROM silver.a AS a GROUP BY a.k",
    ),
    "set in the order of arrival": (
        "ORDER_DEPENDENT",
        "SELECT a.k, COLLECT_SET(a.y) AS ys FROM silver.a AS a GROUP BY a.k",
    ),
    "map in rows without a key": (
        "INCOMPARABLE_TYPE",
        "SELECT a.k, MAP('x', a.x) AS m FROM silver.a AS a",
    ),
    "map of entries in rows without a key": (
        "INCOMPARABLE_TYPE",
        "SELECT a.k, IF(a.x > 1, MAP_CONCAT(MAP('x', a.x)), NULL) AS m FROM silver.a AS a",
    ),
    "variant": (
        "INCOMPARABLE_TYPE",
        "SELECT a.k, MAX(a.x) AS x, PARSE_JSON('1') AS j FROM silver.a AS a GROUP BY a.k",
    ),
    "variant on one side of a join": (
        "INCOMPARABLE_TYPE",
        (
            "SELECT a.k, VARIANT_GET(s.j, '$.x', 'int') AS x FROM silver.a AS a JOIN (SELECT b.k, "
            "PARSE_JSON(CAST(b.z AS STRING)) AS j FROM silver.b AS b) AS s ON s.k = a.k"
        ),
    ),
    "text in the order of arrival": (
        "ORDER_DEPENDENT",
        "SELECT a.k, LISTAGG(CAST(a.y AS STRING), ',') AS ys FROM silver.a AS a GROUP BY a.k",
    ),
    "subquery on the left of IN": (
        "UNSUPPORTED_SUBQUERY",
        f"{_OF_A} (SELECT MAX(b.z) FROM silver.b AS b) IN (SELECT c.y FROM silver.c AS c)",
    ),
    "IN over a column of the query around": (
        "UNSUPPORTED_SUBQUERY",
        f"{_OF_A} a.x IN (SELECT a.y FROM silver.c AS c)",
    ),
    "IN over two columns in an OR": (
        "UNSUPPORTED_SUBQUERY",
        f"{_OF_A} a.y > 1 OR (a.k, a.x) IN (SELECT c.j, c.y FROM silver.c AS c)",
    ),
    "NOT IN as a value": (
        "UNSUPPORTED_SUBQUERY",
        "SELECT NOT a.x IN (SELECT c.y FROM silver.c AS c) AS v FROM silver.a AS a",
    ),
    "IN that is compared": (
        "UNSUPPORTED_SUBQUERY",
        f"{_OF_A} (a.x IN (SELECT c.y FROM silver.c AS c)) = (a.y > 1)",
    ),
    "IN as a branch of IF": (
        "UNSUPPORTED_SUBQUERY",
        "SELECT IF(a.y > 1, a.x IN (SELECT c.y FROM silver.c AS c), FALSE) AS v FROM silver.a AS a",
    ),
    "subquery on the left of IN, beside OR": (
        "UNSUPPORTED_SUBQUERY",
        (
            f"{_OF_A} a.y > 1 OR (SELECT MAX(b.z) FROM silver.b AS b) "
            "IN (SELECT c.y FROM silver.c AS c)"
        ),
    ),
    "IN that CASE compares": (
        "UNSUPPORTED_SUBQUERY",
        (
            "SELECT CASE a.y > 1 WHEN a.x IN (SELECT c.y FROM silver.c AS c) THEN 1 END AS v "
            "FROM silver.a AS a"
        ),
    ),
    "NOT IN beside OR, correlated": (
        "UNSUPPORTED_SUBQUERY",
        f"{_OF_A} a.y > 1 OR NOT a.x IN (SELECT c.y FROM silver.c AS c WHERE c.j = a.k)",
    ),
    "count IN, as a value": (
        "UNSUPPORTED_CLAUSE",
        "SELECT COUNT(*) IN (SELECT c.y FROM silver.c AS c) AS v FROM silver.a AS a GROUP BY a.k",
    ),
    "scalar subquery with a condition on the row around alone": (
        "UNSUPPORTED_SUBQUERY",
        "SELECT (SELECT MAX(b.z) FROM silver.b AS b WHERE a.k = 1) AS v FROM silver.a AS a",
    ),
    "scalar subquery of an equality that mixes both rows": (
        "UNSUPPORTED_SUBQUERY",
        "SELECT (SELECT MAX(b.z) FROM silver.b AS b WHERE b.x + a.k = a.y) AS v FROM silver.a AS a",
    ),
    "scalar subquery of an equality that mixes both rows on the right": (
        "UNSUPPORTED_SUBQUERY",
        "SELECT (SELECT MAX(b.z) FROM silver.b AS b WHERE b.x = b.z + a.k) AS v FROM silver.a AS a",
    ),
    "order behind a query in parentheses": (
        "UNSUPPORTED_CLAUSE",
        (
            "SELECT s.k FROM ((SELECT a.k FROM silver.a AS a ORDER BY a.k LIMIT 3) "
            "ORDER BY k DESC LIMIT 2) AS s"
        ),
    ),
    "EXISTS of what a generator makes of rows": (
        "UNRESOLVED_COLUMN",
        (
            f"{_OF_A} EXISTS (SELECT EXPLODE(ARRAY_REMOVE(ARRAY(b.z), 4)) FROM silver.b AS b "
            "WHERE b.k = a.k)"
        ),
    ),
    "list for each row, empty without a match": (
        "UNSUPPORTED_SUBQUERY",
        (
            "SELECT a.k, (SELECT ARRAY_SORT(COLLECT_SET(b.z)) FROM silver.b AS b "
            "WHERE b.k = a.k) AS zs FROM silver.a AS a"
        ),
    ),
    "subquery in QUALIFY": (
        "UNSUPPORTED_SUBQUERY",
        (
            "SELECT a.k FROM silver.a AS a QUALIFY RANK() OVER (PARTITION BY a.k ORDER BY a.y) "
            "<= (SELECT COUNT(*) FROM silver.b AS b)"
        ),
    ),
    "subquery in ORDER BY": (
        "UNSUPPORTED_SUBQUERY",
        (
            "SELECT a.k FROM silver.a AS a "
            "ORDER BY a.k % (SELECT COUNT(*) FROM silver.b AS b), a.k LIMIT 2"
        ),
    ),
    "subquery in GROUP BY": (
        "UNSUPPORTED_SUBQUERY",
        (
            "SELECT COUNT(*) AS n FROM silver.a AS a "
            "GROUP BY a.k % (SELECT COUNT(*) FROM silver.b AS b)"
        ),
    ),
    "subquery in LATERAL VIEW": (
        "UNSUPPORTED_SUBQUERY",
        (
            "SELECT t.v FROM silver.a AS a LATERAL VIEW "
            "EXPLODE(SEQUENCE(0, (SELECT COUNT(*) FROM silver.b AS b))) t AS v"
        ),
    ),
    "EXISTS of rows for which a column around it is IN a third table": (
        "UNSUPPORTED_SUBQUERY",
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b "
            "WHERE b.k = a.k AND a.x IN (SELECT c.y FROM silver.c AS c))"
        ),
    ),
    "EXISTS of a join on a column around it": (
        "UNSUPPORTED_SUBQUERY",
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b "
            "JOIN silver.c AS c ON b.k = c.j AND c.y = a.x)"
        ),
    ),
    "EXISTS of a query that selects a column around it": (
        "UNSUPPORTED_SUBQUERY",
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM (SELECT b.k, a.x AS ax FROM silver.b AS b) AS s "
            "WHERE s.ax = s.k)"
        ),
    ),
    "last value by another condition than equality": (
        "UNRESOLVED_COLUMN",
        (
            "SELECT a.x, (SELECT b.z FROM silver.b AS b WHERE b.k < a.k ORDER BY b.x LIMIT 1) AS v "
            "FROM silver.a AS a"
        ),
    ),
    "EXISTS of a group by another condition than equality": (
        "UNRESOLVED_COLUMN",
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k <= a.k "
            "GROUP BY b.x HAVING COUNT(*) > 1)"
        ),
    ),
    "EXISTS of a group of ROLLUP": (
        "UNRESOLVED_COLUMN",
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k "
            "GROUP BY ROLLUP (b.x) HAVING COUNT(*) > 1)"
        ),
    ),
    "EXISTS of a group that is compared with the row around": (
        "UNRESOLVED_COLUMN",
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k "
            "GROUP BY b.x HAVING COUNT(*) > a.y)"
        ),
    ),
    "EXISTS of an aggregate if a condition without one holds": (
        "UNRESOLVED_COLUMN",
        (f"{_OF_A} EXISTS (SELECT MAX(b.z) FROM silver.b AS b WHERE b.k = a.k HAVING a.y > 3)"),
    ),
    "EXISTS of a union": (
        "UNRESOLVED_COLUMN",
        (
            f"{_OF_A} EXISTS (SELECT 1 FROM silver.b AS b WHERE b.k = a.k "
            "UNION ALL SELECT 1 FROM silver.c AS c WHERE c.j = a.k)"
        ),
    ),
    "last distinct value of each row": (
        "UNRESOLVED_COLUMN",
        (
            f"{_OF_A} a.y > (SELECT DISTINCT b.z FROM silver.b AS b WHERE b.k = a.k "
            "ORDER BY b.z LIMIT 1)"
        ),
    ),
    "PIVOT of lists": (
        "UNSUPPORTED_RELATION",
        (
            "SELECT p.k, p.one FROM (SELECT a.k, a.x, a.y FROM silver.a AS a) "
            "PIVOT (ARRAY_SORT(COLLECT_LIST(y)) FOR x IN (1 AS one)) AS p"
        ),
    ),
    "PIVOT whose values are converted": (
        "UNSUPPORTED_RELATION",
        "SELECT p.k, p.one FROM silver.a PIVOT (SUM(y) FOR x IN ('1' AS one)) AS p",
    ),
    "PIVOT of aggregates without names": (
        "UNSUPPORTED_RELATION",
        "SELECT p.k FROM silver.a PIVOT (SUM(y), MAX(y) FOR x IN (1)) AS p",
    ),
    "UNPIVOT of columns of several types": (
        "UNSUPPORTED_RELATION",
        (
            "SELECT k, v FROM (SELECT a.k, a.x, 1.5 AS y FROM silver.a AS a) "
            "UNPIVOT (v FOR n IN (x, y))"
        ),
    ),
    "GROUPING SETS of nothing": (
        "UNSUPPORTED_CLAUSE",
        "SELECT COUNT(*) AS n FROM silver.a AS a GROUP BY GROUPING SETS (())",
    ),
    "group of nothing": (
        "UNSUPPORTED_CLAUSE",
        "SELECT COUNT(*) AS n FROM silver.a AS a GROUP BY ()",
    ),
    "earlier version of a table": (
        "UNSUPPORTED_RELATION",
        "SELECT a.x FROM silver.a VERSION AS OF 3 AS a",
    ),
    "join in parentheses": (
        "UNSUPPORTED_RELATION",
        "SELECT a.x FROM (silver.a AS a JOIN silver.b AS b ON a.k = b.k)",
    ),
    "table that is in no layer": ("UNSUPPORTED_RELATION", "SELECT t.x FROM other.t AS t"),
    "natural join without a common column": (
        "UNSUPPORTED_RELATION",
        "SELECT s.k FROM (SELECT a.k FROM silver.a AS a) AS s NATURAL JOIN silver.c AS c",
    ),
    "left join with a generator": (
        "UNSUPPORTED_RELATION",
        "SELECT a.x, t.n FROM silver.a AS a LEFT JOIN LATERAL EXPLODE(SEQUENCE(1, a.y)) AS t(n)",
    ),
    "join with a generator on a condition": (
        "UNSUPPORTED_RELATION",
        (
            "SELECT a.x, t.n FROM silver.a AS a "
            "JOIN LATERAL EXPLODE(SEQUENCE(1, a.y)) AS t(n) ON t.n > a.x"
        ),
    ),
    "ROLLUP within GROUPING SETS": (
        "UNSUPPORTED_CLAUSE",
        "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY GROUPING SETS (a.k, ROLLUP(a.x))",
    ),
    "sample": (
        "UNSUPPORTED_CLAUSE",
        "SELECT a.x FROM silver.a AS a TABLESAMPLE (3 ROWS)",
    ),
    "VALUES as a scalar subquery": (
        "UNSUPPORTED_SUBQUERY",
        "SELECT a.x, (VALUES (1)) AS one FROM silver.a AS a",
    ),
    "first distinct values in the order of an expression": (
        "UNSUPPORTED_CLAUSE",
        "SELECT DISTINCT a.k FROM silver.a AS a ORDER BY a.k + 1 LIMIT 2",
    ),
    "scalar subquery that computes with a column of the query around": (
        "UNSUPPORTED_SUBQUERY",
        "SELECT (SELECT b.z + a.x FROM silver.b AS b WHERE b.k = a.k) AS v FROM silver.a AS a",
    ),
    "first row as a scalar subquery that computes with the row around": (
        "UNRESOLVED_COLUMN",
        (
            "SELECT (SELECT b.z + a.x FROM silver.b AS b ORDER BY b.z LIMIT 1) AS v "
            "FROM silver.a AS a"
        ),
    ),
    "column that may be of either of two undeclared tables": (
        "UNRESOLVED_COLUMN",
        "SELECT x FROM silver.d AS d CROSS JOIN silver.e AS e",
    ),
    "NOT IN of an aggregate in HAVING": (
        "UNSUPPORTED_CLAUSE",
        (
            "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k "
            "HAVING NOT MAX(a.x) IN (SELECT b.k FROM silver.b AS b)"
        ),
    ),
    "HAVING of IN over a key of ROLLUP, which is NULL in a total": (
        "UNSUPPORTED_CLAUSE",
        (
            "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY ROLLUP (a.k) "
            "HAVING a.k IN (SELECT b.k FROM silver.b AS b)"
        ),
    ),
    "HAVING of IN over a key WITH ROLLUP, which is NULL in a total": (
        "UNSUPPORTED_CLAUSE",
        (
            "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k WITH ROLLUP "
            "HAVING a.k IN (SELECT b.k FROM silver.b AS b)"
        ),
    ),
    "function with the name of a common table expression": (
        "UNSUPPORTED_RELATION",
        "WITH range AS (SELECT a.k AS id FROM silver.a AS a) SELECT r.id FROM RANGE(3) AS r",
    ),
    "condition on a column that may be of either of two undeclared tables": (
        "UNRESOLVED_COLUMN",
        "SELECT d.y FROM silver.d AS d CROSS JOIN silver.e AS e WHERE x > 1",
    ),
    # Spark returns no row for no rows, as for any group of a constant.
    "GROUP BY ALL of constants": (
        "UNSUPPORTED_CLAUSE",
        "SELECT 1 AS one, COUNT(*) AS n FROM silver.a AS a GROUP BY ALL",
    ),
    "two ROLLUPs": (
        "UNSUPPORTED_CLAUSE",
        "SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY ROLLUP (a.k), ROLLUP (a.x)",
    ),
    "subquery in the condition of a join": (
        "UNSUPPORTED_SUBQUERY",
        (
            f"SELECT a.x, b.z FROM {_JOINED.format('JOIN')} "
            "AND b.z > (SELECT MIN(c.y) FROM silver.c AS c)"
        ),
    ),
    "join with a generator on FALSE": (
        "UNSUPPORTED_RELATION",
        (
            "SELECT a.x, t.n FROM silver.a AS a "
            "JOIN LATERAL EXPLODE(SEQUENCE(1, a.y)) AS t(n) ON FALSE"
        ),
    ),
    "values as a query": ("UNSUPPORTED_CLAUSE", "VALUES (1), (2)"),
    "part of a variant that is one": (
        "INCOMPARABLE_TYPE",
        "SELECT a.k, VARIANT_GET(PARSE_JSON('[1]'), '$[0]', 'variant') AS v FROM silver.a AS a",
    ),
    "subquery in the order of a union": (
        "UNSUPPORTED_SUBQUERY",
        (
            "SELECT a.x FROM silver.a AS a UNION ALL SELECT b.z FROM silver.b AS b "
            "ORDER BY x % (SELECT COUNT(c.y) FROM silver.c AS c) LIMIT 3"
        ),
    ),
    "recursive query": (
        "UNSUPPORTED_CLAUSE",
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM r WHERE r.n < 3) "
            "SELECT a.x, r.n FROM silver.a AS a JOIN r ON r.n = a.k"
        ),
    ),
    "session window in ROLLUP": (
        "UNSUPPORTED_CLAUSE",
        (
            "SELECT b.k, COUNT(*) AS n FROM silver.b AS b "
            "GROUP BY ROLLUP (b.k, SESSION_WINDOW(b.s, '1 hour'))"
        ),
    ),
    "generator of several columns": (
        "UNSUPPORTED_CLAUSE",
        (
            "SELECT s.x FROM (SELECT POSEXPLODE(SEQUENCE(1, a.y)) AS (p, v), a.x "
            "FROM silver.a AS a) AS s"
        ),
    ),
    "clock in the result": (
        "CLOCK_OUTSIDE_WHERE",
        "SELECT a.k, CURRENT_DATE() AS today FROM silver.a AS a",
    ),
    "clock in the result of a subquery": (
        "CLOCK_OUTSIDE_WHERE",
        (
            "SELECT s.k FROM (SELECT a.k, CURRENT_DATE() AS today FROM silver.a AS a) AS s "
            "WHERE s.today > DATE '2026-01-01'"
        ),
    ),
    "clock among values": (
        "CLOCK_OUTSIDE_WHERE",
        "SELECT a.k FROM silver.a AS a CROSS JOIN (VALUES (CURRENT_DATE())) AS v(today)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_rule_is_refused(name: str) -> None:
    obstacle, sql = REFUSED[name]
    found, error = maintenance_of(canonical(sql), types=INTS)
    assert found.rule is MaintenanceStrategy.FULL
    assert found.obstacle == obstacle
    assert error is not None


def values(view: Maintained, content: Content, clock: datetime = NOON) -> list[Row]:
    """What the view holds after a step, which equals its SQL."""
    maintained, computed = view.move(content, clock)
    assert maintained == computed
    return sorted(maintained.elements(), key=str)


def started(engine: Engine, sql: str, content: Content, clock: datetime = NOON) -> Maintained:
    """A view that is published over a first content."""
    view = Maintained(sql, engine, INTS)
    view.start({**dict.fromkeys(INTS, ()), **content}, clock)
    return view


TIED = {
    "ROW_NUMBER": (
        "SELECT r.x, COUNT(*) AS n FROM (SELECT a.x, ROW_NUMBER() OVER (PARTITION BY a.k "
        "ORDER BY a.y) AS place FROM silver.a AS a) AS r WHERE r.place = 1 GROUP BY r.x"
    ),
    "FIRST_VALUE": (
        "SELECT r.x, COUNT(*) AS n FROM (SELECT a.k, FIRST_VALUE(a.x) OVER (PARTITION BY a.k "
        "ORDER BY a.y) AS x FROM silver.a AS a) AS r GROUP BY r.x"
    ),
    "LIMIT": (
        "SELECT r.x, COUNT(*) AS n FROM (SELECT a.x FROM silver.a AS a ORDER BY a.y LIMIT 1) AS r "
        "GROUP BY r.x"
    ),
    "LIMIT of a correlated subquery": (
        "SELECT r.x, COUNT(*) AS n FROM (SELECT DISTINCT (SELECT b.x FROM silver.a AS b "
        "WHERE b.k = a.k ORDER BY b.y LIMIT 1) AS x FROM silver.a AS a) AS r GROUP BY r.x"
    ),
    "MAX_BY": (
        "SELECT r.x, COUNT(*) AS n FROM (SELECT a.k, MAX_BY(a.x, -a.y) AS x FROM silver.a AS a "
        "GROUP BY a.k) AS r GROUP BY r.x"
    ),
}


@pytest.mark.parametrize("name", TIED)
def test_of_rows_that_tie_the_same_one_comes_first_each_time(engine: Engine, name: str) -> None:
    tied: list[Row] = [(1, 1, 5), (1, 2, 5)]
    for first in (tied, tied[::-1]):
        view = started(engine, TIED[name], {A: first[:1]})
        for rows in (first, [*first, (1, 0, 6)], [*first[::-1], (1, 0, 7)], [(1, 3, 4)]):
            maintained, _ = view.move({**view.content, A: rows})
            view.compact(maintained)
        # The first result had no ties, so that every change of it can be followed.
        assert maintained == {(3, 1): 1}


def test_a_scalar_subquery_of_several_rows_fails_as_its_sql_does(engine: Engine) -> None:
    sql = "SELECT a.x, (SELECT b.z FROM silver.b AS b WHERE b.k = a.k) AS z FROM silver.a AS a"
    view = started(engine, sql, {A: [(1, 7, 0)], B: [(1, 0, 5)]})
    assert values(view, {A: [(1, 7, 0)], B: [(1, 0, 6)]}) == [(7, 6)]
    # Of another row, so that nothing fails.
    assert values(view, {A: [(1, 7, 0)], B: [(2, 0, 6), (2, 0, 6)]}) == [(7, None)]
    with pytest.raises(duckdb.Error, match=SEVERAL_ROWS):
        view.move({A: [(1, 7, 0)], B: [(1, 0, 6), (1, 0, 6)]})


def test_a_sum_whose_values_all_became_null_is_null_and_not_0(engine: Engine) -> None:
    view = started(engine, RULES["SUM"][1], {A: [(1, 1, 5), (1, 1, -5), (2, 1, 0)]})
    assert values(view, {A: [(1, 1, None), (2, 1, 0)]}) == [(1, None), (2, 0)]
    assert values(view, {A: [(1, 1, None), (1, 1, 0), (2, 1, None)]}) == [(1, 0), (2, None)]


def test_a_global_aggregate_keeps_its_row_over_nothing(engine: Engine) -> None:
    view = started(engine, RULES["global aggregate"][1], {A: [(1, 1, 5)]})
    assert values(view, {A: []}) == [(0, None)]
    assert values(view, {A: [(1, 1, None)]}) == [(1, None)]


def test_a_group_of_null_keys_goes_with_its_last_row(engine: Engine) -> None:
    view = started(engine, RULES["COUNT"][1], {A: [(None, 1, 1), (None, 1, 1), (0, 1, 1)]})
    assert values(view, {A: [(None, 1, None), (0, 1, 1)]}) == [(0, 1, 1), (None, 1, 0)]
    assert values(view, {A: [(0, 1, 1)]}) == [(0, 1, 1)]


def test_one_null_empties_not_in_and_its_going_fills_it(engine: Engine) -> None:
    view = started(
        engine, RULES["NOT IN"][1], {A: [(1, 1, 0), (2, 2, 0), (None, 3, 0)], B: [(1, 0, 0)]}
    )
    a = [(1, 1, 0), (2, 2, 0), (None, 3, 0)]
    assert values(view, {A: a, B: [(1, 0, 0), (None, 0, 0)]}) == []
    assert values(view, {A: a, B: [(1, 0, 0)]}) == [(2,)]
    assert values(view, {A: a, B: []}) == [(1,), (2,), (3,)]


def test_except_all_counts(engine: Engine) -> None:
    view = started(engine, RULES["EXCEPT ALL"][1], {A: [(1, 0, 0)] * 3, B: [(1, 0, 0)]})
    assert values(view, {A: [(1, 0, 0)] * 3, B: [(1, 0, 0)] * 2}) == [(1,)]
    assert values(view, {A: [(1, 0, 0)] * 3, B: [(1, 0, 0)] * 4}) == []
    assert values(view, {A: [(1, 0, 0)] * 6, B: [(1, 0, 0)] * 4}) == [(1,), (1,)]
    assert values(view, {A: [(None, 0, 0)] * 2, B: [(None, 0, 0)]}) == [(None,)]


def test_a_left_join_s_match_comes_and_goes(engine: Engine) -> None:
    view = started(engine, RULES["left join"][1], {A: [(1, 0, 0), (1, 0, 0)]})
    a = [(1, 0, 0), (1, 0, 0)]
    assert values(view, {A: a, B: [(1, 0, 4)]}) == [(1, 4), (1, 4)]
    assert values(view, {A: a, B: [(1, 0, 4), (1, 0, 5)]}) == [(1, 4), (1, 4), (1, 5), (1, 5)]
    assert values(view, {A: a, B: [(None, 0, 4)]}) == [(1, None), (1, None)]


def test_the_top_is_filled_from_below(engine: Engine) -> None:
    rows = [(1, 0, 9), (2, 0, 8), (3, 0, 7), (3, 0, 7), (4, 0, 1)]
    view = started(engine, RULES["top of all rows"][1], {A: rows})
    assert values(view, {A: rows[1:]}) == [(2, 8), (3, 7)]
    assert values(view, {A: rows[2:]}) == [(3, 7), (3, 7)]
    assert values(view, {A: rows[3:]}) == [(3, 7), (4, 1)]
    assert values(view, {A: [(5, 0, None)]}) == [(5, None)]


def test_the_conditions_of_a_large_table_hold_behind_a_step(engine: Engine) -> None:
    view = Maintained(RULES["join of three"][1], engine, INTS, all_large=True)
    follow(view, HISTORIES["matches come and go"])
    follow(view, HISTORIES["both sides at once"])


def test_a_copy_of_a_row_goes_alone(engine: Engine) -> None:
    view = started(engine, RULES["filter and projection"][1], {A: [(2, 1, 1)] * 3})
    assert values(view, {A: [(2, 1, 1)] * 2}) == [(2, 1), (2, 1)]


CLOCKS: dict[str, str] = {
    "rows until a day": "SELECT a.x FROM silver.a AS a "
    "WHERE DATE_ADD(DATE '2026-01-01', a.k) <= CURRENT_DATE()",
    "rows of a window of days": "SELECT a.x FROM silver.a AS a "
    "WHERE DATE_ADD(DATE '2026-01-01', a.k) > DATE_SUB(CURRENT_DATE(), 2) "
    "AND DATE_ADD(DATE '2026-01-01', a.k) <= CURRENT_DATE()",
    "groups of the last days": "SELECT a.x, COUNT(*) AS n, SUM(a.y) AS total FROM silver.a AS a "
    "WHERE DATE_ADD(DATE '2026-01-01', a.k) > DATE_SUB(CURRENT_DATE(), 2) GROUP BY a.x",
    "largest of the last days": "SELECT a.x, MAX(a.y) AS most FROM silver.a AS a "
    "WHERE DATE_ADD(DATE '2026-01-01', a.k) > DATE_SUB(CURRENT_DATE(), 2) GROUP BY a.x",
    "groups whose largest is of the last days": "SELECT a.x, MAX(a.k) AS most "
    "FROM silver.a AS a GROUP BY a.x "
    "HAVING DATE_ADD(DATE '2026-01-01', MAX(a.k)) > DATE_SUB(CURRENT_DATE(), 2)",
    "joined rows of the last days": "SELECT a.x, b.z FROM silver.a AS a JOIN silver.b AS b "
    "ON a.x = b.x WHERE DATE_ADD(DATE '2026-01-01', a.k) > DATE_SUB(CURRENT_DATE(), 2)",
    "without a match in the last days": "SELECT a.x FROM silver.a AS a WHERE NOT EXISTS "
    "(SELECT 1 FROM silver.b AS b WHERE b.x = a.x "
    "AND DATE_ADD(DATE '2026-01-01', b.k) > DATE_SUB(CURRENT_DATE(), 2))",
}


@pytest.mark.parametrize("name", CLOCKS)
def test_a_clock_that_moves_lets_rows_in_and_out(engine: Engine, name: str) -> None:
    days = {
        A: [(day, day % 2, day) for day in range(6)] + [(1, 1, 1), (None, 1, 1), (3, None, None)],
        B: [(1, 1, 1), (2, 0, 2), (4, 1, None)],
    }
    view = started(engine, CLOCKS[name], days)
    later = NOON + timedelta(days=1)
    values(view, {**dict.fromkeys(INTS, ()), **days}, later)
    later += timedelta(days=2)
    values(view, {**dict.fromkeys(INTS, ()), A: days[A][1:], B: [*days[B], (5, 0, 0)]}, later)
    # What the clock let in and what changed cancel out.
    values(view, {**dict.fromkeys(INTS, ()), A: days[A], B: days[B]}, later)
    values(view, {**dict.fromkeys(INTS, ()), A: [], B: []}, later + timedelta(days=30))
