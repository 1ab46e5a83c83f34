"""The lines of a CSV file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyarrow import csv

from spark_jobs.bronze.seed_rows import Field, SeedLine, as_text
from spark_jobs.bronze.seed_values import reader
from spark_jobs.graph.errors import SeedUnreadableError

_END = b"\x00end"
_MARK = b"\xef\xbb\xbf"


def csv_field(kind: str) -> Field:
    """Reads the values of a Spark SQL type."""
    read = reader(kind)
    return Field(lambda value: read(value.decode("utf-8")))


def csv_lines(path: str, content: bytes, columns: list[str]) -> Iterator[SeedLine]:
    """The lines of a file whose header was checked.

    An empty field is NULL; a quoted empty field is an empty string.

    Raises:
        SeedUnreadableError: it is not valid CSV, for example because a quote is not closed.
    """
    uneven: dict[int, csv.InvalidRow] = {}

    def skip(row: csv.InvalidRow) -> str:
        uneven[row.number] = row
        return "skip"

    # Arrow cannot report an uneven row that is not UTF-8. So each byte of such a file becomes a
    # character.
    whole = _is_utf8(content)
    if not whole:
        content = content.removeprefix(_MARK).decode("latin-1").encode("utf-8")
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
        raise SeedUnreadableError(path, "CSV", str(error).splitlines()[0]) from error
    rows = table.to_pylist()
    if not rows or set(rows.pop().values()) != {_END}:
        raise SeedUnreadableError(path, "CSV", "a quote is not closed")
    held = iter(rows)
    inside = 0
    # The header is row 1.
    for number in range(2, len(rows) + len(uneven) + 2):
        bad = uneven.get(number)
        if bad is not None:
            problem = f"{bad.actual_columns} fields and not {bad.expected_columns}"
            text = bad.text if whole else as_text(bad.text.encode("latin-1"))
            yield SeedLine(number + inside, None, partial(str, text), problem)
            inside += _line_ends(bad.text.encode())
            continue
        fields = next(held)
        if not whole:
            fields = {name: value and _bytes(value) for name, value in fields.items()}
        yield SeedLine(number + inside, fields, partial(_text, fields))
        inside += sum(_line_ends(one) for one in fields.values() if one)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _bytes(value: bytes) -> bytes:
    """A value as it is in the file, from its bytes as characters."""
    return value.decode("utf-8").encode("latin-1")


def _text(fields: Mapping[str, bytes | None]) -> str:
    return ",".join(as_text(one or b"") for one in fields.values())


def _line_ends(value: bytes) -> int:
    return value.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
