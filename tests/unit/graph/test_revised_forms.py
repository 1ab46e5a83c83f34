"""Views that an earlier release maintained otherwise have another fingerprint."""

from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import parse
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import resolve
from spark_jobs.graph.revised_forms import revised_forms
from spark_jobs.names import TableName

COLUMNS = {
    "k": "int",
    "big": "bigint",
    "m": "decimal(8,2)",
    "n": "decimal(10,4)",
    "long": "decimal(30,2)",
    "longest": "decimal(38,8)",
    "at": "timestamp",
    "bits": "binary",
    "s": "string",
    "place": "struct<at:struct<x:int>>",
}
SCHEMAS = {TableName.parse("silver.t"): COLUMNS}


@pytest.mark.parametrize(
    ("outputs", "forms"),
    [
        ("t.k, COUNT(*) AS v FROM silver.t AS t GROUP BY t.k WITH ROLLUP", ("grouping sets",)),
        ("1 AS v FROM silver.t AS t HAVING TRUE", ("having without groups",)),
        ("AVG(t.big) AS v FROM silver.t AS t", ("mean of long numbers",)),
        ("AVG(t.long) AS v FROM silver.t AS t", ("mean of long numbers",)),
        ("SUM(t.longest) AS v FROM silver.t AS t", ("sum of long numbers",)),
        ("SUM(COALESCE(t.m, t.n)) AS v FROM silver.t AS t", ("mixed decimals",)),
        ("CASE WHEN t.k > 1 THEN t.m ELSE t.big END AS v FROM silver.t AS t", ("mixed decimals",)),
        ("SUM(t.k * 0.5) AS v FROM silver.t AS t", ("mixed decimals",)),
        ("t.place.at.x AS v FROM silver.t AS t", ("field of a struct",)),
        ("(t.place).at AS v FROM silver.t AS t", ()),
        ("EXTRACT(SECOND FROM t.at) AS v FROM silver.t AS t", ("extract",)),
        (
            "t.k AS v FROM silver.t AS t UNION ALL SELECT t.m FROM silver.t AS t",
            ("union of several types",),
        ),
        (
            "t.k AS v FROM silver.t AS t JOIN silver.t AS u ON t.k = u.m",
            ("equality of several types",),
        ),
        (
            "t.k AS v FROM silver.t AS t WHERE (t.k > 1) IN (SELECT u.m > 2 FROM silver.t AS u)",
            ("in conditions",),
        ),
        (
            (
                "t.k AS v FROM silver.t AS t WHERE (t.k, t.m) NOT IN "
                "(SELECT u.k, NOT u.m > 2 AS n FROM silver.t AS u)"
            ),
            ("in conditions",),
        ),
        ("t.k AS v FROM silver.t AS t WHERE t.k IN (SELECT u.k + 1 FROM silver.t AS u)", ()),
        ("t.k AS v FROM silver.t AS t WHERE t.k IN (1, 2)", ()),
        (
            (
                "t.k, SUM(IF(t.k IN (SELECT u.k FROM silver.t AS u), 1, 0)) AS v "
                "FROM silver.t AS t GROUP BY t.k HAVING t.k IN (SELECT u.k FROM silver.t AS u)"
            ),
            ("subquery in an aggregate", "subquery in having"),
        ),
        (
            "t.k AS v FROM silver.t AS t WHERE t.k NOT IN (SELECT u.k / 2 AS h FROM silver.t AS u)",
            ("not in of two zeros",),
        ),
        ("t.k AS v FROM silver.t AS t WHERE 1D IN (SELECT u.k / 2 AS h FROM silver.t AS u)", ()),
        (
            (
                "(SELECT BITMAP_COUNT(BITMAP_OR_AGG(u.bits)) FROM silver.t AS u WHERE u.k = t.k) "
                "AS v FROM silver.t AS t"
            ),
            ("value over no rows",),
        ),
        (
            "(SELECT SUM(u.k) FROM silver.t AS u WHERE u.s = t.k + 1) AS v FROM silver.t AS t",
            ("groups of another type",),
        ),
        (
            "t.k AS v FROM silver.t AS t WHERE t.k > 1 OR t.k IN (SELECT u.s FROM silver.t AS u)",
            ("groups of another type",),
        ),
        (
            (
                "t.k AS v FROM silver.t AS t WHERE t.k > (SELECT u.k FROM silver.t AS u "
                "WHERE u.m = t.m ORDER BY u.n LIMIT 1)"
            ),
            ("correlated subquery of groups",),
        ),
        (
            (
                "t.k AS v FROM silver.t AS t WHERE NOT EXISTS (SELECT 1 FROM silver.t AS u "
                "WHERE u.m = t.m GROUP BY u.n HAVING COUNT(*) > 1)"
            ),
            ("correlated subquery of groups",),
        ),
        (
            (
                "t.k AS v FROM silver.t AS t WHERE EXISTS (SELECT 1 FROM silver.t AS u "
                "WHERE u.m = t.m HAVING COUNT(*) > 1)"
            ),
            ("correlated subquery of groups", "having without groups"),
        ),
        (
            (
                "t.k AS v FROM silver.t AS t WHERE t.k > (SELECT MAX(u.k) FROM silver.t AS u "
                "WHERE u.m = t.m) AND t.k IN (SELECT u.k FROM silver.t AS u GROUP BY u.k)"
            ),
            (),
        ),
        ("APPROX_TOP_K(t.k) AS v FROM silver.t AS t", ()),
        ("t.k AS v FROM silver.t AS t UNION ALL SELECT t.big FROM silver.t AS t", ()),
        ("CAST(t.k AS STRING) AS v FROM silver.t AS t UNION ALL SELECT 'all' FROM silver.t", ()),
        # The type is that of the first decimal.
        ("COALESCE(SUM(t.m), 0) AS v FROM silver.t AS t", ()),
        ("IF(t.k > 1, t.n, t.m) AS v, t.m * 0.5 AS w FROM silver.t AS t", ()),
        ("t.k, AVG(t.m) AS v, AVG(t.k) AS w FROM silver.t AS t GROUP BY t.k HAVING TRUE", ()),
    ],
)
def test_forms_with_other_rows_or_state_are_found(outputs: str, forms: tuple[str, ...]) -> None:
    sql = f"SELECT {outputs}"
    resolved = resolve(parse(sql), SCHEMAS, SqlText("query", sql), "query")
    assert resolved.problems == ()
    assert revised_forms(resolved.tree) == forms
