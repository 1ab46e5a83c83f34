"""SELECTs that Spark refuses although every name resolves, and relatives that it takes."""

from __future__ import annotations

from spark_jobs.names import Layer, TableName
from tests.unit.graph import clause_cases, correlation_cases, grouping_cases

COLUMNS = {
    "orders": {
        "order_id": "bigint",
        "customer": "string",
        "amount": "decimal(12,2)",
        "day": "date",
        "created_at": "timestamp",
        "tags": "array<string>",
    },
    "users": {"customer": "string", "segment": "string", "age": "int"},
    "shops": {
        "shop": "string",
        "place": "struct<City: string, at: struct<x: int, y: int>>",
        "old": "array<struct<City: string, at: struct<x: int, y: int>>>",
    },
    "labels": {
        "shop": "string",
        "names": "map<string, string>",
        "more": "struct<of: map<string, int>>",
        "raw": "variant",
    },
}
SCHEMAS = {TableName(Layer.SILVER, name): columns for name, columns in COLUMNS.items()}

# SQL, the condition, the line and column that it names.
REFUSED = {
    "a name that looks like a number": (
        "SELECT o.day, 0x1F AS h FROM silver.orders AS o",
        "UNKNOWN_COLUMN",
        "1:15",
    ),
    "an aggregate in FILTER": (
        (
            "SELECT o.day, SUM(o.amount) FILTER (WHERE MAX(o.amount) > 1) AS s\n"
            "FROM silver.orders AS o GROUP BY o.day"
        ),
        "MISPLACED_AGGREGATE",
        "1:43",
    ),
    "a frame of a column": (
        (
            "SELECT SUM(o.amount) OVER (ORDER BY o.day ROWS BETWEEN o.order_id PRECEDING "
            "AND CURRENT ROW) AS s FROM silver.orders AS o"
        ),
        "WINDOW",
        "1:8",
    ),
    "a star in an operator": (
        "SELECT SUM(o.amount * *) AS s FROM silver.orders AS o",
        "MISPLACED_STAR",
        "1:12",
    ),
    "a star in a condition": (
        "SELECT o.day FROM silver.orders AS o JOIN silver.users AS u ON u.customer = *",
        "MISPLACED_STAR",
        "1:64",
    ),
    "a star of a table in COUNT": (
        "SELECT COUNT(o.*) AS n FROM silver.orders AS o",
        "MISPLACED_STAR",
        "1:8",
    ),
    "a star in a cast": (
        "SELECT CAST(o.* AS STRING) AS s FROM silver.orders AS o",
        "MISPLACED_STAR",
        "1:13",
    ),
    "star of a column that is no struct": (
        "SELECT o.day.* FROM silver.orders AS o",
        "MISPLACED_STAR",
        "1:8",
    ),
    "output in WHERE": (
        "SELECT o.amount + 1 AS more FROM silver.orders AS o\nWHERE o.day IS NULL AND more > 2",
        "MISPLACED_ALIAS",
        "2:25",
    ),
    "output in a window": (
        "SELECT o.amount + 1 AS more, RANK() OVER (ORDER BY more) AS r FROM silver.orders AS o",
        "MISPLACED_ALIAS",
        "1:52",
    ),
    "output in an aggregate": (
        "SELECT o.day AS d, MAX(d) AS m FROM silver.orders AS o GROUP BY o.day",
        "MISPLACED_ALIAS",
        "1:24",
    ),
    "output in an output of GROUP BY ALL": (
        "SELECT o.day, SUM(o.amount) AS s, s / 2 AS half FROM silver.orders AS o GROUP BY ALL",
        "MISPLACED_ALIAS",
        "1:35",
    ),
    "output in an output at a position of GROUP BY": (
        "SELECT o.day AS d, YEAR(d) AS y, COUNT(*) AS n FROM silver.orders AS o GROUP BY 1, 2",
        "MISPLACED_ALIAS",
        "1:25",
    ),
    "output in an output named in GROUP BY": (
        "SELECT o.day AS d, YEAR(d) AS y, MAX(1) AS n FROM silver.orders AS o GROUP BY CUBE(d, y)",
        "MISPLACED_ALIAS",
        "1:25",
    ),
    "column outside GROUP BY": (
        "SELECT o.customer, o.day, COUNT(*) AS n\nFROM silver.orders AS o GROUP BY o.customer",
        "UNGROUPED_COLUMN",
        "1:20",
    ),
    "column beside an aggregate": (
        "SELECT o.customer, COUNT(*) AS n FROM silver.orders AS o",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "column within an expression": (
        (
            "SELECT o.day, UPPER(o.customer) || 'x' AS c, SUM(o.amount) AS s\n"
            "FROM silver.orders AS o GROUP BY o.day"
        ),
        "UNGROUPED_COLUMN",
        "1:21",
    ),
    "column in HAVING": (
        "SELECT o.day, COUNT(*) AS n FROM silver.orders AS o\nGROUP BY o.day HAVING o.amount > 1",
        "UNGROUPED_COLUMN",
        "2:23",
    ),
    "column of a window over groups": (
        "SELECT o.day, SUM(o.amount) OVER () AS s FROM silver.orders AS o GROUP BY o.day",
        "UNGROUPED_COLUMN",
        "1:19",
    ),
    "column outside GROUP BY in a CTE": (
        (
            "WITH t AS (SELECT o.day, o.customer, COUNT(*) AS n FROM silver.orders AS o "
            "GROUP BY o.day)\nSELECT t.day, t.n FROM t"
        ),
        "UNGROUPED_COLUMN",
        "1:26",
    ),
    "union of other arity": (
        (
            "SELECT o.day, o.customer FROM silver.orders AS o\n"
            "UNION ALL SELECT o.day FROM silver.orders AS o"
        ),
        "SET_ARITY",
        "2:18",
    ),
    "except of other arity in a subquery": (
        (
            "SELECT t.customer FROM (\nSELECT u.customer FROM silver.users AS u\n"
            "EXCEPT SELECT o.customer, o.day FROM silver.orders AS o) AS t"
        ),
        "SET_ARITY",
        "3:15",
    ),
    "aggregate in WHERE": (
        "SELECT o.day FROM silver.orders AS o\nWHERE SUM(o.amount) > 1 GROUP BY o.day",
        "MISPLACED_AGGREGATE",
        "2:7",
    ),
    "window in WHERE": (
        (
            "SELECT o.day FROM silver.orders AS o\n"
            "WHERE ROW_NUMBER() OVER (PARTITION BY o.customer ORDER BY o.day) = 1"
        ),
        "MISPLACED_AGGREGATE",
        "2:",
    ),
    "aggregate in the condition of a join": (
        "SELECT o.day FROM silver.orders AS o\nJOIN silver.users AS u ON MAX(u.age) = o.order_id",
        "MISPLACED_AGGREGATE",
        "2:27",
    ),
    "aggregate in GROUP BY": (
        "SELECT COUNT(*) AS n FROM silver.orders AS o GROUP BY SUM(o.amount)",
        "MISPLACED_AGGREGATE",
        "1:55",
    ),
    "window in HAVING": (
        (
            "SELECT o.day, COUNT(*) AS n FROM silver.orders AS o GROUP BY o.day\n"
            "HAVING RANK() OVER (ORDER BY o.day) = 1"
        ),
        "MISPLACED_AGGREGATE",
        "2:",
    ),
    "aggregate of an aggregate": (
        "SELECT o.day, MAX(SUM(o.amount)) AS m FROM silver.orders AS o GROUP BY o.day",
        "MISPLACED_AGGREGATE",
        "1:19",
    ),
    "timestamp plus a number": (
        "SELECT o.created_at + o.order_id AS later FROM silver.orders AS o",
        "INCOMPARABLE_TYPES",
        "1:8",
    ),
    "timestamp compared with a number": (
        "SELECT o.day FROM silver.orders AS o\nWHERE o.created_at > o.amount",
        "INCOMPARABLE_TYPES",
        "2:7",
    ),
    "filter by a column": (
        "SELECT o.day FROM silver.orders AS o\nWHERE o.customer",
        "NOT_A_CONDITION",
        "2:7",
    ),
    "join by a column": (
        "SELECT o.day FROM silver.orders AS o\nJOIN silver.users AS u ON o.order_id",
        "NOT_A_CONDITION",
        "2:27",
    ),
    "having without groups": (
        "SELECT 1 AS one FROM silver.orders AS o HAVING o.amount > 1",
        "UNGROUPED_COLUMN",
        "1:48",
    ),
    "order by a column outside of the groups": (
        "SELECT o.day, COUNT(*) AS n FROM silver.orders AS o\nGROUP BY 1 ORDER BY o.amount",
        "UNGROUPED_COLUMN",
        "2:21",
    ),
    "comparison in a query around it": (
        (
            "SELECT t.d FROM (SELECT MAX(o.day) AS d, COUNT(*) AS n FROM silver.orders AS o) AS t\n"
            "WHERE t.d > 5"
        ),
        "INCOMPARABLE_TYPES",
        "2:7",
    ),
    "union of a date and a number": (
        "SELECT o.day FROM silver.orders AS o\nUNION SELECT o.amount FROM silver.orders AS o",
        "INCOMPARABLE_TYPES",
        "2:14",
    ),
    "in a query of two columns": (
        (
            "SELECT o.day FROM silver.orders AS o\n"
            "WHERE o.customer IN (SELECT u.customer, u.age FROM silver.users AS u)"
        ),
        "SUBQUERY_COLUMNS",
        "2:41",
    ),
    "date compared with a number": (
        "SELECT o.day FROM silver.orders AS o\nWHERE o.day = 20260131",
        "INCOMPARABLE_TYPES",
        "2:7",
    ),
    "generator in WHERE": (
        "SELECT o.day FROM silver.orders AS o\nWHERE EXPLODE(o.tags) = 'x'",
        "GENERATOR",
        "2:",
    ),
    "generator in GROUP BY": (
        "SELECT COUNT(*) AS n FROM silver.orders AS o\nGROUP BY EXPLODE(o.tags)",
        "GENERATOR",
        "2:",
    ),
    "order by no position": (
        "SELECT o.day, o.customer FROM silver.orders AS o\nORDER BY 1, 3",
        "POSITION",
        "2:13",
    ),
    "order by position zero": (
        "SELECT o.day FROM silver.orders AS o\nORDER BY 0",
        "POSITION",
        "2:10",
    ),
    "order by a negative position": (
        "SELECT o.day FROM silver.orders AS o\nORDER BY -1",
        "POSITION",
        "2:11",
    ),
    "order by no position in parentheses": (
        "SELECT o.day FROM silver.orders AS o\nORDER BY (3)",
        "POSITION",
        "2:11",
    ),
    "group by a negative position": (
        "SELECT o.day FROM silver.orders AS o\nGROUP BY o.day, -2",
        "POSITION",
        "2:18",
    ),
    "table function without its argument": (
        "SELECT t.id FROM\nRANGE() AS t",
        "FUNCTION_ARGUMENTS",
        "2:1",
    ),
    "generator without its argument": (
        "SELECT e.a FROM silver.orders AS o\nLATERAL VIEW POSEXPLODE(o.tags, 1) e AS b, a",
        "FUNCTION_ARGUMENTS",
        "2:14",
    ),
    "order of a union by no position": (
        (
            "SELECT o.customer FROM silver.orders AS o\nUNION SELECT u.customer "
            "FROM silver.users AS u\nORDER BY 2"
        ),
        "POSITION",
        "3:10",
    ),
    "two queries of one name": (
        "WITH a AS (SELECT 1 AS x),\na AS (SELECT 2 AS x) SELECT a.x FROM a",
        "DUPLICATE_CTE",
        "2:1",
    ),
}
# Spark takes them, so they must pass.
TAKEN = {
    "columns of a PIVOT": (
        "SELECT p.customer, p.`1` AS one FROM (SELECT o.customer, o.amount, o.order_id "
        "FROM silver.orders AS o) PIVOT (SUM(amount) FOR order_id IN (1, 2)) AS p"
    ),
    "columns of an UNPIVOT": (
        "SELECT customer, name, val FROM silver.orders UNPIVOT (val FOR name IN (day))"
    ),
    "generator without a name": (
        "SELECT s.col AS tag FROM (SELECT EXPLODE(o.tags) FROM silver.orders AS o) AS s"
    ),
    "query of WITH in another case": "WITH s AS (SELECT 1 AS a) SELECT S.a AS a FROM S",
    "star of a struct in a struct": "SELECT STRUCT(s.place.*) AS p FROM silver.shops AS s",
    "aggregate in the PARTITION BY of a window": (
        "SELECT o.day, RANK() OVER (PARTITION BY SUM(o.amount) ORDER BY o.day) AS r\n"
        "FROM silver.orders AS o GROUP BY o.day"
    ),
    "grouped expression": (
        "SELECT YEAR(o.day) + 1 AS y, COUNT(*) AS n FROM silver.orders AS o GROUP BY YEAR(o.day)"
    ),
    "group by position": (
        "SELECT o.day, o.customer, COUNT(*) AS n FROM silver.orders AS o GROUP BY 1, 2"
    ),
    "group by alias": (
        "SELECT DATE_TRUNC('month', o.day) AS month, COUNT(*) AS n\n"
        "FROM silver.orders AS o GROUP BY month"
    ),
    "group by all": "SELECT o.day, o.customer, COUNT(*) AS n FROM silver.orders AS o GROUP BY ALL",
    "rollup": (
        "SELECT o.day, o.customer, COUNT(*) AS n FROM silver.orders AS o\n"
        "GROUP BY ROLLUP (o.day, o.customer)"
    ),
    "grouping sets": (
        "SELECT o.day, o.customer, GROUPING(o.day) AS g, COUNT(*) AS n\n"
        "FROM silver.orders AS o GROUP BY GROUPING SETS ((o.day), (o.customer))"
    ),
    "having an alias": (
        "SELECT o.day, COUNT(*) AS n FROM silver.orders AS o GROUP BY o.day HAVING n > 1"
    ),
    "filter of an aggregate": (
        "SELECT o.day, COUNT(*) FILTER (WHERE o.amount > 1) AS n FROM silver.orders AS o\n"
        "GROUP BY o.day"
    ),
    "window over an aggregate": (
        "SELECT o.day, SUM(SUM(o.amount)) OVER (ORDER BY o.day) AS running\n"
        "FROM silver.orders AS o GROUP BY o.day"
    ),
    "percentile of an expression": (
        "SELECT o.day, PERCENTILE(o.amount * 2, 0.5) AS p, COUNT_IF(o.amount > 1) AS n,\n"
        "MAX_BY(o.customer, o.amount) AS c FROM silver.orders AS o GROUP BY o.day"
    ),
    "within group": (
        "SELECT o.day, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY o.amount) AS p\n"
        "FROM silver.orders AS o GROUP BY o.day"
    ),
    "lambda": (
        "SELECT o.day, AGGREGATE(COLLECT_LIST(o.order_id), 0L, (a, b) -> a + b) AS s\n"
        "FROM silver.orders AS o GROUP BY o.day"
    ),
    "correlated count": (
        "SELECT o.day FROM silver.orders AS o WHERE o.amount >\n"
        "(SELECT AVG(i.amount) FROM silver.orders AS i WHERE i.customer = o.customer)"
    ),
    "window and qualify": (
        "SELECT o.day, o.amount FROM silver.orders AS o\n"
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY o.customer ORDER BY o.order_id) = 1"
    ),
    "exploded and grouped": (
        "SELECT tag, COUNT(*) AS n FROM silver.orders AS o\n"
        "LATERAL VIEW EXPLODE(o.tags) t AS tag GROUP BY tag"
    ),
    "exploded and compared": (
        "SELECT t.tag, t.tag || 'x' AS y FROM (SELECT e.tag FROM silver.orders AS o\n"
        "LATERAL VIEW EXPLODE(o.tags) e AS tag WHERE e.tag > 'a') AS t WHERE t.tag = 'b'"
    ),
    "aggregate of constants": "SELECT 1 AS one, COUNT(*) AS n FROM silver.orders AS o",
    "union of same arity": (
        "SELECT o.customer FROM silver.orders AS o UNION SELECT u.customer FROM silver.users AS u"
    ),
    "date and int": "SELECT o.day + 1 AS next_day FROM silver.orders AS o",
    "time and interval": (
        "SELECT o.created_at + INTERVAL 1 HOUR AS later FROM silver.orders AS o\n"
        "WHERE o.created_at > '2026-01-01' AND o.day < o.created_at"
    ),
    "difference of times": (
        "SELECT o.created_at - TIMESTAMP '2026-01-01 00:00:00' AS since FROM silver.orders AS o"
    ),
    "group in a subquery with an outer column": (
        "SELECT u.segment, (SELECT COUNT(*) FROM silver.orders AS o WHERE o.customer = u.customer)"
        " AS n FROM silver.users AS u"
    ),
    "distinct": "SELECT DISTINCT o.day, o.customer FROM silver.orders AS o",
    "any value": (
        "SELECT o.day, ANY_VALUE(o.customer) AS c, FIRST(o.amount) AS f, MODE(o.amount) AS m\n"
        "FROM silver.orders AS o GROUP BY o.day"
    ),
    "using": (
        "SELECT customer, COUNT(*) AS n FROM silver.orders AS o\n"
        "JOIN silver.users AS u USING (customer) GROUP BY customer"
    ),
    "generators as relations": (
        "SELECT t.a, e.b FROM silver.orders AS o CROSS JOIN LATERAL EXPLODE(o.tags) AS t (a)\n"
        "CROSS JOIN EXPLODE(ARRAY(1, 2)) AS e (b)"
    ),
    "two lateral views": (
        "SELECT t.a, u.b FROM silver.orders AS o LATERAL VIEW EXPLODE(o.tags) t AS a\n"
        "LATERAL VIEW OUTER POSEXPLODE(o.tags) u AS at, b"
    ),
    "generators of two queries": (
        "SELECT EXPLODE(o.tags) AS a FROM silver.orders AS o\n"
        "UNION ALL SELECT EXPLODE(o.tags) AS a FROM silver.orders AS o"
    ),
    "order by position": "SELECT o.day, o.customer FROM silver.orders AS o ORDER BY 2, 1 + 8",
    "group by position in parentheses": (
        "SELECT o.day, COUNT(*) AS n FROM silver.orders AS o GROUP BY (1) ORDER BY (2)"
    ),
    "order by numbers that are no positions": (
        "SELECT o.day FROM silver.orders AS o ORDER BY -(3), 3L, 1 - 4"
    ),
    "exists of two columns": (
        "SELECT o.day FROM silver.orders AS o\n"
        "WHERE EXISTS (SELECT u.customer, u.age FROM silver.users AS u)"
    ),
    "order of a window by a number": (
        "SELECT SUM(o.amount) OVER (ORDER BY 9) AS s FROM silver.orders AS o"
    ),
    "one name in two scopes": (
        "WITH a AS (SELECT 1 AS x) SELECT t.x FROM (WITH a AS (SELECT 2 AS x) SELECT a.x FROM a)"
        " AS t"
    ),
    "query with columns that is called like a function": (
        "WITH first (x, y) AS (SELECT 1, 2), upper (x, y) AS (SELECT 1, 2)\n"
        "SELECT first.x, upper.y FROM first CROSS JOIN upper"
    ),
    "fields of a struct": (
        "SELECT s.place.*, place.at.* EXCEPT (y), t.at.x AS z\n"
        "FROM silver.shops AS s CROSS JOIN (SELECT s.place.* FROM silver.shops AS s) AS t"
    ),
    "positions in grouping sets": (
        "SELECT o.day, o.customer, COUNT(*) AS n FROM silver.orders AS o GROUP BY CUBE ((1), 2)"
    ),
    "output with the name of a column": (
        "SELECT o.amount + 1 AS amount, SUM(amount) OVER (ORDER BY day) AS s\n"
        "FROM silver.orders AS o WHERE amount > 1"
    ),
    "output in clauses after it": (
        "SELECT o.day AS d, COUNT(*) AS n FROM silver.orders AS o GROUP BY d HAVING n > 1\n"
        "QUALIFY RANK() OVER (ORDER BY o.day) > n ORDER BY n"
    ),
    "outputs in outputs beside groups": (
        "SELECT o.day AS d, YEAR(d) AS amount, COUNT(*) + YEAR(d) AS n, o.amount AS a\n"
        "FROM silver.orders AS o GROUP BY d, amount"
    ),
    "outputs in an aggregate's output of GROUP BY ALL": (
        "SELECT o.day AS d, COUNT(*) AS n, n + SUM(o.amount) AS m FROM silver.orders AS o\n"
        "GROUP BY ALL"
    ),
    "lateral alias": (
        "SELECT o.day, COUNT(*) AS n, n + 1 AS m FROM silver.orders AS o GROUP BY o.day"
    ),
}

_FROM = " AS x FROM silver.orders AS o"


def _selected(expression: str) -> str:
    return f"SELECT {expression}{_FROM}"


# One expression, the condition, the line and column that it names.
_REFUSED_EXPRESSIONS = {
    "number without a window": ("ROW_NUMBER()", "WINDOW", "1:8"),
    "number without an order": ("ROW_NUMBER() OVER (PARTITION BY o.customer)", "WINDOW", "1:8"),
    "lag without an order": ("LAG(o.amount) OVER (PARTITION BY o.day)", "WINDOW", "1:8"),
    "distinct in a window": (
        "COUNT(DISTINCT o.day) OVER (PARTITION BY o.customer)",
        "WINDOW",
        "1:8",
    ),
    "window of no definition": ("SUM(o.amount) OVER w", "WINDOW", "1:8"),
    "named window without the order": (
        "NTILE(2) OVER w AS n FROM silver.orders AS o WINDOW w AS (PARTITION BY o.day) --",
        "WINDOW",
        "1:8",
    ),
    "window of two definitions": (
        "RANK() OVER w AS r FROM silver.orders AS o WINDOW w AS (ORDER BY o.day), w AS () --",
        "WINDOW",
        "1:8",
    ),
    "output in a named window": (
        "-o.amount AS low, MAX(1) OVER w AS r FROM silver.orders AS o WINDOW w AS (ORDER BY low)--",
        "MISPLACED_ALIAS",
        "1:91",
    ),
    "scalar over a window": ("UPPER(o.customer) OVER (PARTITION BY o.day)", "WINDOW", "1:8"),
    "date plus a bigint": ("o.day + o.order_id", "INCOMPARABLE_TYPES", "1:8"),
    "date plus a decimal": ("o.day + o.amount", "INCOMPARABLE_TYPES", "1:8"),
    "date times a number": ("o.day * 2", "INCOMPARABLE_TYPES", "1:8"),
    "timestamp plus timestamp": ("o.created_at + o.created_at", "INCOMPARABLE_TYPES", "1:8"),
    "array compared with a text": ("o.tags = 'x'", "INCOMPARABLE_TYPES", "1:8"),
    "branches of a CASE": (
        "CASE WHEN o.amount > 1 THEN o.day ELSE 0 END",
        "INCOMPARABLE_TYPES",
        "1:",
    ),
    "simple CASE": ("CASE o.day WHEN 1 THEN 2 END", "INCOMPARABLE_TYPES", "1:"),
    "coalesce a date and a number": ("COALESCE(o.day, 0)", "INCOMPARABLE_TYPES", "1:8"),
    "branches of an IF": ("IF(o.amount > 1, o.created_at, 1)", "INCOMPARABLE_TYPES", "1:11"),
    "date in a list of numbers": ("o.day IN (1, 2)", "INCOMPARABLE_TYPES", "1:8"),
    "date between numbers": ("o.day BETWEEN 1 AND 2", "INCOMPARABLE_TYPES", "1:8"),
    "greatest of a number and a date": ("GREATEST(o.amount, o.day)", "INCOMPARABLE_TYPES", "1:8"),
    "chain of comparisons": ("o.day = o.day = o.day", "INCOMPARABLE_TYPES", "1:8"),
    "sum of dates": ("SUM(o.day)", "ARGUMENT_TYPE", "1:8"),
    "average of arrays": ("AVG(o.tags)", "ARGUMENT_TYPE", "1:8"),
    "sum of a condition": ("SUM(o.day = o.day)", "ARGUMENT_TYPE", "1:8"),
    "minus a date": ("-o.day", "ARGUMENT_TYPE", "1:9"),
    "cast of a date to a number": ("CAST(o.day AS INT)", "ARGUMENT_TYPE", "1:13"),
    "cast of a number to a date": ("CAST(o.order_id AS DATE)", "ARGUMENT_TYPE", "1:13"),
    "cast of an array": ("CAST(o.tags AS INT)", "ARGUMENT_TYPE", "1:13"),
    "cast to a foreign type": ("CAST(o.customer AS TEXT)", "CAST_TYPE", "1:27"),
    "cast to a length that is not said": ("CAST(o.customer AS VARCHAR)", "CAST_TYPE", "1:27"),
    "short cast to a foreign type": ("o.customer::DATETIME", "CAST_TYPE", "1:20"),
    "cast to a decimal of too many digits": (
        "CAST(o.amount AS DECIMAL(40, 2))",
        "CAST_TYPE",
        "1:25",
    ),
    "day that does not exist": ("DATE '2026-13-45'", "LITERAL", "1:8"),
    "day before the first": ("DATE '2026-02-00'", "LITERAL", "1:8"),
    "date that is a word": ("DATE 'soon'", "LITERAL", "1:8"),
    "time that does not exist": ("TIMESTAMP '2026-01-01 25:00:00'", "LITERAL", "1:8"),
    "time on a day that does not exist": ("TIMESTAMP '2026-02-30 10:00:00'", "LITERAL", "1:8"),
    "interval that is a word": ("o.day + INTERVAL 'x'", "LITERAL", "1:16"),
    "interval of a word": ("o.created_at + INTERVAL 'x' DAY", "LITERAL", "1:23"),
    "interval of a foreign unit": ("o.created_at + INTERVAL '2 fortnights'", "LITERAL", "1:23"),
    "interval of quarters": ("o.day + INTERVAL 1 QUARTER", "LITERAL", "1:16"),
    "interval of quarters in a text": ("o.day + INTERVAL '1 quarter'", "LITERAL", "1:16"),
    "interval of a short unit": ("o.created_at + INTERVAL 2 min", "LITERAL", "1:23"),
    "interval of a part of a day": ("o.created_at + INTERVAL 1.5 DAYS", "LITERAL", "1:23"),
    "interval of a part of a day in a text": ("o.day + INTERVAL '1.0 days'", "LITERAL", "1:16"),
    "interval without a space": ("o.created_at + INTERVAL '2days'", "LITERAL", "1:23"),
    "interval of months and days": ("o.day + INTERVAL '1 month 2 days'", "LITERAL", "1:16"),
    "unit in quotes": ("DATEADD('day', 1, o.created_at)", "LITERAL", "1:16"),
    "short unit": ("DATEADD(M, 1, o.created_at)", "LITERAL", "1:16"),
    "unit that is a column": ("DATEDIFF(order_id, o.day, o.day)", "LITERAL", "1:17"),
    "unit in the plural": ("TIMESTAMPDIFF(DAYS, o.day, o.day)", "LITERAL", "1:22"),
    "part of another engine": ("EXTRACT(EPOCH FROM o.created_at)", "LITERAL", "1:16"),
    "part in quotes": ("EXTRACT('year' FROM o.day)", "LITERAL", "1:16"),
    "short part": ("DATE_PART('Q', o.day)", "LITERAL", "1:18"),
    "interval of nanoseconds": ("o.created_at + INTERVAL '2' NANOSECONDS", "LITERAL", "1:23"),
    "generator within a call": ("UPPER(EXPLODE(o.tags))", "GENERATOR", "1:"),
    "generator within an operator": ("EXPLODE(o.tags) || 'x'", "GENERATOR", "1:"),
    "generator within an aggregate": ("COUNT(EXPLODE(o.tags))", "GENERATOR", "1:"),
    "range without an order": (
        "SUM(o.amount) OVER (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "WINDOW",
        "1:8",
    ),
    "range over a text": (
        "SUM(o.amount) OVER (ORDER BY o.customer RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "WINDOW",
        "1:8",
    ),
    "range over two columns": (
        "SUM(o.amount) OVER (ORDER BY o.day, o.order_id RANGE 1 PRECEDING)",
        "WINDOW",
        "1:8",
    ),
    "frame from behind": (
        "SUM(o.amount) OVER (ORDER BY o.day ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING)",
        "WINDOW",
        "1:8",
    ),
    "frame from the end": (
        "SUM(o.amount) OVER (ORDER BY o.day ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW)",
        "WINDOW",
        "1:8",
    ),
    "frame of a number": (
        "LAG(o.amount) OVER (ORDER BY o.day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "WINDOW",
        "1:8",
    ),
    "case of a number": ("CASE WHEN o.amount THEN 1 ELSE 0 END", "NOT_A_CONDITION", "1:18"),
    "part of a text without a place": ("SUBSTRING(o.customer)", "FUNCTION_ARGUMENTS", "1:8"),
    "rounded twice": ("ROUND(o.amount, 1, 2)", "FUNCTION_ARGUMENTS", "1:8"),
    "difference of one date": ("1 + DATEDIFF(o.day)", "FUNCTION_ARGUMENTS", "1:12"),
    "if without an else": ("IF(o.amount > 1, 2)", "FUNCTION_ARGUMENTS", "1:8"),
    "greatest of one": ("GREATEST(o.amount)", "FUNCTION_ARGUMENTS", "1:8"),
    "keys and values of a struct": ("NAMED_STRUCT('a', 1, 'b')", "FUNCTION_ARGUMENTS", "1:8"),
    "call within a call": ("UPPER(SUBSTRING(o.customer))", "FUNCTION_ARGUMENTS", "1:14"),
    "call in back-ticks": ("`conv`(o.customer, 2)", "FUNCTION_ARGUMENTS", "1:8"),
    "call of a window": (
        "ROW_NUMBER(1) OVER (ORDER BY o.day)",
        "FUNCTION_ARGUMENTS",
        "1:8",
    ),
    "not a number": ("NOT o.amount", "NOT_A_CONDITION", "1:12"),
    "filter by a number": ("COUNT(*) FILTER (WHERE o.amount)", "NOT_A_CONDITION", "1:31"),
    "two columns for a value": (
        "(SELECT u.customer, u.age FROM silver.users AS u)",
        "SUBQUERY_COLUMNS",
        "1:28",
    ),
}
_TAKEN_EXPRESSIONS = {
    "count over a window": "COUNT(*) OVER (PARTITION BY o.day)",
    "sum over a window without order": "SUM(o.amount) OVER ()",
    "first over a window": "FIRST_VALUE(o.day) OVER (PARTITION BY o.customer)",
    "filter in a window": "SUM(o.amount) FILTER (WHERE o.amount > 1) OVER (PARTITION BY o.day)",
    "lag that skips NULL": "LAG(o.amount) IGNORE NULLS OVER (ORDER BY o.order_id)",
    "function in a window": "SUM(o.amount) OVER (PARTITION BY UPPER(o.customer))",
    "text and number": "COALESCE(o.amount, 'none')",
    "text and time": "o.created_at > '2026-01-01' OR o.day IN ('2026-01-01')",
    "date and timestamp": "COALESCE(o.day, o.created_at)",
    "difference of dates": "o.day - o.day",
    "date minus days": "o.day - 7",
    "sum of times": "SUM(o.created_at)",
    "sum of a text": "SUM(o.customer)",
    "text as a condition of AND": "o.customer AND TRUE",
    "cast of a timestamp": "CAST(o.created_at AS BIGINT)",
    "cast of a literal": "CAST('2026-01-01' AS DATE)",
    "cast with digits": "CAST(o.amount AS NUMERIC(10, 2)) + o.amount::DECIMAL(4, 1)",
    "cast to a length": "CAST(o.customer AS VARCHAR(3))",
    "cast to an array": "CAST(o.tags AS ARRAY<STRING>)",
    "cast to an interval": "CAST('1' AS INTERVAL DAY)",
    "NULL in branches": "CASE WHEN o.amount > 1 THEN o.day ELSE NULL END",
    "arguments in words": "TRIM(BOTH 'x' FROM o.customer) || SUBSTRING(o.customer FROM 2 FOR 3)",
    "extract": "EXTRACT(YEAR FROM o.day) + POSITION('a' IN o.customer)",
    "functions of arrays": "TRANSFORM(o.tags, (x, i) -> CONCAT(x, i))",
    "distinct of two columns": "COUNT(DISTINCT o.day, o.customer)",
    "distinct from NULL": "o.amount <=> 1",
    "dates in short": "DATE '2026-1-5' > DATE '2026' OR DATE '2026-02-28T' > DATE '2024-02-29'",
    "times in short": "TIMESTAMP '2026-01-01' < TIMESTAMP '2026-01-01T10:00:00Z'",
    "time with a zone": "TIMESTAMP '2026-01-01 1:2:3 Europe/Berlin'",
    "intervals": "o.created_at + INTERVAL '1' DAY + INTERVAL '1 day -2 hours' - INTERVAL 2 WEEKS",
    "units and parts": (
        "IF(DATEDIFF(DAY, o.day, o.created_at) > DATEDIFF(o.day, o.day) + EXTRACT(QTR FROM o.day) "
        "+ DATE_PART('Dow', o.day), DATEADD(dayofyear, -1, o.created_at), "
        "TIMESTAMPADD(HOUR, 1, o.created_at))"
    ),
    "intervals with signs": "o.created_at + INTERVAL '- 1 day' + INTERVAL '.5 seconds'",
    "interval of parts": "o.created_at + INTERVAL '1:30' HOUR TO MINUTE + INTERVAL '1.5' SECOND",
    "generator": "EXPLODE(o.tags)",
    "two generators": "EXPLODE(o.tags) AS a, EXPLODE_OUTER(o.tags)",
    "generator of an expression": "EXPLODE(SPLIT(o.customer, ','))",
    "optional argument": "ROUND(o.amount) + ROUND(o.amount, 1)",
    "arguments with names": "MASK(o.customer, lowerChar => 'q')",
    "stars for arguments": "HASH(*) + XXHASH64(o.*)",
    "stars in a struct": "STRUCT(o.*)",
    "function whose first argument is a unit": "TIMESTAMPDIFF(HOUR, o.day, o.created_at)",
    "sum of a time and a number of units": "TIMESTAMPADD(HOUR, 2, o.created_at)",
    "types with commas": "SIZE(MAP('a', 1)::MAP<STRING, BIGINT>)",
    "unit for an argument": "DATE_ADD(DAY, 1, o.day) > DATE_ADD(o.day, 1)",
    "list behind LIKE": "o.customer LIKE ANY ('a', 'b')",
    "condition on elements": "EXISTS(o.tags, tag -> tag IN ('a', 'b'))",
    "text in the place of another": "OVERLAY(o.customer PLACING 'x' FROM 2 FOR 3)",
    "list in an argument": "IF(o.customer IN ('a', 'b'), 1, 2)",
    "seldom arguments": (
        "MAKE_TIMESTAMP(2026, 1, 1, 0, 0, 0, 'UTC') > o.created_at AND LOG(2, 8) > LOG(8)"
    ),
    "function with a name in back-ticks": "`upper`(o.customer)",
    "texts in a list": "LISTAGG(o.customer, ',')",
    "any number of arguments": "COALESCE(o.customer, 'a', 'b', 'c') || CONCAT('a', 'b', 'c', 'd')",
    "frame that is empty": (
        "SUM(o.amount) OVER (ORDER BY o.day ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW)"
    ),
    "the frame of a number": (
        "ROW_NUMBER() OVER (ORDER BY o.day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    ),
    "rows without an order": "SUM(o.amount) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "range over a date": "SUM(o.amount) OVER (ORDER BY o.day RANGE 7 PRECEDING)",
    "range of an interval": (
        "SUM(o.amount) OVER (ORDER BY o.created_at RANGE BETWEEN INTERVAL 1 HOUR PRECEDING "
        "AND CURRENT ROW)"
    ),
    "range over a text without distances": (
        "SUM(o.amount) OVER (ORDER BY o.customer RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    ),
    "negative number": "-o.amount * -1",
}
REFUSED |= {
    name: (_selected(expression), condition, place)
    for name, (expression, condition, place) in _REFUSED_EXPRESSIONS.items()
}
TAKEN |= {name: _selected(expression) for name, expression in _TAKEN_EXPRESSIONS.items()}
REFUSED |= clause_cases.REFUSED | grouping_cases.REFUSED | correlation_cases.REFUSED
TAKEN |= clause_cases.TAKEN | grouping_cases.TAKEN | correlation_cases.TAKEN
