from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from spark_jobs.serving.sql.output import (
    ColumnsOfOneNameError,
    rows_table,
    write_csv,
    write_json,
    write_rows,
)
from spark_jobs.serving.sql.output_format import OutputFormat

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "name": pa.array(['a "b", c', None]),
        "empty": pa.array(["", None]),
        "amount": pa.array([Decimal("1.10"), None], pa.decimal128(12, 2)),
        "day": pa.array([date(2024, 1, 2), None]),
        "at": pa.array(
            [datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), None], pa.timestamp("us", "UTC")
        ),
        "share": pa.array([float("nan"), 0.5]),
        "tags": pa.array([["x", None], None], pa.list_(pa.string())),
        "raw": pa.array([b"\xff", None]),
    }
)


def test_csv_distinguishes_null_from_an_empty_string_and_keeps_decimals() -> None:
    out = io.StringIO()
    write_csv(ROWS, out)
    header, first, second = out.getvalue().splitlines()
    assert header == '"id","name","empty","amount","day","at","share","tags","raw"'
    assert first == (
        '1,"a ""b"", c","","1.10","2024-01-02","2024-01-02T03:04:05.000006+00:00",nan,'
        '"[""x"", null]","/w=="'
    )
    assert second == "2,,,,,,0.5,,"


def test_json_is_valid_and_loses_nothing() -> None:
    out = io.StringIO()
    write_json(ROWS, out)
    first, second = json.loads(out.getvalue())
    assert first["amount"] == "1.10"
    assert first["share"] == "nan"
    assert first["tags"] == ["x", None]
    assert first["at"] == "2024-01-02T03:04:05.000006+00:00"
    assert [name for name, value in second.items() if value is not None] == ["id", "share"]


def test_the_table_shows_null_apart_from_text() -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(rows_table(ROWS))
    assert 'a "b", c' in out.getvalue()
    assert out.getvalue().count("NULL") == 7
    assert "2 rows" in out.getvalue()


def test_data_is_never_taken_for_markup() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(rows_table(pa.table({"[b]x": ["[red]y"]})))
    assert "[b]x" in out.getvalue()
    assert "[red]y" in out.getvalue()


@pytest.mark.parametrize("form", list(OutputFormat))
def test_each_format_goes_to_a_file(form: OutputFormat, tmp_path: Path) -> None:
    write_rows(ROWS, form, output=tmp_path / "out")
    assert (tmp_path / "out").stat().st_size > 0


def test_parquet_keeps_types(tmp_path: Path) -> None:
    write_rows(ROWS, OutputFormat.PARQUET, output=tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").schema.field("amount").type == pa.decimal128(
        12, 2
    )


@pytest.mark.parametrize("form", [OutputFormat.TABLE, OutputFormat.CSV, OutputFormat.JSON])
def test_no_rows_and_no_columns_are_fine(
    form: OutputFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(ROWS.slice(0, 0), form, output=None)
    assert capsys.readouterr().out
    write_rows(pa.table({}), form, output=None)


def test_values_do_not_control_the_terminal() -> None:
    rows = pa.table(
        {"a\x1b[31m": ["x\x1b]52;c;cm0=\x07y", "a\u202eb", "one\ntwo\u3000\u3042", "\x9b2J"]}
    )
    out = io.StringIO()
    Console(file=out, width=40).print(rows_table(rows))
    shown = out.getvalue()
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & {*shown}
    for text in ("a\\x1b[31m", "x\\x1b]52;c;cm0=\\x07y", "a\\u202eb", "one ", "two\u3000\u3042"):
        assert text in shown


@pytest.mark.parametrize("form", [OutputFormat.JSON, OutputFormat.PARQUET])
def test_columns_of_one_name_are_not_lost(form: OutputFormat, tmp_path: Path) -> None:
    rows = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["id", "id", "n"])
    file = tmp_path / "rows"
    with pytest.raises(ColumnsOfOneNameError) as refusal:
        write_rows(rows, form, output=file)
    assert refusal.value.names == ("id",)
    assert not file.exists()
    write_rows(rows, OutputFormat.CSV, output=file)
    assert file.read_text().splitlines() == ['"id","id","n"', "1,2,3"]
