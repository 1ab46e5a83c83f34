"""A batch with the disposition of each record, and the tables that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.names import Disposition
from spark_jobs.silver.dispositions import DISPOSITION
from spark_jobs.storage.log import size
from spark_jobs.storage.tables import read

ROWS_PER_FILE = 100_000


@dataclass(frozen=True)
class Outcome:
    """The records of a batch with their dispositions.

    Attributes:
        rows: kept in memory; rows without a disposition are no records of the batch.
        groups: how many records there are of each disposition and kind, in the column ``count``.
    """

    rows: DataFrame
    groups: Sequence[Row]

    @classmethod
    def of(cls, annotated: DataFrame, *kinds: Column | str) -> Outcome:
        """Compute the rows and count them, by disposition and by what else matters."""
        rows = annotated.localCheckpoint(eager=False)
        groups = rows.groupBy(DISPOSITION, *kinds).count().collect()
        return cls(rows, [group for group in groups if group[DISPOSITION] is not None])

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
        if location not in self.filled and not size(location).files:
            return None
        self.filled.add(location)
        return read(spark, location)
