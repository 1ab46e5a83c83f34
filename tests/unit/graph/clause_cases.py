"""SELECTs whose clauses and values do not fit together for Spark, and relatives that it takes."""

from __future__ import annotations

_ORDERS = "FROM silver.orders AS o"
_FIELD = "UNKNOWN_COLUMN"
_SHOPS = "FROM silver.shops AS s"

# SQL, the condition, the line and column that it names.
REFUSED = {
    "another sum than the grouped one": (
        f"SELECT o.order_id + 2 AS n {_ORDERS} GROUP BY o.order_id + 1",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "the column of a grouped sum": (
        f"SELECT o.order_id AS n {_ORDERS} GROUP BY o.order_id + 1",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "the column of a grouped cast": (
        f"SELECT o.order_id AS n {_ORDERS} GROUP BY CAST(o.order_id AS INT)",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "another cast than the grouped one": (
        f"SELECT CAST(o.order_id AS STRING) AS n {_ORDERS} GROUP BY CAST(o.order_id AS INT)",
        "UNGROUPED_COLUMN",
        "1:13",
    ),
    "the struct of a grouped field": (
        f"SELECT s.place AS p {_SHOPS} GROUP BY s.place.City",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "another field than the grouped one": (
        f"SELECT s.place.City AS p {_SHOPS} GROUP BY s.place.at",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "a part of a grouped list": (
        f"SELECT o.day AS d {_ORDERS} GROUP BY (o.day, o.customer)",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "another unit than the grouped one": (
        (
            f"SELECT DATE_TRUNC('day', o.created_at) AS d, COUNT(*) AS n {_ORDERS} "
            "GROUP BY DATE_TRUNC('month', o.created_at)"
        ),
        "UNGROUPED_COLUMN",
        "1:26",
    ),
    "the order of a window over other groups": (
        f"SELECT RANK() OVER (ORDER BY o.order_id + 2) AS r {_ORDERS} GROUP BY o.order_id + 1",
        "UNGROUPED_COLUMN",
        "1:30",
    ),
    "a column within ROLLUP": (
        f"SELECT o.order_id AS n {_ORDERS} GROUP BY ROLLUP (o.order_id + 1, o.day)",
        "UNGROUPED_COLUMN",
        "1:8",
    ),
    "HAVING of the column of a grouped sum": (
        f"SELECT COUNT(*) AS n {_ORDERS} GROUP BY o.order_id + 1\nHAVING o.order_id > 2",
        "UNGROUPED_COLUMN",
        "2:8",
    ),
}
TAKEN = {
    "a grouped sum in a larger one": (
        f"SELECT 2 * (o.order_id + 1) AS n {_ORDERS} GROUP BY 1 + o.order_id"
    ),
    "the output of a grouped sum": (
        f"SELECT o.order_id + 1 AS n, n + 1 AS m, COUNT(*) AS c {_ORDERS} GROUP BY 1"
    ),
    "a cast that Spark adds": (
        "SELECT o.order_id + u.age AS n FROM silver.orders AS o JOIN silver.users AS u "
        "ON u.customer = o.customer GROUP BY o.order_id, CAST(u.age AS BIGINT)"
    ),
    "the year of a grouped date": (
        f"SELECT YEAR(o.created_at) AS y {_ORDERS} GROUP BY DATE(o.created_at)"
    ),
    "another name of a grouped function": (
        f"SELECT YEAR(o.day) AS y, NVL(o.customer, '-') AS c {_ORDERS} "
        "GROUP BY EXTRACT(YEAR FROM o.day), COALESCE(o.customer, '-')"
    ),
    "a grouped plus sign": f"SELECT o.order_id AS n {_ORDERS} GROUP BY +o.order_id",
    "a grouped number of other digits": (
        f"SELECT o.order_id * 01 AS n {_ORDERS} GROUP BY o.order_id * 1"
    ),
    "a field of a grouped struct": (
        f"SELECT s.place.at.x AS x, s.place['City'] AS c {_SHOPS} GROUP BY s.place.at, s.place.city"
    ),
    "a grouped list": (
        f"SELECT STRUCT(o.day, o.customer) AS d {_ORDERS} GROUP BY (o.day, o.customer)"
    ),
    "a window over groups of a sum": (
        f"SELECT RANK() OVER (PARTITION BY o.order_id + 1 ORDER BY MAX(o.day)) AS r {_ORDERS} "
        "GROUP BY o.order_id + 1 HAVING o.order_id + 1 > 2"
    ),
    "the order of a grouped sum": (
        f"SELECT MAX(o.day) AS d {_ORDERS} GROUP BY o.order_id + 1 ORDER BY o.order_id + 1"
    ),
    "sets of sums": (
        f"SELECT o.order_id + 1 AS n, SUM(o.amount) AS s {_ORDERS} "
        "GROUP BY GROUPING SETS ((o.order_id + 1), ROLLUP (o.order_id + 1, o.day), ())"
    ),
    "the comparisons of a CASE": (
        f"SELECT CASE o.customer WHEN 'a' THEN 1 END AS c, COUNT(*) AS n {_ORDERS} "
        "GROUP BY o.customer = 'a'"
    ),
    "a decimal of the usual size": (
        f"SELECT CAST(o.order_id AS DECIMAL(10, 0)) AS d {_ORDERS} "
        "GROUP BY CAST(o.order_id AS DECIMAL)"
    ),
    "a window of time in groups": (
        f"SELECT WINDOW(o.created_at, '1 hour').start AS t, COUNT(*) AS n {_ORDERS} "
        "GROUP BY WINDOW(o.created_at, '1 hour')"
    ),
}

_TAGS = "LATERAL VIEW EXPLODE(o.tags) t AS"

REFUSED |= {
    "a column of a LATERAL VIEW and of a table": (
        f"SELECT customer {_ORDERS} {_TAGS} customer",
        "AMBIGUOUS_COLUMN",
        "1:8",
    ),
    "a column of two LATERAL VIEWs": (
        (
            f"SELECT o.day, MAX(tag) AS tag {_ORDERS} {_TAGS} tag\n"
            "LATERAL VIEW EXPLODE(o.tags) u AS tag GROUP BY o.day"
        ),
        "AMBIGUOUS_COLUMN",
        "1:19",
    ),
    "an unknown column of a LATERAL VIEW": (
        f"SELECT t.tags {_ORDERS} {_TAGS} tag",
        "UNKNOWN_COLUMN",
        "1:10",
    ),
}
TAKEN |= {
    "a column of a LATERAL VIEW with its name": (
        f"SELECT t.customer {_ORDERS} {_TAGS} customer ORDER BY customer"
    ),
    "a LATERAL VIEW over another one": (
        f"SELECT day, tag, place {_ORDERS} {_TAGS} tag "
        "LATERAL VIEW POSEXPLODE(ARRAY(tag, customer)) u AS place, part WHERE part <> tag"
    ),
    "a LATERAL VIEW without names of columns": (
        f"SELECT col, t.col AS c {_ORDERS} LATERAL VIEW EXPLODE(o.tags) t"
    ),
    "values with names": "SELECT v.a, b FROM VALUES (1, 2) AS v(a, b)",
}
REFUSED |= {
    "the right side of a semi join in SELECT": (
        f"SELECT o.day, u.age {_ORDERS} SEMI JOIN silver.users AS u ON u.customer = o.customer",
        "UNKNOWN_RELATION",
        "1:15",
    ),
    "the right side of an anti join in WHERE": (
        (
            f"SELECT o.day {_ORDERS} LEFT ANTI JOIN silver.users AS u ON u.customer = o.customer\n"
            "WHERE age > 1"
        ),
        "UNKNOWN_COLUMN",
        "2:7",
    ),
    "the right side of a semi join in a later join": (
        (
            f"SELECT o.day {_ORDERS} LEFT SEMI JOIN silver.users AS u ON u.customer = o.customer\n"
            "JOIN silver.shops AS s ON s.shop = u.segment"
        ),
        "UNKNOWN_RELATION",
        "2:36",
    ),
}
TAKEN |= {
    "a subquery in the condition of a semi join": (
        f"SELECT day {_ORDERS} LEFT SEMI JOIN silver.users AS u ON u.customer = o.customer "
        "AND age > 1 AND EXISTS (SELECT 1 FROM silver.shops AS s WHERE s.shop = u.segment)"
    ),
}
REFUSED |= {
    "GROUPING without sets": (
        f"SELECT o.day, GROUPING(o.day) AS g {_ORDERS} GROUP BY o.day",
        "MISPLACED_AGGREGATE",
        "1:15",
    ),
    "GROUPING_ID in HAVING without sets": (
        f"SELECT o.day {_ORDERS} GROUP BY o.day\nHAVING GROUPING_ID() = 0",
        "MISPLACED_AGGREGATE",
        "2:8",
    ),
    "QUALIFY without a window": (
        f"SELECT o.day {_ORDERS}\nQUALIFY o.day > DATE '2026-01-01'",
        "WINDOW",
        "2:9",
    ),
    "QUALIFY with the window of a subquery": (
        (
            f"SELECT x.day FROM (SELECT o.day, ROW_NUMBER() OVER (ORDER BY o.day) AS r {_ORDERS})"
            " AS x\nQUALIFY x.r = 1"
        ),
        "WINDOW",
        "2:9",
    ),
    "QUALIFY by an output beside a window of its column": (
        f"SELECT LAG(o.day) OVER (ORDER BY o.order_id) AS day {_ORDERS}\nQUALIFY day IS NULL",
        "MISPLACED_ALIAS",
        "2:9",
    ),
    "DISTINCT in the order of another column": (
        f"SELECT DISTINCT o.day {_ORDERS}\nORDER BY o.amount",
        "UNKNOWN_COLUMN",
        "2:10",
    ),
    "DISTINCT in the order of a renamed column": (
        f"SELECT DISTINCT o.day AS d {_ORDERS}\nORDER BY day",
        "UNKNOWN_COLUMN",
        "2:10",
    ),
    "DISTINCT in the order of an alias's relation": (
        f"SELECT DISTINCT o.day AS day {_ORDERS}\nORDER BY o.day",
        "UNKNOWN_COLUMN",
        "2:10",
    ),
}
TAKEN |= {
    "GROUPING in a window and in HAVING": (
        f"SELECT o.day, RANK() OVER (PARTITION BY GROUPING(o.day) ORDER BY o.day) AS r {_ORDERS} "
        "GROUP BY o.customer, GROUPING SETS ((o.day), ())"
    ),
    "GROUPING of ROLLUP in HAVING": (
        f"SELECT o.day {_ORDERS} GROUP BY ROLLUP (o.day) HAVING GROUPING(day) = 0"
    ),
    "QUALIFY by an output": (
        f"SELECT o.day, ROW_NUMBER() OVER w AS r {_ORDERS} QUALIFY r = 1 "
        "WINDOW w AS (PARTITION BY o.day ORDER BY o.order_id)"
    ),
    "a window that is another one, and one that nothing uses": (
        f"SELECT o.day, RANK() OVER v AS r {_ORDERS} WINDOW v AS w, w AS (ORDER BY o.day), "
        "x AS (ORDER BY o.nothing)"
    ),
    "QUALIFY by an output with the name of a column": (
        f"SELECT -o.amount AS amount, ROW_NUMBER() OVER (ORDER BY o.order_id) AS r {_ORDERS} "
        "QUALIFY r < 3 AND amount < 1"
    ),
    "QUALIFY by a grouped call": (
        f"SELECT YEAR(o.day) AS y, SUM(o.amount) AS total {_ORDERS} GROUP BY 1 "
        "QUALIFY RANK() OVER (ORDER BY y, total) < 3 AND y > 2020"
    ),
    "DISTINCT in the order of its columns": (
        f"SELECT DISTINCT o.day, UPPER(o.customer) AS c {_ORDERS} ORDER BY o.day + 1, C, 1"
    ),
    "DISTINCT in the order of a subquery": (
        f"SELECT DISTINCT o.day {_ORDERS} ORDER BY (SELECT MAX(u.age) FROM silver.users AS u)"
    ),
    "DISTINCT in the order of a field": (
        f"SELECT DISTINCT s.place, s.place.at.x {_SHOPS} ORDER BY place.City, x"
    ),
}
_LABELS = "FROM silver.labels AS l"
_UNORDERED = {
    "MAX of a map": ("SELECT MAX(l.names) AS m {}", "1:12"),
    "DISTINCT maps": ("SELECT DISTINCT l.shop, l.names {}", "1:25"),
    "the union of maps": ("SELECT l.names {0} UNION SELECT l.names {0}", "1:8"),
    "maps except maps": ("SELECT l.names {0} EXCEPT ALL SELECT l.names {0}", "1:8"),
    "the order of maps": ("SELECT l.shop {}\nORDER BY l.names", "2:10"),
    "a window in the order of maps": ("SELECT RANK() OVER (ORDER BY l.names) AS r {}", "1:30"),
    "the part of a window by maps": (
        "SELECT RANK() OVER (PARTITION BY l.names ORDER BY l.shop) AS r {}",
        "1:34",
    ),
    "maps that are compared": ("SELECT l.shop {}\nWHERE l.names = l.names", "2:7"),
    "a map in a list": ("SELECT l.shop {}\nWHERE l.names IN (l.names)", "2:7"),
    "a map within a struct": ("SELECT MIN(l.more) AS m {}", "1:12"),
    "a map by which others are chosen": ("SELECT MAX_BY(l.shop, l.names) AS m {}", "1:23"),
    "the greatest map": ("SELECT GREATEST(l.names, l.names) AS m {}", "1:17"),
    "a map of a subquery": (
        "SELECT MAX(x.n) AS m FROM (SELECT l.names AS n {}) AS x",
        "1:12",
    ),
    "the choice by a map": ("SELECT CASE l.names WHEN l.names THEN 1 END AS c {}", "1:13"),
    "MAX of a variant": ("SELECT MAX(l.raw) AS m {}", "1:12"),
    "DISTINCT variants": ("SELECT DISTINCT l.raw {}", "1:17"),
}
REFUSED |= {
    name: (sql.format(_LABELS), "ARGUMENT_TYPE", place) for name, (sql, place) in _UNORDERED.items()
}
REFUSED |= {
    "a field that a struct lacks": (
        f"SELECT s.place.town AS t {_SHOPS}",
        "UNKNOWN_COLUMN",
        "1:16",
    ),
    "a field that an inner struct lacks": (
        f"SELECT s.shop {_SHOPS}\nWHERE place.at.z > 1",
        "UNKNOWN_COLUMN",
        "2:16",
    ),
    "a field of a subquery's struct": (
        f"SELECT x.p.town AS t FROM (SELECT s.place AS p {_SHOPS}) AS x",
        "UNKNOWN_COLUMN",
        "1:12",
    ),
    "a layer before an alias": (
        f"SELECT o.day,\nsilver.o.amount AS a {_ORDERS}",
        "UNKNOWN_RELATION",
        "2:1",
    ),
    "a layer before the name of a query": (
        f"WITH orders AS (SELECT o.day {_ORDERS}) SELECT silver.orders.day FROM orders",
        "UNKNOWN_RELATION",
        "1:62",
    ),
    "the catalog before an alias": (
        f"SELECT o.day,\nspark_catalog.silver.o.amount AS a {_ORDERS}",
        "UNKNOWN_RELATION",
        "2:1",
    ),
    "a field of a text": (f"SELECT shop.city AS c {_SHOPS}", "UNKNOWN_RELATION", "1:8"),
    "a field of a number": (f"SELECT s.place.at.x.y AS c {_SHOPS}", "UNKNOWN_RELATION", "1:8"),
}
REFUSED |= {
    "a field of a table with its layer": (
        "SELECT silver.shops.place.at.z AS z FROM silver.shops",
        "UNKNOWN_COLUMN",
        "1:30",
    ),
}
REFUSED |= {
    "the name of a field in brackets": (
        f"SELECT x.City FROM (SELECT s.place['City'] {_SHOPS}) AS x",
        "UNKNOWN_COLUMN",
        "1:10",
    ),
    "the name of an element's field": (
        f"WITH x AS (SELECT s.old[0].City {_SHOPS}) SELECT City FROM x",
        "UNKNOWN_COLUMN",
        "1:",
    ),
    "the name of a field that is cast": (
        f"SELECT x.City FROM (SELECT CAST(place.City AS STRING) {_SHOPS}) AS x",
        "UNKNOWN_COLUMN",
        "1:10",
    ),
}
TAKEN |= {
    "outputs that have names": (
        f"SELECT x.shop, x.at, x.City FROM (SELECT CAST(s.shop AS STRING), (place).at, "
        f"s.place.City {_SHOPS}) AS x"
    ),
    "outputs without names": (
        f"SELECT x.n FROM (SELECT s.place['City'], COUNT(*) AS n {_SHOPS} "
        f"GROUP BY s.place['City']) AS x WHERE x.n IN (SELECT s.old[0].at.x {_SHOPS})"
    ),
    "names for outputs that have none": (
        f"WITH x(a, b) AS (SELECT s.place['City'], CAST('1' AS INT) {_SHOPS}) SELECT a, b FROM x"
    ),
}
REFUSED |= {
    "the alias of a joined column that is a column too": (
        (
            f"SELECT o.day {_ORDERS} JOIN silver.users AS amount USING (customer)\n"
            "WHERE amount.customer > 'a'"
        ),
        "AMBIGUOUS_COLUMN",
        "2:7",
    ),
    "the alias of the left side of a right join that is a column too": (
        "SELECT age.customer FROM silver.orders AS age RIGHT JOIN silver.users USING (customer)",
        "AMBIGUOUS_COLUMN",
        "1:8",
    ),
}
TAKEN |= {
    "an alias that is a column too": (
        f"SELECT amount.age, customer {_ORDERS} JOIN silver.users AS amount USING (customer)"
    ),
    "the alias of the kept column that is a column too": (
        f"SELECT amount.customer {_ORDERS} RIGHT JOIN silver.users AS amount USING (customer)"
    ),
    "the left alias of a left join that is a column too": (
        "SELECT age.customer FROM silver.orders AS age LEFT JOIN silver.users USING (customer)"
    ),
    "an alias that is a column too in a join with a condition": (
        f"SELECT amount.customer {_ORDERS} JOIN silver.users AS amount "
        "ON amount.customer = o.customer"
    ),
}
_BRACKETS = {
    "a field in brackets that a struct lacks": (f"SELECT s.place['town'] AS t {_SHOPS}", _FIELD),
    "a field in brackets that an inner struct lacks": (
        f"SELECT s.place['at']['z'] AS t {_SHOPS}",
        _FIELD,
    ),
    "a field in brackets that an array's structs lack": (
        f"SELECT ARRAY_SORT(s.old) AS o, s.old['town'] AS t {_SHOPS}",
        _FIELD,
    ),
    "a field in brackets of an element": (f"SELECT s.old[0]['town'] AS t {_SHOPS}", _FIELD),
    "a struct by a number": (f"SELECT s.place[0] AS c {_SHOPS}", "ARGUMENT_TYPE"),
    "a struct by a column": (f"SELECT s.place[s.shop] AS c {_SHOPS}", "ARGUMENT_TYPE"),
    "an element of a number": (f"SELECT o.order_id[0] AS c {_ORDERS}", "ARGUMENT_TYPE"),
    "an element of a text": (f"SELECT customer[0] AS c {_ORDERS}", "ARGUMENT_TYPE"),
    "a field in brackets of a date": (f"SELECT o.day['x'] AS c {_ORDERS}", "ARGUMENT_TYPE"),
    "an array by a text": (f"SELECT o.tags['1'] AS c {_ORDERS}", "ARGUMENT_TYPE"),
    "an array by a decimal": (f"SELECT o.tags[o.amount] AS c {_ORDERS}", "ARGUMENT_TYPE"),
    "an array of structs by a text column": (
        f"SELECT s.old[s.shop] AS c {_SHOPS}",
        "ARGUMENT_TYPE",
    ),
}
REFUSED |= {name: (sql, condition, "1:") for name, (sql, condition) in _BRACKETS.items()}
TAKEN |= {
    "elements and fields in brackets": (
        f"SELECT s.place['CITY'] AS a, s.place['at'].x AS b, s.old['City'][0] AS c, "
        f"s.old[0].City AS d, s.old.at['x'][CAST(1 AS TINYINT)] AS e {_SHOPS} "
        "WHERE s.old[NULL] IS NULL AND s.old[LENGTH(s.shop)] IS NULL"
    ),
    "values of a map by other types": f"SELECT l.names[1] AS a, l.more.of['x'] AS b {_LABELS}",
}
TAKEN |= {
    "maps that are not compared": (
        f"SELECT l.names, COUNT(DISTINCT l.names) AS n, MAX_BY(l.names, l.shop) AS m, "
        f"ANY_VALUE(l.raw) AS r {_LABELS} GROUP BY l.names"
    ),
    "maps of two queries": f"SELECT l.names {_LABELS} UNION ALL SELECT l.names {_LABELS}",
    "values of a map": f"SELECT MAX(l.names['en']) AS e, MIN(l.names.de) AS d {_LABELS}",
    "structs and arrays in an order": (
        f"SELECT DISTINCT s.place, o.tags {_SHOPS} JOIN silver.orders AS o "
        "ON o.customer = s.shop AND s.place >= s.place ORDER BY s.place, o.tags"
    ),
    "fields in any case": f"SELECT s.place.CITY AS c, s.place.At.X AS x {_SHOPS}",
    "fields of an argument": (
        f"SELECT FILTER(ARRAY(s.place), one -> one.City > 'a') AS p {_SHOPS}"
    ),
}
REFUSED |= {
    # Of l.shop:a, Spark says that it has no message for its error.
    "the path of a text": (
        f"SELECT VARIANT_GET(l.shop, '$.a') AS a {_LABELS}",
        "ARGUMENT_TYPE",
        "1:8",
    ),
    "the path of a struct": (
        f"SELECT VARIANT_GET(l.more, '$.of') AS a {_LABELS}",
        "ARGUMENT_TYPE",
        "1:8",
    ),
}
TAKEN |= {
    "paths of variants": (
        f"SELECT l.raw:a.B[0]::INT + 1 AS n, PARSE_JSON(l.shop):['c']::STRING AS s {_LABELS} "
        "WHERE raw:a:b::BOOLEAN AND CAST(TRY_PARSE_JSON(shop):a AS DATE) > DATE '2026-01-01'"
    ),
}
