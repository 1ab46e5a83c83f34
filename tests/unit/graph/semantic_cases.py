"""SELECTs that Spark refuses although every name resolves, and relatives that it takes."""

from __future__ import annotations

from spark_jobs.names import Layer, TableName

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
}
SCHEMAS = {TableName(Layer.SILVER, name): columns for name, columns in COLUMNS.items()}

# SQL, the condition, the line and column that it names.
REFUSED = {
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
    "date compared with a number": (
        "SELECT o.day FROM silver.orders AS o\nWHERE o.day = 20260131",
        "INCOMPARABLE_TYPES",
        "2:7",
    ),
}
# Spark takes them, so they must pass.
TAKEN = {
    "expression of grouped columns": (
        "SELECT UPPER(o.customer) AS c, COUNT(*) AS n FROM silver.orders AS o GROUP BY o.customer"
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
    "lateral alias": (
        "SELECT o.day, COUNT(*) AS n, n + 1 AS m FROM silver.orders AS o GROUP BY o.day"
    ),
}
