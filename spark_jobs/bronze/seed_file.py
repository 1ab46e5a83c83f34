"""Reads a CSV file: typed rows with unique keys, and rejected lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import csv

from spark_jobs.bronze.errors import SeedUnreadableError
from spark_jobs.bronze.seed_values import Reader, arrow_type, reader
from spark_jobs.graph.manifest import Column

# Characters of a bad value that are shown.
_SHOWN = 60
_END = b"\x00end"


@dataclass(frozen=True)
class Rejected:
    """A rejected line.

    Attributes:
        line: line number of its first character, from 1.
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


@dataclass(frozen=True)
class _Line:
    number: int
    # Fields by column; empty fields are None. None if the line has too many or too few fields.
    fields: dict[str, bytes | None] | None
    text: str
    problem: str = ""


def read_seed(
    path: str, content: bytes, columns: Sequence[Column], keys: Sequence[str]
) -> SeedRows:
    """Read a file whose header was checked.

    An empty field is NULL; a quoted empty field is an empty string.

    Args:
        path: name of the file in messages.
        content: of the file.
        columns: declared columns.
        keys: columns that must be unique; of rows with equal keys the first counts.

    Raises:
        SeedUnreadableError: it is not valid CSV, for example because a quote is not closed.
    """
    readers = {one.name: reader(one.type) for one in columns}
    needed = {one.name for one in columns if one.required} | set(keys)
    values: list[dict[str, Any]] = []
    rejected: list[Rejected] = []
    first: dict[tuple[Any, ...], int] = {}
    for line in _lines(path, content, [one.name for one in columns]):
        row, problem = _typed(line, readers, needed)
        key = tuple(row.get(one) for one in keys)
        if not problem and key in first:
            problem = f"line {first[key]} has the same key"
        if problem:
            rejected.append(Rejected(line.number, problem, line.text))
        else:
            first[key] = line.number
            values.append(row)
    schema = pa.schema([(one.name, arrow_type(one.type)) for one in columns])
    return SeedRows(pa.Table.from_pylist(values, schema), tuple(rejected))


def _typed(line: _Line, readers: dict[str, Reader], needed: set[str]) -> tuple[dict[str, Any], str]:
    row: dict[str, Any] = {}
    if line.fields is None:
        return row, line.problem
    for name, read in readers.items():
        field = line.fields[name]
        if field is None:
            if name in needed:
                return row, f"{name} is missing"
            row[name] = None
            continue
        try:
            text = field.decode("utf-8")
        except UnicodeDecodeError:
            return row, f"{name} is not UTF-8"
        try:
            row[name] = read(text)
        except ValueError as error:
            return row, f"{name}: {text[:_SHOWN]!r}: {error}"
    return row, ""


def _lines(path: str, content: bytes, columns: list[str]) -> Iterator[_Line]:
    uneven: dict[int, csv.InvalidRow] = {}

    def skip(row: csv.InvalidRow) -> str:
        uneven[row.number] = row
        return "skip"

    # Append a sentinel row: it is missing from the result if a quote was not closed.
    ended = content + (b"" if content.endswith(b"\n") else b"\n")
    ended += b",".join([_END] * len(columns)) + b"\n"
    try:
        table = csv.read_csv(
            pa.BufferReader(ended),
            # One block and one thread: required for row numbers, and for line ends in values.
            read_options=csv.ReadOptions(use_threads=False, block_size=len(ended) + 1),
            parse_options=csv.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=skip
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(columns, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=columns,
            ),
        )
    except pa.ArrowInvalid as error:
        raise SeedUnreadableError(path, str(error).splitlines()[0]) from error
    rows = table.to_pylist()
    if not rows or set(rows.pop().values()) != {_END}:
        raise SeedUnreadableError(path, "a quote is not closed")
    held = iter(rows)
    inside = 0
    # The header is row 1.
    for number in range(2, len(rows) + len(uneven) + 2):
        bad = uneven.get(number)
        if bad is not None:
            problem = f"{bad.actual_columns} fields and not {bad.expected_columns}"
            yield _Line(number + inside, None, bad.text, problem)
            inside += _line_ends(bad.text.encode())
            continue
        fields = next(held)
        text = ",".join((one or b"").decode("utf-8", "replace") for one in fields.values())
        yield _Line(number + inside, fields, text)
        inside += sum(_line_ends(one) for one in fields.values() if one)


def _line_ends(value: bytes) -> int:
    return value.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
