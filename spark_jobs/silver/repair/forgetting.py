"""Forgetting: deletes a person's data from bronze, quarantine and silver.

Records keep their place and become empty, so that bronze still matches Kafka's offsets and the
counts. Then the silver tables are rebuilt from bronze, and gold follows like after any change. Old
files with the values are deleted by the usual retention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.names import BronzeColumn
from spark_jobs.planning.extent import Extent
from spark_jobs.silver.errors import ForgetColumnError, ForgetPendingError, ForgetValueError
from spark_jobs.silver.parse.documents import RAW_COLUMNS
from spark_jobs.silver.parse.typed import typed_records
from spark_jobs.silver.repair.comparison import Rebuilt
from spark_jobs.silver.repair.rebuild import Rebuilder
from spark_jobs.silver.repair.shadow import came_after
from spark_jobs.silver.store.releases import PLACE
from spark_jobs.storage.log import table_version
from spark_jobs.storage.reader import read
from spark_jobs.storage.writer import empty_values

EXAMPLES = 5
_PAYLOAD = (str(BronzeColumn.KEY), str(BronzeColumn.VALUE), str(BronzeColumn.HEADERS))


@dataclass(frozen=True)
class Forgotten:
    """The result of a request to forget.

    Attributes:
        records: records of bronze with the values; empty ones are not counted.
        among: all records of bronze.
        examples: the first of them before they were emptied: coordinates and columns.
        rebuilt: the result for each silver table; () for a dry run.
        copies: deleted views of environments that had the source's data.
    """

    source: str
    records: int
    among: int = 0
    examples: tuple[dict[str, Any], ...] = ()
    rebuilt: tuple[Rebuilt, ...] = ()
    copies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forgetting:
    """Forgets records of one source. No other process may write its bronze table meanwhile.

    Attributes:
        tables: rebuilds each silver table of the source.
        max_bytes: longer values are not parsed.
    """

    spark: SparkSession
    source: SourceEntry
    bronze: str
    tables: Sequence[Rebuilder]
    max_bytes: int

    def preview(self, named: Mapping[str, str]) -> Forgotten:
        """Count the records that contain these values; writes nothing.

        Args:
            named: values by column; a record must have all of them.

        Raises:
            ForgetColumnError: such a column does not identify records.
            ForgetValueError: such a value is not of the column's type.
        """
        return self._found(self._matching(named).localCheckpoint())

    def run(
        self, named: Mapping[str, str], *, by: str, reason: str, let_pass: bool = False
    ) -> Forgotten:
        """Empty the records, and rebuild the silver tables; safe to repeat after a kill.

        Args:
            named: values by column; a record must have all of them. They are not stored.
            by: the person who asks; stored with each commit.
            reason: why; stored with each commit.
            let_pass: allow it even if there are many records.

        Raises:
            DeletionTooLargeError: there are many records, and ``let_pass`` is not set.
            ForgetColumnError: such a column does not identify records.
            ForgetValueError: such a value is not of the column's type.
            ForgetPendingError: a silver table has not applied some records yet.
            UnsettledError: a batch of a table's stream was killed.
        """
        matching = self._matching(named).localCheckpoint()
        found = self._found(matching)
        Extent(str(self.source.table_name), found.records, found.among).check(let_pass=let_pass)
        places = _places(matching)
        for one in self.tables:
            self._check_settled(one)
        note = {"forget": {"by": by, "reason": reason}}
        for one in self.tables:
            parts = one.tables
            empty_values(places, parts.quarantine, (*_PAYLOAD, "detail"), by=PLACE, metadata=note)
            if table_version(parts.releases) is not None:
                mended = ("mended_value", "detail")
                empty_values(places, parts.releases, mended, by=PLACE, metadata=note)
            one.drop_tombstones(places, note)
        empty_values(places, self.bronze, _PAYLOAD, by=PLACE, metadata=note)
        rebuilt = tuple(one.run(by=by, reason=reason) for one in self.tables)
        return replace(found, rebuilt=rebuilt)

    def _found(self, matching: DataFrame) -> Forgotten:
        among = read(self.spark, self.bronze).count()
        shown = [sf.col(RAW_COLUMNS[name]).alias(name) for name in PLACE]
        rows = matching.select(*shown, *(column.name for column in self.source.columns))
        examples = tuple(row.asDict() for row in rows.orderBy(*PLACE).limit(EXAMPLES).collect())
        return Forgotten(self.source.name, _places(matching).count(), among, examples)

    def _matching(self, named: Mapping[str, str]) -> DataFrame:
        """The records that contain these values."""
        types = {column.name: column.type for column in self.source.columns}
        # An update contains the old and the new row: only key columns match both.
        changes = self.source.format is SourceFormat.DEBEZIUM
        telling = self.source.keys if changes else tuple(types)
        for name in named:
            if name not in telling:
                raise ForgetColumnError(self.source.name, name, telling)
        sought = {name: sf.lit(value).try_cast(types[name]) for name, value in named.items()}
        [read_as] = self.spark.range(1).select(*sought.values()).collect()
        for name, value in zip(sought, read_as, strict=True):
            if value is None:
                raise ForgetValueError(self.source.name, name, types[name].upper())
        typed = typed_records(read(self.spark, self.bronze), self.source, max_bytes=self.max_bytes)
        for name, wanted in sought.items():
            typed = typed.where(sf.col(name) == wanted)
        return typed

    def _check_settled(self, table: Rebuilder) -> None:
        with table.stream.between_batches() as version:
            later = came_after(self.spark, self.bronze, version)
            waiting = read(self.spark, self.bronze).where(later).count()
        if waiting:
            raise ForgetPendingError(table.live.entry.name, waiting)


def _places(records: DataFrame) -> DataFrame:
    return records.select(*(sf.col(RAW_COLUMNS[name]).alias(name) for name in PLACE)).distinct()
