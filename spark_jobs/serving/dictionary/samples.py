"""Reads a few rows of a published view from its files, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NoReturn

from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.personal import personal_columns
from spark_jobs.graph.sql import MASK
from spark_jobs.serving.dictionary import markup
from spark_jobs.storage import log, reader

if TYPE_CHECKING:
    from spark_jobs.storage.lake import Lake

ROWS: Final = 5
# Maximum length of a value on a page.
LENGTH: Final = 60


@dataclass(frozen=True)
class Sample:
    """Some rows as markup.

    Attributes:
        words: which rows they are.
        table: the rows.
    """

    words: str
    table: str


class _NeedsSparkError(Exception):
    """The table is not plain, so only Spark can read it."""


def sample(lake: Lake, entry: GoldEntry) -> Sample | None:
    """The first rows of the newest version; None without a table, or if only Spark can read it.

    Raises:
        LogUnreadableError: the table's log cannot be read.
    """
    location = lake.location(entry.table_name)
    at = log.table_version(location)
    if at is None:
        return None
    names = [column.name for column in log.schema(location, at.version)]
    batches = reader.table_rows(location, at.version, names, spark=_no_spark)
    try:
        found = list(islice((row for batch in batches for row in batch.to_pylist()), ROWS))
    except _NeedsSparkError:
        return None
    if not found:
        return None
    hidden = personal_columns(entry)
    cells = [
        [MASK if name.lower() in hidden else _text(row[name]) for name in names] for row in found
    ]
    words = f"The first {len(found)} of version {at.version}, in no order."
    return Sample(words, markup.table([markup.code(name) for name in names], cells))


def _no_spark() -> NoReturn:
    raise _NeedsSparkError


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    text = str(value)
    return markup.words(text if len(text) <= LENGTH else text[: LENGTH - 1] + "…")
