"""What was written is what is compiled; ``tests/spark/test_as_written.py`` asks Spark."""

from __future__ import annotations

import pytest
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from spark_jobs.graph.dialect import parse, to_sql

# Each was changed by sqlglot into something with another value or type.
KEPT = (
    "PERCENTILE(a, 0.5, b)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a DESC)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a)",
    "LISTAGG(DISTINCT a, ';') WITHIN GROUP (ORDER BY a DESC)",
    "LOG10(a)",
    "LOG2(a)",
    "LOG(3, a)",
    "LOG(a)",
    "DATE_TRUNC(u, a)",
    "DATE_TRUNC(LOWER('DAY'), a)",
    "TRUNC(a, u)",
    "DATE_TRUNC('Q', a)",
    "DATE_TRUNC('d', a)",
    "TRUNC(a, 'Y')",
    "PARSE_JSON(a)",
    "TO_JSON(PARSE_JSON(a))",
    "UNIX_DATE(a)",
    "CAST(a AS TIME)",
    "CAST('10:00:00' AS TIME)",
    "(WITH x AS (SELECT 1 AS b) SELECT b FROM x)",
)
TEXTS = {
    "'it''s'": "it's",
    "''''": "'",
    "''": "",
    "'a\"\"b'": 'a""b',
    '"a""b"': 'a"b',
    "\"it''s\"": "it''s",
    "'a\\'b'": "a'b",
    "'a\\\\'": "a\\",
    "r'a\\'": "a\\",
}


@pytest.mark.parametrize("expression", KEPT)
def test_an_expression_stays_as_it_was_written(expression: str) -> None:
    assert to_sql(parse(f"SELECT {expression} FROM t")) == f"SELECT {expression} FROM t"


@pytest.mark.parametrize("written", TEXTS)
def test_a_text_is_what_spark_reads(written: str) -> None:
    tree = parse(f"SELECT {written} AS a FROM t")
    assert tree.selects[0].this.name == TEXTS[written]
    again = parse(to_sql(tree))
    assert again.selects[0].this.name == TEXTS[written]


def test_a_time_without_a_zone_has_none() -> None:
    tree = parse("SELECT CAST(a AS TIMESTAMP WITHOUT TIME ZONE) AS b FROM t")
    assert to_sql(tree) == "SELECT CAST(a AS TIMESTAMP_NTZ) AS b FROM t"


def test_values_are_joined_without_a_separator() -> None:
    assert to_sql(parse("SELECT LISTAGG(a) FROM t")) == "SELECT LISTAGG(a, '') FROM t"


@pytest.mark.parametrize(
    ("written", "read"),
    {
        "a & 1 << 3": "a & SHIFTLEFT(1, 3)",
        "a << 1 + b >> 2": "SHIFTRIGHT(SHIFTLEFT(a, 1 + b), 2)",
        "a >>> b | 1": "SHIFTRIGHTUNSIGNED(a, b) | 1",
    }.items(),
)
def test_a_shift_binds_tighter_than_other_operators_on_bits(written: str, read: str) -> None:
    assert to_sql(parse(f"SELECT {written} FROM t")) == f"SELECT {read} FROM t"


@pytest.mark.parametrize(
    ("expression", "left", "right"),
    [
        ("a | b & c", "a", "b & c"),
        ("a & b | c", "a & b", "c"),
        ("a ^ b & c", "a", "b & c"),
        ("a | b ^ c", "a", "b ^ c"),
        ("a & b & c", "a & b", "c"),
        ("a = b < c", "a = b", "c"),
        ("a < b = c", "a < b", "c"),
        ("a < b LIKE c", "a < b", "c"),
    ],
)
def test_operators_bind_as_in_spark(expression: str, left: str, right: str) -> None:
    (value,) = parse(f"SELECT {expression} FROM t").selects
    assert [to_sql(value.this), to_sql(value.expression)] == [left, right]


def test_texts_are_joined_from_left_to_right_with_sums() -> None:
    (value,) = parse("SELECT a || b + c || d FROM t").selects
    (added,) = value.find_all(exp.Add)
    assert [to_sql(one) for one in (value.this, added.this)] == ["a || b + c", "a || b"]


@pytest.mark.parametrize("sizes", [(), (5,), (40,), (5, 2)])
def test_types_are_written_as_sqlglot_writes_them_for_spark(sizes: tuple[int, ...]) -> None:
    parameters = [exp.DataTypeParam(this=exp.Literal.number(one)) for one in sizes]
    for kind in exp.DType:
        written = to_sql(exp.DataType(this=kind, expressions=parameters))
        if kind is exp.DType.TIME:
            assert written.split("(")[0] == "TIME"
            continue
        assert written == exp.DataType(this=kind, expressions=parameters).sql(dialect=Spark), kind
