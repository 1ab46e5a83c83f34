"""A batch with the disposition of each record, and the tables that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from spark_jobs.names import Disposition
from spark_jobs.silver.dispositions import DISPOSITION
from spark_jobs.silver.rows import BYTES
from spark_jobs.storage.keyed import can_look_up, rows_with_keys
from spark_jobs.storage.log import size
from spark_jobs.storage.tables import read

ROWS_PER_FILE = 100_000
# A batch up to these is held in this process, beside everything else that runs in it.
MOST_ROWS_HERE = 100_000
MOST_BYTES_HERE = 2**26


@dataclass(frozen=True)
class Outcome:
    """The records of a batch with their dispositions.

    Attributes:
        rows: kept in memory; rows without a disposition are no records of the batch.
        groups: how many records there are of each disposition and kind, in the column ``count``.
        few: whether the records fit into this process.
    """

    rows: DataFrame
    groups: Sequence[Row]
    few: bool = False

    @classmethod
    def of(cls, annotated: DataFrame, *kinds: Column | str, few: bool = False) -> Outcome:
        """Compute the rows and count them, by disposition and by what else matters."""
        rows = annotated.localCheckpoint(eager=False)
        groups = rows.groupBy(DISPOSITION, *kinds).count().collect()
        return cls(rows, [group for group in groups if group[DISPOSITION] is not None], few)

    @property
    def counts(self) -> dict[Disposition, int]:
        """Records of each disposition."""
        counts = dict.fromkeys(Disposition, 0)
        for group in self.groups:
            counts[Disposition(group[DISPOSITION])] += group["count"]
        return counts

    def having(self, *dispositions: Disposition) -> DataFrame:
        """The records with one of some dispositions."""
        rows = in_few_files(self.rows, sum(self.counts.values()))
        return rows.where(sf.col(DISPOSITION).isin(*map(str, dispositions)))


def fits_here(rows: DataFrame) -> bool:
    """Whether the rows of a batch fit into this process; takes a job, which computes them."""
    [(count, size_bytes)] = rows.agg(sf.count(sf.lit(1)), sf.sum(BYTES)).collect()
    return int(count) <= MOST_ROWS_HERE and int(size_bytes or 0) <= MOST_BYTES_HERE


def in_few_files(rows: DataFrame, count: int) -> DataFrame:
    """So many files as the rows are worth, not so many as the batch had tasks."""
    return rows.coalesce(1 + count // ROWS_PER_FILE)


@dataclass(frozen=True)
class HeldTables:
    """Reads tables unless they are empty: to join with nothing takes several jobs.

    Attributes:
        filled: the tables that were seen to hold rows.
    """

    filled: set[str] = field(default_factory=set)

    def read(self, spark: SparkSession, location: str) -> DataFrame | None:
        """A table as it is now, or None while it is empty."""
        return read(spark, location) if self._has_rows(location) else None

    def near(
        self, keys: DataFrame, locations: Sequence[str], schema: StructType
    ) -> list[DataFrame] | None:
        """The rows of tables that have some keys, and maybe others, read without Spark.

        Args:
            keys: of a batch that fits into this process.
            locations: of the tables.
            schema: what is read of each row, the same of all tables.

        Returns:
            nothing where no table has such a row; None where Spark must read the tables.
        """
        if not can_look_up(field.dataType.simpleString() for field in keys.schema.fields):
            return None
        filled = [location for location in locations if self._has_rows(location)]
        asked = keys.toArrow() if filled else None
        found: list[pa.Table] = []
        for location in filled:
            rows = None if asked is None else rows_with_keys(location, asked, schema.names)
            if rows is None:
                return None
            found.append(rows)
        if not any(rows.num_rows for rows in found):
            return []
        # In one piece: Spark takes an empty one between others for the end.
        rows = pa.concat_tables(found).combine_chunks()
        return [keys.sparkSession.createDataFrame(rows, schema)]

    def _has_rows(self, location: str) -> bool:
        if location not in self.filled and not size(location).files:
            return False
        self.filled.add(location)
        return True
