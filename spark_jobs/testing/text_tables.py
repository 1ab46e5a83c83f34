"""Reads text tables: a line of names, then a line for each row, with cells between bars.

order_id | amount | created_at
11       | 10.50  | 2026-03-01 08:00:00
12       | NULL   | 2026-03-02
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.errors import Location, did_you_mean
from spark_jobs.testing.errors import CaseTableError

NULL = "NULL"


@dataclass(frozen=True)
class TextTable:
    """Names and cells as text, and their location."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    location: Location


def read_text_table(text: str, location: Location) -> TextTable:
    r"""Read a table from text.

    Raises:
        CaseTableError: a row has more or fewer cells than there are names.

    >>> read_text_table("a | b\n1 | x y", Location("f")).rows
    (('1', 'x y'),)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    columns, *rows = [tuple(cell.strip() for cell in line.split("|")) for line in lines]
    for row in rows:
        if len(row) != len(columns):
            problem = f"{' | '.join(row)!r} has {len(row)} cells for {len(columns)} columns"
            hint = "Write one cell per column, separated by bars, and NULL for a missing value."
            raise CaseTableError(problem, hint, location=location)
    return TextTable(columns, tuple(rows), location)


def typed_rows(table: TextTable, schema: pa.Schema) -> pa.Table:
    """The rows with the types of their columns; times without a zone are in UTC.

    Args:
        table: the text.
        schema: of at least these columns.

    Raises:
        CaseTableError: an unknown column, or a value that is not of its type.
    """
    arrays = []
    for at, name in enumerate(table.columns):
        if name not in schema.names:
            problem = f"there is no column {name!r}"
            hint = did_you_mean(name, schema.names) or f"There are {', '.join(schema.names)}."
            raise CaseTableError(problem, hint, location=table.location)
        texts = [None if row[at] == NULL else row[at] for row in table.rows]
        kind = schema.field(name).type
        try:
            arrays.append(_typed(texts, kind))
        except (pa.ArrowException, ValueError, TypeError) as error:
            problem = f"column {name!r} is of type {kind}: {str(error).splitlines()[0]}"
            hint = "Write 10.50, 2026-03-01 08:00:00, 2026-03-01, true or [1, 2], as it fits."
            raise CaseTableError(problem, hint, location=table.location) from error
    return pa.table(arrays, names=list(table.columns))


def _typed(texts: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_nested(kind):
        return pa.array([None if one is None else json.loads(one) for one in texts], type=kind)
    plain = pa.array(texts, type=pa.string())
    if not pa.types.is_timestamp(kind):
        return plain.cast(kind)
    instants = plain.cast(pa.timestamp(kind.unit))
    return instants if kind.tz is None else pc.assume_timezone(instants, kind.tz)
