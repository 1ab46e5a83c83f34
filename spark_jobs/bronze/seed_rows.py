"""Typed rows with unique keys from the raw values of a file, and the rows that are rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_jobs.graph.manifest import Column
from spark_jobs.storage.arrow_types import arrow_columns

# Characters of a bad value that are shown.
_SHOWN = 60


def as_text(value: Any) -> str:
    """A raw value, for people."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@dataclass(frozen=True)
class Field:
    """How the values of a column are read.

    Attributes:
        convert: turns a raw value that is not NULL into the declared type; raises ValueError.
        show: writes a raw value for people.
    """

    convert: Callable[[Any], Any]
    show: Callable[[Any], str] = as_text


@dataclass(frozen=True)
class SeedLine:
    """A row of a file as it is written.

    Attributes:
        number: line number of its first character, or row number in a Parquet file, from 1.
        values: raw values by column; None is NULL. None if the line is no row.
        text: returns the line, for people.
        problem: why it is no row; "" if it is one.
    """

    number: int
    values: Mapping[str, Any] | None
    text: Callable[[], str]
    problem: str = ""


@dataclass(frozen=True)
class Rejected:
    """A rejected line.

    Attributes:
        line: its number, as in ``SeedLine``.
    """

    line: int
    reason: str
    text: str


@dataclass(frozen=True)
class SeedRows:
    """The content of a file."""

    rows: pa.Table
    rejected: tuple[Rejected, ...]

    @property
    def lines(self) -> int:
        """Number of rows in the file, readable or not."""
        return int(self.rows.num_rows) + len(self.rejected)


def typed_rows(
    lines: Iterable[SeedLine],
    columns: Sequence[Column],
    keys: Sequence[str],
    *,
    fields: Mapping[str, Field],
    unit: str,
) -> SeedRows:
    """Convert lines to rows.

    Args:
        lines: in the order of the file.
        columns: declared columns.
        keys: columns that must be unique; of rows with equal keys the first counts.
        fields: by column.
        unit: what messages call a line.
    """
    needed = {one.name for one in columns if one.required} | set(keys)
    values: list[dict[str, Any]] = []
    rejected: list[Rejected] = []
    first: dict[tuple[Any, ...], int] = {}
    for line in lines:
        row, problem = _typed(line, fields, needed)
        key = tuple(row.get(one) for one in keys)
        if not problem and key in first:
            problem = f"{unit} {first[key]} has the same key"
        if problem:
            rejected.append(Rejected(line.number, problem, line.text()))
        else:
            first[key] = line.number
            values.append(row)
    # The compiler refuses types that have no Arrow type.
    schema = arrow_columns(columns)
    return SeedRows(pa.Table.from_pylist(values, schema), tuple(rejected))


def _typed(
    line: SeedLine, fields: Mapping[str, Field], needed: set[str]
) -> tuple[dict[str, Any], str]:
    row: dict[str, Any] = {}
    if line.values is None:
        return row, line.problem
    for name, field in fields.items():
        value = line.values[name]
        if value is None:
            if name in needed:
                return row, f"{name} is missing"
            row[name] = None
            continue
        try:
            row[name] = field.convert(value)
        except UnicodeError:
            return row, f"{name} is not UTF-8"
        except ValueError as error:
            return row, f"{name}: {field.show(value)[:_SHOWN]!r}: {error}"
    return row, ""
