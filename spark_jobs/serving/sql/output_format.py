"""The forms in which a query's rows are written; apart, so that ``--help`` imports no more."""

from __future__ import annotations

from enum import StrEnum


class OutputFormat(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
