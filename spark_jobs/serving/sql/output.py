"""Writes the rows of a query: a table for the terminal; CSV, JSON or Parquet."""

from __future__ import annotations

import base64
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
from pyarrow import csv
from rich.table import Table
from rich.text import Text

from spark_jobs.errors import LakehouseError
from spark_jobs.serving.sql.output_format import OutputFormat
from spark_jobs.terminal.console import line_console
from spark_jobs.terminal.payloads import harmless
from spark_jobs.terminal.tables import FittedTable


class ColumnsOfOneNameError(LakehouseError):
    """A result has columns of one name, which its format cannot hold."""

    condition = "COLUMNS_OF_ONE_NAME"
    names: Sequence[str]
    form: OutputFormat
    primary = "{form} holds one column of each name, and the result has more: {names}"
    hint = "Give columns other names with AS, or write CSV."


def write_rows(rows: pa.Table, form: OutputFormat, *, output: Path | None) -> None:
    """Write a result to a file or to standard output, in its columns; Parquet needs a file.

    Raises:
        ColumnsOfOneNameError: JSON and Parquet would lose columns.
    """
    repeated = [name for name, count in Counter(rows.column_names).items() if count > 1]
    if repeated and form in {OutputFormat.JSON, OutputFormat.PARQUET}:
        raise ColumnsOfOneNameError(repeated, form)
    if form is OutputFormat.PARQUET and output is not None:
        # Imported here: it takes a quarter of a second, and is rarely used.
        import pyarrow.parquet as pq

        pq.write_table(rows, output)
        return
    with _opened(output) as file:
        match form:
            case OutputFormat.CSV:
                write_csv(rows, file)
            case OutputFormat.JSON:
                write_json(rows, file)
            case _:
                line_console(file).print(rows_table(rows))


def rows_table(rows: pa.Table) -> Table:
    """The rows as a table with their columns; numbers are right-aligned."""
    table = FittedTable(caption=f"{rows.num_rows:,} row{'s' * (rows.num_rows != 1)}", numbered=True)
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        right = number or pa.types.is_decimal(field.type)
        heading = Text(harmless(field.name))
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in _tuples(rows):
        table.add_row(*map(_cell, row))
    return table


def _cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    return Text(harmless(as_text(value)))


def write_csv(rows: pa.Table, file: TextIO) -> None:
    """RFC 4180 with a header; text is quoted, so that NULL differs from an empty string."""
    columns = [_plain(column) for column in rows.columns]
    buffer = io.BytesIO()
    csv.write_csv(pa.Table.from_arrays(columns, names=rows.column_names), buffer)
    file.write(buffer.getvalue().decode())


def write_json(rows: pa.Table, file: TextIO) -> None:
    """An array of objects; decimals and times are strings, so that nothing is rounded."""
    names = rows.column_names
    entries = [dict(zip(names, map(as_json, row), strict=True)) for row in _tuples(rows)]
    json.dump(entries, file, indent=2, ensure_ascii=False, allow_nan=False)
    file.write("\n")


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers and Booleans as they are, other values as text."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column
    texts = [None if value is None else as_text(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def as_text(value: Any) -> str:
    """A value as a cell."""
    shown = as_json(value)
    if isinstance(shown, str):
        return shown
    return json.dumps(shown, ensure_ascii=False)


def as_json(value: Any) -> Any:
    """A value that JSON stores without loss.

    >>> as_json([Decimal("1.10"), b"ab", None, float("nan")])
    ['1.10', 'YWI=', None, 'nan']
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case dict():
            return {str(key): as_json(part) for key, part in value.items()}
        case list() | tuple():
            return [as_json(part) for part in value]
        case _:
            return str(value)


def _tuples(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Rows by position, because columns may have the same name."""
    columns = [column.to_pylist() for column in rows.columns]
    return zip(*columns, strict=True) if columns else iter(())


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
    else:
        with output.open("w", encoding="utf-8", newline="") as file:
            yield file
