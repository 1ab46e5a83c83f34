"""Output formats of queries; a separate module, so that ``--help`` imports little."""

from __future__ import annotations

from enum import StrEnum


class OutputFormat(StrEnum):
    """The format of rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
