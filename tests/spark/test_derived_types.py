"""Types that are derived without Spark are Spark's."""

from __future__ import annotations

from itertools import product

from pyspark.sql import SparkSession

from spark_jobs.graph.dialect import parse
from spark_jobs.graph.maintenance.column_types import EXACT, expression_types
from tests.spark.test_as_written import AGGREGATES, OVER, ROWS, SCALARS

TYPES = {
    "m": "decimal(8,2)",
    "n": "decimal(10,4)",
    "w": "decimal(38,4)",
    "i": "int",
    "l": "bigint",
    "b": "tinyint",
    "h": "smallint",
    "f": "double",
    "g": "float",
    "c": "string",
    "d": "date",
    "at": "timestamp",
    "o": "boolean",
}
NUMBERS = (
    *("m", "n", "w", "i", "l", "b", "h", "f", "g"),
    *("0", "0.0", "0.50", "(0.25)", "-0.5", "12.5", "3L", "3S", "1e0", "3000000000", "NULL"),
)
OF_TWO = (
    *("COALESCE({}, {})", "NVL({}, {})", "IFNULL({}, {})", "NULLIF({}, {})", "NVL2(o, {}, {})"),
    *("IF(o, {}, {})", "CASE WHEN o THEN {} ELSE {} END", "GREATEST({}, {})", "LEAST({}, {})"),
    *("{} + {}", "{} * {}", "{} / {}", "{} % {}", "ARRAY({}, {})"),
)
OF_ONE = (
    *("{}", "-({})", "SUM({})", "AVG({})", "MAX({})", "MEDIAN({})", "FIRST({})", "COUNT({})"),
    *("SUM(DISTINCT {})", "STDDEV({})", "ROUND({}, 1)", "ABS({})", "FLOOR({})", "SQRT({})"),
    *("CASE WHEN o THEN {} END", "SUM({}) OVER ()", "LAG({}) OVER (ORDER BY i)", "ARRAY({})[0]"),
)
OF_TIMES = (
    *(
        f"EXTRACT({part} FROM at)"
        for part in ("SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "QUARTER", "WEEK", "DOW")
    ),
    *("YEAR(d)", "MONTH(d)", "DAY(d)", "HOUR(at)", "SECOND(at)", "DAYOFWEEK(d)", "WEEKDAY(d)"),
    *("DATEDIFF(d, d)", "DATE_ADD(d, 1)", "TO_DATE(c)", "DATE_TRUNC('DAY', at)", "TRUNC(d, 'MM')"),
    *("d + 1", "d - d", "at - at", "at + INTERVAL '1' DAY", "LAST_DAY(d)", "ADD_MONTHS(d, 1)"),
    *("COALESCE(d, at)", "IF(o, d, at)", "COALESCE(c, d)", "UNIX_TIMESTAMP(at)"),
    *("COALESCE(c, 'x')", "IF(o, 'x', c)", "CASE WHEN o THEN 'x' ELSE c END", "NULLIF(c, 'x')"),
    *("GREATEST(c, 'x')", "IF(o, TRUE, o)", "ARRAY(c, 'x')", "NVL(d, DATE'2024-01-01')"),
)
# Of these, all are derived.
KNOWN = ("COALESCE(c, 'x')", "IF(o, 'x', c)", "COALESCE(d, at)", "ARRAY(c, 'x')", "COALESCE(m, 0)")


def differences(
    spark: SparkSession, relation: str, expressions: list[str], types: dict[str, str]
) -> tuple[list[str], int]:
    """The expressions whose derived type is not Spark's, and the number of derived types."""
    columns = ", ".join(f"{one} AS v{at}" for at, one in enumerate(expressions))
    right = [
        one.dataType.simpleString() for one in spark.sql(f"SELECT {columns} {relation}").schema
    ]
    trees = [parse(f"SELECT {one} AS v FROM t").selects[0].unalias() for one in expressions]
    pairs = list(zip(expressions, expression_types(trees, types), right, strict=True))
    derived = [(one, ours, theirs) for one, ours, theirs in pairs if ours not in {"", EXACT}]
    # Spark writes names of fields without quotes here.
    wrong = [
        f"{one}: {ours}, not {theirs}"
        for one, ours, theirs in derived
        if ours.replace("`", "") != theirs
    ]
    return wrong, len(derived)


def test_types_of_numbers_and_times(spark: SparkSession) -> None:
    relation = "FROM (SELECT {})".format(
        ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in TYPES.items())
    )
    wrong, derived = [], 0
    for form in OF_TWO:
        every = [form.format(*pair) for pair in product(NUMBERS, repeat=2)]
        found, count = differences(spark, relation, every, TYPES)
        wrong, derived = wrong + found, derived + count
    for form in OF_ONE:
        found, count = differences(spark, relation, [form.format(n) for n in NUMBERS], TYPES)
        wrong, derived = wrong + found, derived + count
    found, count = differences(spark, relation, list(OF_TIMES), TYPES)
    wrong += found
    assert not wrong, "\n".join(wrong)
    # Of 5,600 for two numbers, 360 for one and 25 of times.
    assert derived + count > 4_000


def test_common_types_are_derived() -> None:
    trees = [parse(f"SELECT {one} AS v FROM t").selects[0].unalias() for one in KNOWN]
    assert "" not in expression_types(trees, TYPES)


def test_types_of_other_calls(spark: SparkSession) -> None:
    types = {field.name: field.dataType.simpleString() for field in spark.sql(ROWS).schema}
    wrong, derived = [], 0
    for some in (SCALARS, AGGREGATES, OVER):
        found, count = differences(spark, f"FROM ({ROWS})", list(some), types)
        wrong, derived = wrong + found, derived + count
    assert not wrong, "\n".join(wrong)
    assert derived > 200
