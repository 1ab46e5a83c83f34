from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_jobs.errors import Location
from spark_jobs.testing.errors import CaseTableError
from spark_jobs.testing.text_tables import read_text_table, typed_rows

HERE = Location("case.yml", 3)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "amount": pa.decimal128(12, 2),
        "at": pa.timestamp("us", tz="UTC"),
        "on": pa.date32(),
        "good": pa.bool_(),
        "mean": pa.float64(),
        "tags": pa.list_(pa.int64()),
        "name": pa.string(),
    }
)


def rows(text: str) -> list[dict]:
    return typed_rows(read_text_table(text, HERE), SCHEMA).to_pylist()


def test_cells_have_the_types_of_their_columns() -> None:
    text = """
id | amount | at                  | on         | good | mean | tags   | name
1  | 10.5   | 2026-03-01 08:00:00 | 2026-03-01 | true | 0.5  | [1, 2] | x y
2  | NULL   | NULL                | NULL       | NULL | NULL | NULL   |
"""
    assert rows(text) == [
        {
            "id": 1,
            "amount": Decimal("10.50"),
            "at": datetime(2026, 3, 1, 8, tzinfo=UTC),
            "on": date(2026, 3, 1),
            "good": True,
            "mean": 0.5,
            "tags": [1, 2],
            "name": "x y",
        },
        {**dict.fromkeys(SCHEMA.names), "id": 2, "name": ""},
    ]


def test_a_text_may_be_a_bar_or_null_or_empty() -> None:
    text = r"""
name
a\|b
\NULL
NULL
\
\d+\\
"""
    assert [row["name"] for row in rows(text)] == ["a|b", "NULL", None, "", "\\d+\\\\"]
    assert rows("id | name\n1 | {\\|}\n2 |") == [{"id": 1, "name": "{|}"}, {"id": 2, "name": ""}]


def test_a_table_may_have_no_row() -> None:
    assert rows("id | name") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("id | name\n1", "1 cells for 2 columns", id="too few cells"),
        pytest.param("id | colour\n1 | x", "no column 'colour'", id="unknown column"),
        pytest.param("id\nx", "'id' is of type int64", id="not a number"),
        pytest.param("amount\n1.234", "'amount' is of type decimal", id="too many digits"),
        pytest.param("at\nsoon", "'at' is of type timestamp", id="not a time"),
        pytest.param("tags\n[1", "'tags' is of type list", id="not an array"),
        pytest.param(" ", "there is no line", id="blank"),
        pytest.param("id | name | id\n1 | x | 2", "'id' is there 2 times", id="repeated column"),
    ],
)
def test_rows_that_do_not_fit_are_refused(text: str, words: str) -> None:
    with pytest.raises(CaseTableError) as caught:
        rows(text)

    assert words in caught.value.problem
    assert caught.value.location == HERE


SALE = pa.struct({"amount": pa.decimal128(12, 2), "on": pa.date32()})
NESTED = pa.schema(
    {
        "amounts": pa.list_(pa.decimal128(12, 2)),
        "times": pa.list_(pa.timestamp("us", tz="UTC")),
        "means": pa.list_(pa.float64()),
        "sales": pa.list_(SALE),
        "names": pa.list_(pa.string()),
        "good": pa.map_(pa.string(), pa.bool_()),
    }
)


def nested(column: str, cell: str) -> object:
    table = read_text_table(f"{column}\n{cell}", HERE)
    return typed_rows(table, NESTED).to_pylist()[0][column]


@pytest.mark.parametrize(
    ("column", "cell", "found"),
    [
        ("amounts", "[1.50, 2, null]", [Decimal("1.50"), Decimal("2.00"), None]),
        ("times", '["2026-03-01 08:00:00"]', [datetime(2026, 3, 1, 8, tzinfo=UTC)]),
        ("means", "[0.1, 1]", [0.1, 1.0]),
        (
            "sales",
            '[{"amount": 10.5, "on": "2026-03-01"}, {"on": null}]',
            [
                {"amount": Decimal("10.50"), "on": date(2026, 3, 1)},
                {"amount": None, "on": None},
            ],
        ),
        ("good", '{"x": true, "y": null}', [("x", True), ("y", None)]),
    ],
)
def test_values_within_a_value_are_of_any_type(column: str, cell: str, found: object) -> None:
    assert nested(column, cell) == found


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        pytest.param("sales", '[{"amuont": 1}]', "no field 'amuont'", id="unknown field"),
        pytest.param("sales", '{"amount": 1}', "not an array", id="no array"),
        pytest.param("names", '"ab"', "not an array", id="letters of a text"),
        pytest.param("names", "[1]", "1 is not text", id="no text"),
        pytest.param("amounts", "[1.234]", "data loss", id="too many digits"),
    ],
)
def test_values_within_a_value_that_do_not_fit_are_refused(
    column: str, cell: str, words: str
) -> None:
    with pytest.raises(CaseTableError) as caught:
        nested(column, cell)

    assert words in caught.value.problem
