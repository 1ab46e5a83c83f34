"""SELECTs with GROUPING, and QUALIFY over groups: what Spark refuses, and relatives."""

from __future__ import annotations

_ORDERS = "FROM silver.orders AS o"
_ROLLUP = "GROUP BY ROLLUP (o.day, o.customer)"
REFUSED = {
    "GROUPING of another column": (
        f"SELECT o.day, GROUPING(o.amount) AS g {_ORDERS} {_ROLLUP}",
        "MISPLACED_AGGREGATE",
        "1:15",
    ),
    "GROUPING_ID of a column in a grouped sum": (
        f"SELECT GROUPING_ID(o.order_id) AS g {_ORDERS} GROUP BY ROLLUP (o.order_id + 1)",
        "MISPLACED_AGGREGATE",
        "1:8",
    ),
    "GROUPING in HAVING of a column that is not returned": (
        f"SELECT COUNT(*) AS n {_ORDERS} {_ROLLUP}\nHAVING GROUPING(o.day) = 0",
        "MISPLACED_AGGREGATE",
        "2:8",
    ),
    "GROUPING in HAVING of a column with another name": (
        f"SELECT o.day AS d, GROUPING(o.day) AS g {_ORDERS} {_ROLLUP}\nHAVING GROUPING(o.day) = 0",
        "MISPLACED_AGGREGATE",
        "2:8",
    ),
    "GROUPING in HAVING of a column AS its own name": (
        f"SELECT o.day AS day {_ORDERS} {_ROLLUP}\nHAVING GROUPING(o.day) = 0",
        "MISPLACED_AGGREGATE",
        "2:8",
    ),
    "GROUPING in HAVING of an expression": (
        (
            f"SELECT UPPER(o.customer) AS c {_ORDERS} GROUP BY ROLLUP (UPPER(o.customer))\n"
            "HAVING GROUPING(UPPER(o.customer)) = 0"
        ),
        "MISPLACED_AGGREGATE",
        "2:8",
    ),
    "a column beside an aggregate in HAVING of sets": (
        f"SELECT o.day AS day, 1 AS n {_ORDERS} {_ROLLUP}\nHAVING COUNT(*) > 1 AND o.day IS NULL",
        "UNKNOWN_COLUMN",
        "2:25",
    ),
    "the order of GROUPING of a column with another name": (
        f"SELECT o.day AS d {_ORDERS} {_ROLLUP}\nORDER BY GROUPING(o.day)",
        "MISPLACED_AGGREGATE",
        "2:10",
    ),
    "the order of GROUPING_ID of an output": (
        (f"SELECT UPPER(o.customer) AS c {_ORDERS} GROUP BY ROLLUP (c)\nORDER BY GROUPING_ID(c)"),
        "MISPLACED_AGGREGATE",
        "2:10",
    ),
    "GROUPING in QUALIFY of a column with another name": (
        (
            f"SELECT o.day AS d, RANK() OVER (ORDER BY o.day) AS r {_ORDERS} {_ROLLUP}\n"
            "QUALIFY GROUPING(o.day) = 0"
        ),
        "MISPLACED_AGGREGATE",
        "2:9",
    ),
    "GROUPING_ID in another order": (
        (
            "SELECT o.day, o.customer,\nGROUPING_ID(o.customer, o.day) AS g "
            f"{_ORDERS} GROUP BY CUBE (1, 2)"
        ),
        "MISPLACED_AGGREGATE",
        "2:1",
    ),
    "GROUPING_ID of a part": (
        (
            f"SELECT o.day, o.customer {_ORDERS} GROUP BY o.day, ROLLUP (o.customer)\n"
            "HAVING GROUPING_ID(o.customer) = 0"
        ),
        "MISPLACED_AGGREGATE",
        "2:8",
    ),
    "an aggregate in QUALIFY": (
        (
            f"SELECT o.day, RANK() OVER (ORDER BY o.day) AS r {_ORDERS} GROUP BY o.day\n"
            "QUALIFY COUNT(*) > 1"
        ),
        "MISPLACED_AGGREGATE",
        "2:9",
    ),
    "an aggregate within a window of QUALIFY": (
        (
            f"SELECT o.day, COUNT(*) AS n {_ORDERS} GROUP BY o.day\n"
            "QUALIFY RANK() OVER (ORDER BY COUNT(*)) < 3"
        ),
        "MISPLACED_AGGREGATE",
        "2:31",
    ),
}
REFUSED |= {
    "a window in an aggregate": (
        f"SELECT SUM(CASE WHEN RANK() OVER (ORDER BY o.day) = 1 THEN 1 END) AS n {_ORDERS}",
        "MISPLACED_AGGREGATE",
        "1:22",
    ),
    "DISTINCT in the order of an aggregate": (
        f"SELECT DISTINCT o.day {_ORDERS} GROUP BY o.day\nORDER BY MAX(o.day)",
        "MISPLACED_AGGREGATE",
        "2:10",
    ),
    "DISTINCT in the order of its aggregate": (
        f"SELECT DISTINCT o.day, COUNT(*) AS n {_ORDERS} GROUP BY o.day\nORDER BY COUNT(*)",
        "MISPLACED_AGGREGATE",
        "2:10",
    ),
    "an ungrouped column in a lambda": (
        f"SELECT TRANSFORM(o.tags, tag -> CONCAT(tag, o.customer)) AS t {_ORDERS} GROUP BY o.tags",
        "UNGROUPED_COLUMN",
        "1:45",
    ),
}
REFUSED |= {
    "a column that no output has beside an aggregate's output in HAVING of sets": (
        f"SELECT o.day, SUM(o.amount) AS s {_ORDERS} {_ROLLUP}\nHAVING s > 2 AND customer > 'a'",
        "UNKNOWN_COLUMN",
        "2:18",
    ),
    "a call in QUALIFY that GROUP BY has": (
        (
            f"SELECT YEAR(day) AS y, RANK() OVER (ORDER BY YEAR(day)) AS r {_ORDERS} "
            "GROUP BY YEAR(day)\nQUALIFY y > 1 AND YEAR(day) > 2000"
        ),
        "UNGROUPED_COLUMN",
        "2:24",
    ),
    "a call in the window of QUALIFY that GROUP BY ALL has": (
        (
            f"SELECT UPPER(customer) AS c, COUNT(*) AS n {_ORDERS} GROUP BY ALL\n"
            "QUALIFY RANK() OVER (ORDER BY UPPER(customer)) = 1"
        ),
        "UNGROUPED_COLUMN",
        "2:37",
    ),
    "a part of a date in QUALIFY that GROUP BY has": (
        (
            f"SELECT COUNT(*) AS n {_ORDERS} GROUP BY EXTRACT(YEAR FROM day), IF(day > day, 1, 2)\n"
            "QUALIFY RANK() OVER (ORDER BY EXTRACT(YEAR FROM day), IF(day > day, 1, 2)) = 1"
        ),
        "UNGROUPED_COLUMN",
        "2:49",
    ),
    "a number in QUALIFY that GROUP BY casts": (
        (
            f"SELECT COUNT(*) AS n {_ORDERS} GROUP BY order_id + 1, o.amount\n"
            "QUALIFY RANK() OVER (ORDER BY o.amount, order_id + 1) = 1"
        ),
        "UNGROUPED_COLUMN",
        "2:41",
    ),
    "days in QUALIFY after grouped days": (
        (
            f"SELECT COUNT(*) AS n {_ORDERS} GROUP BY o.day + 1\n"
            "QUALIFY RANK() OVER (ORDER BY n) = 1 AND o.day + 1 > DATE '2026-01-01'"
        ),
        "UNGROUPED_COLUMN",
        "2:44",
    ),
    "a column beside an aggregate with GROUP BY ALL": (
        f"SELECT o.day, UPPER(customer) || COUNT(*) AS n {_ORDERS} GROUP BY ALL",
        "UNGROUPED_COLUMN",
        "1:21",
    ),
    "a column beside the only aggregate with GROUP BY ALL": (
        f"SELECT order_id + COUNT(*) AS n {_ORDERS} GROUP BY ALL",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "an ungrouped column in QUALIFY": (
        (
            f"SELECT o.day, COUNT(*) AS n {_ORDERS} GROUP BY o.day\n"
            "QUALIFY RANK() OVER (ORDER BY n) = 1 AND o.amount > 1"
        ),
        "UNGROUPED_COLUMN",
        "2:44",
    ),
    "the column of an aggregate's output in QUALIFY": (
        (
            f"SELECT o.day, MAX(o.amount) AS amount {_ORDERS} GROUP BY o.day\n"
            "QUALIFY RANK() OVER (ORDER BY amount) = 1"
        ),
        "UNGROUPED_COLUMN",
        "2:31",
    ),
    "a column in QUALIFY of one group": (
        f"SELECT RANK() OVER (ORDER BY MAX(o.day)) AS r {_ORDERS}\nQUALIFY r = 1 AND o.amount > 1",
        "UNGROUPED_COLUMN",
        "2:21",
    ),
}
REFUSED |= {
    "a call in HAVING of sets that they have": (
        (
            f"SELECT UPPER(customer) AS c {_ORDERS} GROUP BY ROLLUP (UPPER(customer))\n"
            "HAVING UPPER(customer) > 'a'"
        ),
        "UNKNOWN_COLUMN",
        "2:14",
    ),
}
TAKEN = {
    "calls and casts of outputs in HAVING of sets": (
        f"SELECT day AS d, UPPER(customer) AS c, order_id {_ORDERS} "
        "GROUP BY CUBE (day, customer, order_id) "
        "HAVING YEAR(d) > 2000 AND c > 'a' AND order_id BETWEEN 1 AND 2"
    ),
    "casts of outputs in HAVING of sets": (
        f"SELECT day, order_id AS n, age {_ORDERS} JOIN silver.users AS u USING (customer) "
        "GROUP BY CUBE (day, order_id, age) HAVING day > '2026-01-01' AND n > 1.5 AND age > n"
    ),
    "columns beside aggregates that GROUP BY ALL has": (
        "SELECT o.day, UPPER(customer) AS c, YEAR(day) + COUNT(*) AS n, "
        "UPPER(customer) || MAX(customer) AS m, "
        f"RANK() OVER (PARTITION BY day ORDER BY SUM(amount)) AS r {_ORDERS} GROUP BY ALL "
        "ORDER BY day, n"
    ),
    "operators of groups and functions of grouped columns in QUALIFY": (
        f"SELECT o.day, order_id + 1L AS n {_ORDERS} "
        "GROUP BY o.day, o.order_id + 1L, customer = 'a' "
        "QUALIFY RANK() OVER (PARTITION BY YEAR(day) ORDER BY order_id + 1L) = 1 "
        "AND CASE WHEN customer = 'a' THEN UPPER(CAST(n AS STRING)) > 'a' END"
    ),
    "a call in QUALIFY of grouped columns": (
        f"SELECT UPPER(customer) AS c {_ORDERS} GROUP BY UPPER(customer), customer "
        "QUALIFY RANK() OVER (ORDER BY c) = 1 AND UPPER(customer) > 'a'"
    ),
    "the output of a named window over a grouped call in QUALIFY": (
        f"SELECT UPPER(customer) AS c, RANK() OVER w AS r {_ORDERS} GROUP BY UPPER(customer) "
        "QUALIFY r = 1 WINDOW w AS (ORDER BY UPPER(customer))"
    ),
    "the names of outputs in QUALIFY over groups": (
        f"SELECT UPPER(customer) AS c, MAX(day) AS d {_ORDERS} GROUP BY UPPER(customer) "
        "QUALIFY RANK() OVER (PARTITION BY c ORDER BY d) = 1 AND YEAR(d) > 2000"
    ),
    "outputs with swapped names beside an aggregate in HAVING of sets": (
        f"SELECT day AS customer, customer AS day, SUM(amount) AS s {_ORDERS} {_ROLLUP} "
        "HAVING SUM(amount) > 2 AND day > 'a' AND customer > DATE '2026-01-01'"
    ),
    "GROUPING_ID of all columns in their order": (
        f"SELECT o.day AS d, o.customer, GROUPING_ID(o.customer, o.day) AS g {_ORDERS} "
        "GROUP BY GROUPING SETS ((o.customer), (d, o.customer)) ORDER BY GROUPING_ID(), g, d"
    ),
    "DISTINCT in the order of an aggregate's output": (
        f"SELECT DISTINCT o.day, COUNT(*) AS n {_ORDERS} GROUP BY o.day ORDER BY n, 1"
    ),
    "lambdas over groups": (
        f"SELECT TRANSFORM(o.tags, customer -> CONCAT(customer, MAX(o.customer), o.day)) AS t "
        f"{_ORDERS} GROUP BY o.tags, o.day"
    ),
    "a lambda within a lambda over groups": (
        f"SELECT TRANSFORM(o.tags, Tag -> FILTER(o.tags, other -> other > tag)) AS t {_ORDERS} "
        "GROUP BY o.tags"
    ),
    "a grouped lambda": (
        f"SELECT TRANSFORM(o.tags, tag -> CONCAT(tag, o.customer)) AS t {_ORDERS} "
        "GROUP BY TRANSFORM(o.tags, tag -> CONCAT(tag, o.customer))"
    ),
    "GROUPING in HAVING of outputs": (
        f"SELECT o.day, customer, COUNT(*) AS n {_ORDERS} {_ROLLUP} "
        "HAVING GROUPING(day) = 0 AND GROUPING_ID(o.day, o.customer) < 2 AND COUNT(*) > 1"
    ),
    "an output with GROUPING in HAVING": (
        f"SELECT o.day AS d, GROUPING(o.day) + GROUPING(customer) AS g, SUM(o.amount) AS s "
        f"{_ORDERS} {_ROLLUP} HAVING g = 1 AND s > 2 AND d IS NULL"
    ),
    "outputs beside an aggregate in HAVING of sets": (
        f"SELECT day, UPPER(customer) AS c, SUM(amount) AS s {_ORDERS} "
        "GROUP BY CUBE (day, UPPER(customer)) HAVING s > 2 AND day IS NOT NULL AND c > 'a'"
    ),
    "the order of GROUPING": (
        f"SELECT day, GROUPING(o.customer) AS g, COUNT(*) AS n {_ORDERS} {_ROLLUP} "
        "ORDER BY GROUPING(day), GROUPING(o.customer), g, n, day"
    ),
    "the order of GROUPING of a column that is not returned": (
        f"SELECT COUNT(*) AS n {_ORDERS} {_ROLLUP} ORDER BY GROUPING(day)"
    ),
    "GROUPING in QUALIFY of outputs": (
        f"SELECT day, RANK() OVER (PARTITION BY GROUPING(day) ORDER BY day) AS r {_ORDERS} "
        f"{_ROLLUP} QUALIFY GROUPING(day) = 0"
    ),
    "an output with GROUPING in QUALIFY": (
        f"SELECT day AS d, GROUPING(day) AS g, RANK() OVER (ORDER BY MAX(amount)) AS r {_ORDERS} "
        f"{_ROLLUP} QUALIFY g = 0 AND r < 3"
    ),
    "the first groups of an aggregate": (
        "SELECT o.day, SUM(o.amount) AS total, ROW_NUMBER() OVER (ORDER BY SUM(o.amount) DESC) "
        f"AS place {_ORDERS} GROUP BY o.day QUALIFY place <= 3 AND total > 1"
    ),
    "the first groups of an output": (
        f"SELECT o.day, SUM(o.amount) + 1 AS total {_ORDERS} GROUP BY o.day "
        "QUALIFY RANK() OVER (ORDER BY total DESC) <= 3"
    ),
    "days before grouped days": (
        f"SELECT DATE_SUB(o.day, 1) AS d, MAX(o.day - 1) AS m {_ORDERS} GROUP BY o.day - 1 "
        "HAVING DATE_SUB(o.day, 1) > DATE '2026-01-01' ORDER BY o.day - 1"
    ),
    "grouped days before days": (
        f"SELECT YEAR(day - 2) AS y {_ORDERS} GROUP BY ROLLUP (DATE_SUB(day, 2))"
    ),
}
