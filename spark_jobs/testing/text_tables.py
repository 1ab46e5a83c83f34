r"""Reads text tables: a line of names, then a line for each row, with cells between bars.

order_id | amount | created_at
11       | 10.50  | 2026-03-01 08:00:00
12       | NULL   | 2026-03-02

In a cell, ``\|`` is a bar. The cell ``\NULL`` is the text NULL, and ``\`` alone an empty text, as
the empty cell is in a table of several columns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.errors import Location, did_you_mean
from spark_jobs.testing.errors import CaseTableError

NULL = "NULL"
_BETWEEN = re.compile(r"(?<!\\)\|")
_ESCAPED = {NULL: None, rf"\{NULL}": NULL, "\\": ""}


@dataclass(frozen=True)
class TextTable:
    """Names and cells as text, and their location."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    location: Location


def read_text_table(text: str, location: Location) -> TextTable:
    r"""Read a table from text.

    Raises:
        CaseTableError: there are no names, a name is repeated, or a row has more or fewer cells
            than there are names.

    >>> read_text_table("a | b\n1 | x y", Location("f")).rows
    (('1', 'x y'),)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        hint = "Write a line with the names of the columns, then a line for each row."
        raise CaseTableError("there is no line", hint, location=location)
    columns, *rows = [tuple(cell.strip() for cell in _BETWEEN.split(line)) for line in lines]
    for name, count in Counter(columns).items():
        if count > 1:
            problem = f"column {name!r} is there {count} times"
            raise CaseTableError(problem, "Keep one of them.", location=location)
    for row in rows:
        if len(row) != len(columns):
            problem = f"{' | '.join(row)!r} has {len(row)} cells for {len(columns)} columns"
            hint = (
                "Write one cell per column, separated by bars, and NULL for a missing value. "
                "A bar in a text is \\|."
            )
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
        texts = [_text(row[at]) for row in table.rows]
        kind = schema.field(name).type
        try:
            arrays.append(_typed(texts, kind))
        except (pa.ArrowException, ValueError, TypeError) as error:
            problem = f"column {name!r} is of type {kind}: {str(error).splitlines()[0]}"
            hint = "Write 10.50, 2026-03-01 08:00:00, 2026-03-01, true or [1, 2], as it fits."
            raise CaseTableError(problem, hint, location=table.location) from error
    return pa.table(arrays, names=list(table.columns))


def _text(cell: str) -> str | None:
    """What a cell says; None: NULL."""
    return _ESCAPED[cell] if cell in _ESCAPED else cell.replace(r"\|", "|")


def _typed(texts: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_nested(kind):
        values = [None if one is None else json.loads(one, parse_float=Decimal) for one in texts]
        return pa.array([_nested(one, kind) for one in values], type=kind)
    plain = pa.array(texts, type=pa.string())
    if not pa.types.is_timestamp(kind):
        return plain.cast(kind)
    instants = plain.cast(pa.timestamp(kind.unit))
    return instants if kind.tz is None else pc.assume_timezone(instants, kind.tz)


def _nested(value: Any, kind: pa.DataType) -> Any:
    """A value of JSON as Arrow takes it; scalars are written as in a cell.

    Raises:
        ValueError: a text is not of the type, or a field is unknown.
        TypeError: the value has another shape.
    """
    if value is None:
        return None
    if pa.types.is_map(kind):
        pairs = _expected(value, dict, "an object").items()
        return [(_nested(key, kind.key_type), _nested(one, kind.item_type)) for key, one in pairs]
    if pa.types.is_struct(kind):
        fields = {field.name: field.type for field in kind}
        if unknown := sorted(_expected(value, dict, "an object").keys() - fields.keys()):
            raise ValueError(f"there is no field {unknown[0]!r}")
        return {name: _nested(value.get(name), inner) for name, inner in fields.items()}
    if pa.types.is_nested(kind):
        return [_nested(one, kind.value_type) for one in _expected(value, list, "an array")]
    if pa.types.is_string(kind):
        return _expected(value, str, "text")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return _typed([text], kind)[0].as_py()


def _expected(value: Any, wanted: type, words: str) -> Any:
    if not isinstance(value, wanted):
        raise TypeError(f"{value!r} is not {words}")
    return value
