"""What is on the list for DuckDB, over values at the edges; each with Spark's value and type."""

from __future__ import annotations

from itertools import product

ROWS = """
SELECT * FROM VALUES
  (1, 1Y, 10S, 100L, 1.50BD, 2.25BD, 'a', 'A b',
   DATE'2024-02-29', TIMESTAMP'2024-02-29 23:59:59.999999', TRUE, 0.5D),
  (2, -1Y, -3S, 7L, -0.01BD, 0.50BD, 'ä', 'x%y',
   DATE'2023-12-31', TIMESTAMP'1970-01-01 00:00:00', FALSE, -0.0D),
  (3, 60Y, 16000S, -9000000000L, 9999.99BD, -3.75BD, '', 'a',
   DATE'0001-01-01', TIMESTAMP'1600-06-15 12:30:00', NULL, 1e300D),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (5, 0Y, 1S, 3L, 0.05BD, 0.25BD, 'Z', '日本語',
   DATE'9999-12-31', TIMESTAMP'2200-01-01 00:00:00.000001', TRUE, 0.1D),
  (6, 5Y, 2S, 2L, 2.50BD, 1.00BD, 'a', '_',
   DATE'2024-03-31', TIMESTAMP'2024-03-31 01:00:00', TRUE, 3.0D)
AS v(i, t, s, l, d, e, c, w, day, at, b, f)
"""
TYPED = (
    "SELECT i, t, s, l, CAST(d AS DECIMAL(15,2)) AS d, CAST(e AS DECIMAL(12,4)) AS e,"
    " CAST(d AS DECIMAL(38,2)) AS wide, c, w, day, at, b, f FROM ({})"
)
NUMBERS = ("i", "t", "s", "l", "d", "e", "3", "1.25", "0.001")
EXPRESSIONS = (
    *(f"{a} {op} {b}" for (a, b), op in product(product(NUMBERS[:6], NUMBERS), ("+", "-"))),
    *(
        f"{a} * {b}"
        for a, b in product(("i", "t", "d", "e", "wide"), ("i", "d", "e", "3", "0.001"))
    ),
    *(f"{a} / {b}" for a, b in product(("i", "l", "d", "e", "wide"), ("i", "3", "7.0", "0.0001"))),
    *(f"{a} {op} {b}" for a, op, b in product(NUMBERS[:6], ("<", "<=>", "="), NUMBERS)),
    *(
        f"CAST({a} AS {kind})"
        for a, kind in product(("i", "d", "e", "l"), ("DECIMAL(20,1)", "DECIMAL(38,6)", "BIGINT"))
    ),
    "CAST(d AS INT)",
    "CAST(e * -1 AS INT)",
    "CAST(i AS STRING)",
    "CAST(day AS STRING)",
    "CAST(b AS STRING)",
    "CAST(l AS DOUBLE)",
    "CAST(at AS DATE)",
    "CAST(day AS TIMESTAMP)",
    "-d",
    "-i",
    "ABS(d)",
    "ABS(l)",
    "1 - e",
    "d * (1 - e) * (1 + e)",
    "d / 7",
    # Written with its sign, a number is a literal: of one digit here.
    "e / -3",
    "e / -(3)",
    "e / CAST(3 AS INT)",
    # A literal as well, unlike its cast.
    "e / 3L",
    "e / -3S",
    "e / -(3L)",
    "e * 3Y + 1L",
    "-(2147483648)",
    "-128Y",
    "(d + e) / (i * 1.0)",
    "100.00 * d / 3.00",
    "f + 1",
    "f * f",
    "f / 3",
    "i * f",
    "i / (f + 7)",
    "f < 3",
    "c = 'a'",
    "c < w",
    "c IN ('a', 'Z')",
    "NOT c IN ('a')",
    "c NOT IN ('a', 'b')",
    "w LIKE 'a%'",
    "w NOT LIKE '%b'",
    "w LIKE '_'",
    "c || w",
    "c || (w || c)",
    "(c || w) || 'x'",
    "CONCAT(c, '-', w)",
    "SUBSTRING(w, 1, 2)",
    "SUBSTR(w, 2, 1)",
    "i IS NULL",
    "t IS NOT NULL",
    "b IS TRUE",
    "b IS NOT TRUE",
    "b IS FALSE",
    "NOT b",
    "b AND i > 2",
    "b OR t > 0",
    "i BETWEEN 2 AND 4",
    "d BETWEEN 0.06 - 0.01 AND 2.5",
    "NOT d BETWEEN 0 AND 1",
    "day BETWEEN '2023-01-01' AND DATE'2024-12-31'",
    "CASE WHEN b THEN d ELSE 0 END",
    "CASE WHEN i > 2 THEN d WHEN i > 1 THEN e END",
    "IF(b, i, l)",
    "CASE i WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE c END",
    "CASE WHEN b THEN 1 ELSE 0.5 END",
    "IF(b, 1, NULL)",
    "CASE WHEN b THEN wide ELSE e END",
    "COALESCE(t, i, l)",
    "COALESCE(i)",
    "COALESCE(i, RAISE_ERROR('never'))",
    "COALESCE(d, 0)",
    "COALESCE(d, wide, e)",
    "NVL(c, 'none')",
    "NULLIF(i, 1)",
    "NULLIF(d, 1.5)",
    "GREATEST(i, l, t)",
    "LEAST(d, e)",
    "GREATEST(c, w)",
    "YEAR(day)",
    "MONTH(at)",
    "DAY(day)",
    "QUARTER(day)",
    "HOUR(at)",
    "MINUTE(at)",
    "EXTRACT(YEAR FROM at)",
    "TO_DATE(at)",
    "DATE(at)",
    *(
        f"DATE_TRUNC('{unit}', at)"
        for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
    ),
    "DATEDIFF(day, DATE'2020-01-01')",
    "day < '2024-01-01'",
    "at >= '2000-01-01 00:00:00'",
    "day = DATE'2024-02-29'",
    "at > TIMESTAMP'2024-01-01 00:00:00'",
    "wide > e",
    "wide * 2",
    "wide + e",
    "wide = d",
    "wide * 0.001",
    # A number beside a decimal has the digits that are written, and no more.
    "CAST(0.000000000000000000000000000001 AS DECIMAL(38,30)) > 0",
    "COALESCE(CAST(i AS DECIMAL(38,0)), wide)",
    "CAST(0.01 AS DECIMAL(38,38)) * t",
    # It is compared as 1 of one digit, which leaves the other its thirtieth place.
    "NULLIF(CAST(1.000000000000000000000000000001 AS DECIMAL(38,30)), 1)",
    # As any INT, since Spark gives the value a name.
    "NULLIF(1, CAST(1.000000000000000000000000000001 AS DECIMAL(38,30)))",
    "1 BETWEEN CAST(1.000000000000000000000000000001 AS DECIMAL(38,30)) AND 2",
    "YEAR(at - INTERVAL '3000' YEAR)",
    "at IN ('1970-01-01', '2024-03-31 01:00:00')",
    "w LIKE ''",
    # It is read as the type of what it is compared with.
    "'2024-01-01' BETWEEN day AND DATE'2024-12-31'",
    "-f",
    "NULLIF(f, 3)",
    "b = TRUE",
    "d * 12",
)
MOVED = tuple(
    f"{a} {sign} INTERVAL '{count}' {unit}"
    for (a, units), sign, count in product(
        (
            ("day", ("DAY", "MONTH", "YEAR")),
            ("at", ("DAY", "MONTH", "YEAR", "HOUR", "MINUTE", "SECOND")),
        ),
        ("+", "-"),
        ("1", "13"),
    )
    for unit in units
)
AGGREGATES = (
    "COUNT(*)",
    "COUNT(t)",
    "COUNT(f)",
    "COUNT(DISTINCT c)",
    "SUM(i)",
    "SUM(l)",
    "SUM(d)",
    "SUM(wide)",
    "SUM(e * d)",
    "SUM(DISTINCT d)",
    "AVG(d)",
    "AVG(e)",
    "AVG(i)",
    "AVG(t)",
    "AVG(wide)",
    # With all digits behind the point, unlike a quotient.
    "AVG(CAST(e AS DECIMAL(36,4)))",
    "AVG(CAST(e AS DECIMAL(38,5)))",
    "MIN(c)",
    "MAX(w)",
    "MIN(day)",
    "MAX(at)",
    "MIN(d)",
    "MAX(l)",
    "BOOL_AND(b)",
    "BOOL_OR(b)",
    "COUNT_IF(i > 2)",
    "SUM(i) FILTER (WHERE b)",
    "COUNT(*) FILTER (WHERE i > 2)",
    "AVG(d) FILTER (WHERE i > 100)",
    "0.2 * AVG(d)",
    "SUM(d) / 7.0",
    "100.00 * SUM(CASE WHEN b THEN d ELSE 0 END) / SUM(wide)",
    "SUM(d) > 0.5 * AVG(e)",
)
OVER = tuple(
    f"{call} OVER ({part}{order})"
    for (call, order), part in product(
        (
            ("SUM(d)", ""),
            ("COUNT(*)", " ORDER BY i"),
            ("MAX(c)", " ORDER BY i DESC"),
            ("RANK()", " ORDER BY c"),
            ("DENSE_RANK()", " ORDER BY c DESC"),
            ("ROW_NUMBER()", " ORDER BY i"),
            ("LAG(d)", " ORDER BY i"),
            ("LEAD(c, 2)", " ORDER BY i DESC"),
            ("SUM(i)", " ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
            # Tied rows have one frame.
            ("SUM(i)", " ORDER BY c RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
            ("MIN(d)", " ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
        ),
        ("", "PARTITION BY b"),
    )
)
# Each list with what comes behind FROM.
QUERIES = (
    (EXPRESSIONS, ""),
    (MOVED, " WHERE i IN (1, 2, 4, 6)"),
    *(
        (AGGREGATES, rest)
        for rest in ("", " GROUP BY b", " WHERE FALSE", " GROUP BY c HAVING COUNT(*) > 1")
    ),
    (OVER, ""),
    *(
        (("i",), f" ORDER BY {order} LIMIT 3")
        for order in ("d", "d DESC", "c, i DESC", "at DESC NULLS FIRST, i", "c NULLS LAST, i")
    ),
    # Behind these two, a name is one of the left side again.
    *(
        (("i", "c"), f" LEFT {kind} JOIN edges AS o ON edges.i = o.i + 4")
        for kind in ("SEMI", "ANTI")
    ),
    (("edges.i", "o.c"), " LEFT JOIN edges AS o ON edges.i = o.i + 4"),
    (("i",), " LEFT SEMI JOIN (SELECT * FROM edges WHERE i > 4) AS o ON edges.i = o.i"),
    (("i", "u.one"), " CROSS JOIN (SELECT 1 AS one) AS u"),
    # Of 36 digits before the point and six behind it, a union keeps those before.
    (
        ("i", "d", "c", "wide"),
        " UNION ALL SELECT l, i, w, CAST(e AS DECIMAL(38,6)) FROM edges",
    ),
)
# Rows that tie would get different values.
TIED = (
    "SELECT i FROM edges ORDER BY c NULLS LAST LIMIT 3",
    "SELECT ROW_NUMBER() OVER (ORDER BY c) AS n FROM edges",
    "SELECT LAG(i) OVER (ORDER BY c) AS n FROM edges",
    "SELECT SUM(i) OVER (ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM edges",
)
# Spark raises an error of some value.
FAILING = (
    "i + 2147483647",
    "l * l * l",
    "CAST(wide AS DECIMAL(4,2))",
    "1 / t",
    "d / t",
    "CAST(l AS INT)",
    "-(CAST(-128 AS TINYINT))",
    "IF(i > 2, RAISE_ERROR('no'), i)",
    "COALESCE(t, RAISE_ERROR(c))",
)
REFUSED = (
    "SELECT UPPER(c) AS v FROM edges",
    "SELECT SUM(f) AS v FROM edges",
    "SELECT f, COUNT(*) AS n FROM edges GROUP BY f",
    "SELECT MIN(f) AS v FROM edges",
    "SELECT AVG(f) AS v FROM edges",
    "SELECT w LIKE 'a\\\\_%' AS v FROM edges",
    "SELECT c = 1 AS v FROM edges",
    "SELECT CAST(c AS INT) AS v FROM edges",
    "SELECT CAST(d AS DOUBLE) AS v FROM edges",
    "SELECT TRY_CAST(i AS STRING) AS v FROM edges",
    "SELECT i FROM edges LIMIT 1",
    "SELECT i FROM edges ORDER BY i LIMIT 1 OFFSET 1",
    "SELECT i FROM edges TABLESAMPLE (1 ROWS)",
    "SELECT DISTINCT f FROM edges",
    "SELECT i FROM other",
    "SELECT i FROM edges GROUP BY ALL",
    "SELECT i, COUNT(*) AS n FROM edges GROUP BY ROLLUP (i)",
    "SELECT i FROM edges UNION SELECT i FROM edges",
    "SELECT i FROM edges UNION ALL SELECT i, c FROM edges",
    "SELECT i FROM edges UNION ALL SELECT c FROM edges",
    "SELECT c FROM edges UNION ALL SELECT i FROM edges",
    "SELECT RAND() AS v FROM edges",
    "SELECT NULL AS v FROM edges",
    "SELECT SUM(*) AS v FROM edges",
    "SELECT EVERY(b) AS v FROM edges",
    "SELECT i FROM edges JOIN edges AS o USING (i)",
    "SELECT edges.i FROM edges LEFT SEMI JOIN edges AS o",
    "SELECT i FROM edges JOIN edges AS o ON edges.i = o.i",
    "SELECT edges.i FROM edges RIGHT JOIN edges AS o ON edges.i = o.i",
    "SELECT 1 AS one FROM edges CROSS JOIN edges",
    "SELECT i FROM silver.edges",
    "SELECT missing FROM edges",
    "SELECT i + INTERVAL '1' DAY AS v FROM edges",
    "SELECT c + INTERVAL '1' DAY AS v FROM edges",
    "SELECT at + INTERVAL '1.5' SECOND AS v FROM edges",
    "SELECT at + INTERVAL '1 day 2 hours' AS v FROM edges",
    "SELECT i FROM edges ORDER BY i LIMIT 1 + 1",
    "SELECT i FROM edges ORDER BY i LIMIT 1.5",
    "SELECT DISTINCT i FROM edges ORDER BY i LIMIT 1",
    "SELECT GREATEST(f, f) AS v FROM edges",
    "SELECT ABS(c) AS v FROM edges",
    "SELECT c || i + 1 AS v FROM edges",
    "SELECT TO_DATE(c) AS v FROM edges",
    # Its text ends so in DuckDB only.
    "SELECT at LIKE '%+00' AS v FROM edges",
    "SELECT SUBSTRING(w, 1.5, 2) AS v FROM edges",
    "SELECT SUBSTRING(day, 1, 4) AS v FROM edges",
    "SELECT RAISE_ERROR(i) IS NULL AS v FROM edges",
    "SELECT LUHN_CHECK(c) IS NULL AS v FROM edges",
    "SELECT EXPLODE(ARRAY_REPEAT(1, i)) AS v FROM edges",
    "SELECT DATE_TRUNC('DAY', day) AS v FROM edges",
    "SELECT DATE_TRUNC('MILLISECOND', at) AS v FROM edges",
    "SELECT -c AS v FROM edges",
    # Spark rounds them to 34 digits.
    "SELECT -wide AS v FROM edges",
    "SELECT ABS(wide) AS v FROM edges",
    # Spark refuses these.
    "SELECT GREATEST(day, '2024-01-01') AS v FROM edges",
    "SELECT at > '2024-01-01 24:00:00' AS v FROM edges",
    "SELECT 0.123456789012345678901234567890123456789 AS v FROM edges",
    "SELECT w LIKE 1 AS v FROM edges",
    "SELECT d / (f + 7) AS v FROM edges",
    "SELECT CAST(NULL AS MAP<INT, INT>) AS v FROM edges",
    "SELECT CAST(c AS DATE) AS v FROM edges",
    "SELECT CAST('2024-01-01 10:00:00' AS DATE) AS v FROM edges",
    "SELECT 9223372036854775808 AS v FROM edges",
    "SELECT c + 1 AS v FROM edges",
    "SELECT i IS TRUE AS v FROM edges",
    "SELECT COUNT(i, c) AS v FROM edges",
    "SELECT *, i FROM edges",
    "SELECT i + 1 FROM edges",
    "SELECT a FROM VALUES (1) AS v(a)",
    "SELECT SUM(i) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM edges",
    "SELECT SUM(i) OVER (PARTITION BY f) AS v FROM edges",
    "SELECT AVG(i) OVER () AS v FROM edges",
    "SELECT LAG(i, 1 + 1) OVER (ORDER BY i) AS v FROM edges",
    "SELECT LAG(i, -1) OVER (ORDER BY i) AS v FROM edges",
    "SELECT LAG(i, 1, 0) OVER (ORDER BY i) AS v FROM edges",
    "SELECT SUM(i) OVER (ORDER BY i ROWS 1 + 1 PRECEDING) AS v FROM edges",
    "SELECT HOUR(TO_DATE(at)) AS v FROM edges",
    "SELECT DATEDIFF(DAY, at, TIMESTAMP'2024-03-01 01:00:00') AS v FROM edges",
    "SELECT COUNT(DISTINCT i, c) AS v FROM edges",
    "SELECT COUNT(*) AS v FROM edges GROUP BY 1",
    "SELECT i FROM edges ORDER BY 1 LIMIT 1",
    "SELECT i FROM edges ORDER BY f LIMIT 1",
    "SELECT LUHN_CHECK(c) OVER () AS v FROM edges",
    "SELECT EXTRACT(SECOND FROM at) AS v FROM edges",
    "SELECT SUBSTRING(w, -2, 1) AS v FROM edges",
    "SELECT SUBSTRING(w, 0, 2) AS v FROM edges",
    "SELECT day + INTERVAL '1' HOUR AS v FROM edges",
    "SELECT day + INTERVAL (1) DAY AS v FROM edges",
    "SELECT day * INTERVAL '1' DAY AS v FROM edges",
    # More digits behind the point than a decimal has.
    "SELECT CAST(0.01 AS DECIMAL(38,38)) * 0.1 AS v FROM edges",
    "SELECT 1E3 AS v FROM edges",
    "SELECT -'3' AS v FROM edges",
    "SELECT 1 + c AS v FROM edges",
    "SELECT f / d AS v FROM edges",
    "SELECT w LIKE c AS v FROM edges",
    "SELECT CAST('2024-01-01' AS INT) AS v FROM edges",
    "SELECT CAST(i AS DECIMAL) AS v FROM edges",
    "SELECT b IS (b) AS v FROM edges",
    # No sequence, although its first argument is called so.
    "SELECT EXPLODE(COALESCE('sequence', 1, i)) AS v FROM edges",
)
# What only Spark can compute of these values.
BEYOND = (
    "AVG(l * 10000000)",
    "AVG(IF(i = 1, 9007199254740992, 0))",
    "CAST(day + INTERVAL '1' DAY AS STRING)",
    "CAST(day - INTERVAL '1' YEAR AS STRING)",
)


def select(expressions: tuple[str, ...], rest: str) -> str:
    """All expressions at once, over the relation ``edges``."""
    texts = [f"{one} AS v{at}" for at, one in enumerate(expressions)]
    return f"SELECT {', '.join(texts)} FROM edges{rest}"
