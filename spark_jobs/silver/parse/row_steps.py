"""From bronze records to a silver table's rows: the steps are built once for equal arguments.

Building the columns of one table takes thousands of calls into the JVM, and they do not depend on
the session. All who create and check a table share the steps that give its types. All who apply its
batches share those with the limits of the settings, which are the same ones by default.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from spark_jobs.access.secrets import DEBEZIUM_PLACEHOLDER
from spark_jobs.graph.manifest import Column as Declared
from spark_jobs.graph.manifest import SilverEntry, SourceEntry
from spark_jobs.graph.projection import split_projection
from spark_jobs.names import HistoryColumn
from spark_jobs.sections import StreamSettings
from spark_jobs.silver.parse.prepared import prepared
from spark_jobs.silver.parse.rows import BRONZE_SCHEMA, silver_rows
from spark_jobs.silver.parse.typed import typed_records

# Tables of one process, in several versions.
_KEPT = 512
_USUAL_LIMIT = StreamSettings().max_record_bytes


@dataclass(frozen=True)
class _Declarations:
    """A table and its source; equal if they are declared alike.

    Attributes:
        text: both as JSON; a suite cannot be hashed.
        remote: whether columns are built for Spark Connect.
    """

    text: tuple[str, str]
    remote: bool
    source: SourceEntry = field(compare=False)
    entry: SilverEntry = field(compare=False)

    @classmethod
    def of(cls, source: SourceEntry, entry: SilverEntry) -> _Declarations:
        text = source.model_dump_json(), entry.model_dump_json()
        return cls(text, is_remote(), source, entry)


class RowSteps:
    """The transformation from bronze records to what ``silver_rows`` returns."""

    def __init__(
        self, source: SourceEntry, entry: SilverEntry, *, max_bytes: int, placeholder: str
    ) -> None:
        def transform(bronze: DataFrame) -> DataFrame:
            typed = typed_records(bronze, source, max_bytes=max_bytes, placeholder=placeholder)
            return silver_rows(typed, source, entry, projection=split_projection(entry.projection))

        self._entry = entry
        self._applied = prepared(transform)
        self._columns: tuple[Declared, ...] | None = None

    def __call__(self, bronze: DataFrame) -> DataFrame:
        """The rows of bronze records."""
        return self._applied(bronze)

    def columns(self, spark: SparkSession) -> tuple[Declared, ...]:
        """The table's columns with the types that Spark derives from the SELECT."""
        if self._columns is None:
            rows = self(spark.createDataFrame([], BRONZE_SCHEMA))
            types = {one.name: one.dataType.simpleString() for one in rows.schema.fields}
            types.setdefault(HistoryColumn.VALID_TO, "timestamp")
            self._columns = tuple(
                one.model_copy(update={"type": types[one.name]}) for one in self._entry.columns
            )
        return self._columns


def row_steps(
    source: SourceEntry,
    entry: SilverEntry,
    *,
    max_bytes: int,
    placeholder: str = DEBEZIUM_PLACEHOLDER,
) -> RowSteps:
    """The steps of a table; the same object for equal arguments.

    Args:
        source: the source's declaration.
        entry: the silver table's declaration.
        max_bytes: longer values are not parsed.
        placeholder: Debezium's placeholder for a value that the database did not send.
    """
    return _built(_Declarations.of(source, entry), max_bytes, placeholder)


@lru_cache(maxsize=_KEPT)
def _built(declared: _Declarations, max_bytes: int, placeholder: str) -> RowSteps:
    return RowSteps(declared.source, declared.entry, max_bytes=max_bytes, placeholder=placeholder)


def projected_columns(
    spark: SparkSession, source: SourceEntry, entry: SilverEntry
) -> tuple[Declared, ...]:
    """The silver table's columns with the types that Spark derives from the SELECT."""
    # Types do not depend on the limit.
    return row_steps(source, entry, max_bytes=_USUAL_LIMIT).columns(spark)
