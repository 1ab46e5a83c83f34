"""A batch with the disposition of each record, and the tables that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, StringType, StructType

from spark_jobs.graph.type_agreement import keyed
from spark_jobs.names import Disposition
from spark_jobs.silver.apply.dispositions import DISPOSITION, KNOWN
from spark_jobs.storage.log import size
from spark_jobs.storage.lookup import rows_with_keys
from spark_jobs.storage.policy import Place
from spark_jobs.storage.reader import read_by_delta
from spark_jobs.storage.rows import Rows, from_arrow

ROWS_PER_FILE = 100_000


@dataclass(frozen=True)
class Outcome:
    """The records of a batch with their dispositions.

    Attributes:
        made: gives ``rows``.
        groups: how many records there are of each disposition and kind, in the column ``count``.
        place: where the records are handled.
        here: the records, where they were judged in this process.
    """

    made: Callable[[], DataFrame]
    groups: Sequence[Row]
    place: Place = Place.SPARK
    here: pa.Table | None = None

    @classmethod
    def of(cls, annotated: DataFrame, *kinds: Column | str, place: Place = Place.SPARK) -> Outcome:
        """Compute the rows and count them, by disposition and by what else matters."""
        rows = annotated.localCheckpoint(eager=False)
        groups = rows.groupBy(DISPOSITION, *kinds).count().collect()
        known = [group for group in groups if group[DISPOSITION] is not None]
        return cls(lambda: rows, known, place)

    @classmethod
    def of_here(
        cls, judged: pa.Table, batch: DataFrame, *kinds: str, told: Mapping[str, bool] | None = None
    ) -> Outcome:
        """What was judged in this process, counted by disposition and by what else matters.

        Args:
            judged: the batch's columns, ``DISPOSITION`` and ``KNOWN``.
            batch: the records as they were before.
            kinds: columns of ``judged``.
            told: what else each group says.
        """

        def schema() -> StructType:
            first = StructType(list(batch.schema.fields))
            return first.add(DISPOSITION, StringType()).add(KNOWN, BooleanType())

        counted = judged.group_by([DISPOSITION, *kinds]).aggregate([([], "count_all")])
        groups = [
            Row(**{**one, "count": one["count_all"], **(told or {})}) for one in counted.to_pylist()
        ]
        return cls(
            lambda: from_arrow(batch.sparkSession, judged, schema), groups, Place.LOCAL, here=judged
        )

    @cached_property
    def rows(self) -> DataFrame:
        """Kept in memory; rows without a disposition are no records of the batch."""
        return self.made()

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

    def applied(self, names: Sequence[str], flags: Mapping[str, bool] | None = None) -> Rows:
        """Columns of the records that are applied.

        Args:
            names: of the columns.
            flags: what columns without NULL must say.
        """
        wanted = (flags or {}).items()

        def frame() -> DataFrame:
            rows = self.having(Disposition.APPLIED)
            for name, value in wanted:
                rows = rows.where(sf.col(name) == value)
            return rows.select(*names)

        if self.here is None:
            return Rows(frame, place=self.place, counted=True)
        chosen = pc.equal(self.here.column(DISPOSITION), str(Disposition.APPLIED))
        for name, value in wanted:
            chosen = pc.and_(chosen, pc.equal(self.here.column(name), value))
        return Rows(frame, self.here.filter(chosen).select(list(names)))


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
        return read_by_delta(spark, location) if self.has_rows(location) else None

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
        if not keyed(field.dataType.simpleString() for field in keys.schema.fields):
            return None
        filled = [location for location in locations if self.has_rows(location)]
        found = self.near_here(keys.toArrow(), filled, schema.names) if filled else []
        if found is None:
            return None
        if not any(rows.num_rows for rows in found):
            return []
        # In one piece: Spark takes an empty one between others for the end.
        rows = pa.concat_tables(found).combine_chunks()
        return [keys.sparkSession.createDataFrame(rows, schema)]

    def near_here(
        self, keys: pa.Table, locations: Sequence[str], names: Sequence[str]
    ) -> list[pa.Table] | None:
        """The rows of tables that have some keys, and maybe others, by table.

        Args:
            keys: of types that can be looked up.
            locations: of the tables; nothing is told of empty ones.
            names: the columns that are read of each row.

        Returns:
            None where Spark must read the tables.
        """
        found = []
        for location in locations:
            if not self.has_rows(location):
                continue
            rows = rows_with_keys(location, keys, names)
            if rows is None:
                return None
            found.append(rows)
        return found

    def has_rows(self, location: str) -> bool:
        """Whether a table was seen to hold rows, or does so now."""
        if location not in self.filled and not size(location).files:
            return False
        self.filled.add(location)
        return True
