"""Reads a seed file of any format."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.bronze.seed_csv import csv_field, csv_lines
from spark_jobs.bronze.seed_jsonl import jsonl_field, jsonl_lines
from spark_jobs.bronze.seed_parquet import parquet_fields, parquet_lines
from spark_jobs.bronze.seed_rows import SeedRows, typed_rows
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Column


def read_seed(
    path: str,
    content: bytes,
    columns: Sequence[Column],
    keys: Sequence[str],
    *,
    form: SourceFormat,
) -> SeedRows:
    """Read a file whose columns were checked.

    Args:
        path: name of the file in messages.
        content: of the file.
        columns: declared columns.
        keys: columns that must be unique; of rows with equal keys the first counts.
        form: how the file is written.

    Raises:
        SeedUnreadableError: it cannot be divided into rows.
    """
    kinds = {one.name: one.type for one in columns}
    match form:
        case SourceFormat.CSV:
            lines = csv_lines(path, content, list(kinds))
            fields = {name: csv_field(kind) for name, kind in kinds.items()}
        case SourceFormat.JSONL:
            lines = jsonl_lines(content, list(kinds))
            fields = {name: jsonl_field(kind) for name, kind in kinds.items()}
        case SourceFormat.PARQUET:
            fields = parquet_fields(content, kinds)
            lines = parquet_lines(path, content, fields)
        case _:
            raise AssertionError(form)
    return typed_rows(lines, columns, keys, fields=fields, unit=form.unit)
