"""The columns of a seed file, compared with the declared ones."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.errors import SeedHeaderError, SeedTypeError, SeedUnreadableError


def column_problems(
    source: str,
    path: str,
    content: bytes,
    *,
    form: SourceFormat,
    columns: Mapping[str, str],
    places: Places | None = None,
) -> Iterator[LakehouseError]:
    """Report differences between a file and the declared columns.

    Args:
        source: name of the source.
        path: name of the file in messages.
        content: of the file.
        form: how the file is written.
        columns: declared columns and their Spark SQL types.
        places: of the declaration, if the problems are to be located there.
    """
    line: int | None = 1
    kinds: Mapping[str, str] = {}
    try:
        match form:
            case SourceFormat.CSV:
                found = csv_columns(content)
            case SourceFormat.JSONL:
                found, line = jsonl_columns(content, list(columns))
            case SourceFormat.PARQUET:
                # Imported here: most projects compile without a reader of Parquet.
                from spark_jobs.graph.parquet_columns import (  # noqa: PLC0415
                    parquet_columns,
                    unfit_types,
                )

                line = None
                types = parquet_columns(content)
                found = [name for name, _ in types]
                kinds = unfit_types(dict(types), columns)
            case SourceFormat.JSON | SourceFormat.AVRO | SourceFormat.DEBEZIUM | SourceFormat.DELTA:
                raise AssertionError(form)
            case _:
                assert_never(form)
    except ValueError as error:
        place = places.value_of("path") if places else None
        name = "CSV" if form is SourceFormat.CSV else "Parquet"
        yield SeedUnreadableError(path, name, str(error), location=place)
        return
    if told := _difference(found, list(columns)):
        yield SeedHeaderError(source, path, told, location=Location(path, line))
    for name, kind in kinds.items():
        place = places.of("columns", name) if places else None
        yield SeedTypeError(source, path, name, kind, columns[name].upper(), location=place)


def csv_columns(content: bytes) -> list[str]:
    """The column names in the first line.

    Raises:
        ValueError: it is not UTF-8, or not CSV.
    """
    # Read only the first line; the rest has rows.
    first = re.split(rb"\r\n|\n|\r", content, maxsplit=1)[0].decode("utf-8-sig")
    try:
        return next(csv.reader(io.StringIO(first), strict=True), [])
    except csv.Error as error:
        raise ValueError(str(error)) from error


def jsonl_columns(content: bytes, columns: list[str]) -> tuple[list[str], int]:
    """The members of the first object, and the declared columns that later objects have.

    Some writers leave NULL out, so a column may be missing from any line, but not from all.
    Lines without an object are skipped here; a load rejects them.

    Args:
        content: of the file.
        columns: declared columns; all of them are found if the file has no object.

    Returns:
        the names, and the number of the first object's line.
    """
    found: list[str] = []
    first = 0
    lacking = set(columns)
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        members = _members(line)
        if members is None:
            continue
        if not first:
            found, first = members, number
        lacking.difference_update(members)
        if not lacking:
            break
    if not first:
        return columns, 1
    return found + [one for one in columns if one not in found and one not in lacking], first


def _members(line: bytes) -> list[str] | None:
    """The names in a line's object, including repeated ones; None without an object."""
    try:
        found: Any = json.loads(line.decode("utf-8"), object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        return None
    return [name for name, _ in found] if isinstance(found, _Object) else None


class _Object(list[tuple[str, Any]]):
    """The members of an object, so that an array is not taken for one."""


def _difference(found: list[str], columns: list[str]) -> str:
    lacking = [one for one in columns if one not in found]
    unknown = sorted({one for one in found if one not in columns}, key=found.index)
    twice = sorted({one for one in found if found.count(one) > 1})
    told = [
        f"{word} {', '.join(map(repr, names))}"
        for word, names in (("lacks", lacking), ("also has", unknown), ("repeats", twice))
        if names
    ]
    return f"it {' and '.join(told)}" if told else ""
