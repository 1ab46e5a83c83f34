"""A batch with the disposition of each record, and readers of the tables to compare with."""

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
from spark_jobs.storage.reader import read
from spark_jobs.storage.rows import Rows, from_arrow

ROWS_PER_FILE = 100_000


@dataclass(frozen=True)
class Outcome:
    """The records of a batch with their dispositions.

    Attributes:
        made: returns ``rows``.
        groups: row counts by disposition and kind, in the column ``count``.
        place: where the records are processed.
        here: the records as Arrow data, if they were judged in this process.
    """

    made: Callable[[], DataFrame]
    groups: Sequence[Row]
    place: Place = Place.SPARK
    here: pa.Table | None = None

    @classmethod
    def of(cls, annotated: DataFrame, *kinds: Column | str, place: Place = Place.SPARK) -> Outcome:
        """Compute the rows, and count them by disposition and the given kinds.

        Args:
            annotated: the batch with ``DISPOSITION``; NULL if a row is not a record of the batch.
            kinds: columns to count by.
            place: where the rows are handled.
        """
        rows = annotated.localCheckpoint(eager=False)
        groups = rows.groupBy(DISPOSITION, *kinds).count().collect()
        known = [group for group in groups if group[DISPOSITION] is not None]
        return cls(lambda: rows, known, place)

    @classmethod
    def of_here(
        cls,
        judged: pa.Table,
        batch: DataFrame,
        *kinds: str,
        constants: Mapping[str, bool] | None = None,
    ) -> Outcome:
        """The outcome of a batch judged in this process, counted by disposition and kinds.

        Args:
            judged: the batch's columns, ``DISPOSITION`` and ``KNOWN``.
            batch: the records before judging.
            kinds: columns of ``judged`` to count by.
            constants: constant values to add to each group.
        """

        def schema() -> StructType:
            first = StructType(list(batch.schema.fields))
            return first.add(DISPOSITION, StringType()).add(KNOWN, BooleanType())

        counted = judged.group_by([DISPOSITION, *kinds]).aggregate([([], "count_all")])
        groups = [
            Row(**{**one, "count": one["count_all"], **(constants or {})})
            for one in counted.to_pylist()
        ]
        return cls(
            lambda: from_arrow(batch.sparkSession, judged, schema), groups, Place.LOCAL, here=judged
        )

    @cached_property
    def rows(self) -> DataFrame:
        """The persisted rows; those with a NULL ``DISPOSITION`` are not records of the batch."""
        return self.made()

    @property
    def counts(self) -> dict[Disposition, int]:
        """The number of records by disposition; 0 if there are none."""
        counts = dict.fromkeys(Disposition, 0)
        for group in self.groups:
            counts[Disposition(group[DISPOSITION])] += group["count"]
        return counts

    def having(self, *dispositions: Disposition) -> DataFrame:
        """The records with one of these dispositions, with all columns of the outcome's rows."""
        rows = in_few_files(self.rows, sum(self.counts.values()))
        return rows.where(sf.col(DISPOSITION).isin(*map(str, dispositions)))

    def applied(self, names: Sequence[str], flags: Mapping[str, bool] | None = None) -> Rows:
        """Some columns of the applied records.

        Args:
            names: column names.
            flags: required values of Boolean columns without NULL.
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
    """Repartition by the number of rows, not by the batch's tasks."""
    return rows.coalesce(1 + count // ROWS_PER_FILE)


@dataclass(frozen=True)
class HeldTables:
    """Reads tables unless they are empty: a join with an empty table takes several jobs.

    Attributes:
        filled: locations of tables that are known to have rows.
    """

    filled: set[str] = field(default_factory=set)

    def read(self, spark: SparkSession, location: str) -> DataFrame | None:
        """A table at its newest version; None while it is empty."""
        return read(spark, location) if self.has_rows(location) else None

    def near(
        self, keys: DataFrame, locations: Sequence[str], schema: StructType
    ) -> list[DataFrame] | None:
        """Rows of some tables that have the keys, possibly others, read without Spark.

        Args:
            keys: keys of a small batch, a column per key column.
            locations: of the tables.
            schema: columns to read, the same for all tables.

        Returns:
            one DataFrame with these columns, or an empty list if no table has such rows; None if
                Spark must read the tables.
        """
        if not keyed(field.dataType.simpleString() for field in keys.schema.fields):
            return None
        filled = [location for location in locations if self.has_rows(location)]
        found = self.near_here(keys.toArrow(), filled, schema.names) if filled else []
        if found is None:
            return None
        if not any(rows.num_rows for rows in found):
            return []
        # In one chunk: Spark treats an empty chunk as the end of the data.
        rows = pa.concat_tables(found).combine_chunks()
        return [keys.sparkSession.createDataFrame(rows, schema)]

    def near_here(
        self, keys: pa.Table, locations: Sequence[str], names: Sequence[str]
    ) -> list[pa.Table] | None:
        """Rows of some tables that have the keys, possibly others, by table.

        Args:
            keys: a column per key column, of types that support lookups.
            locations: of the tables; empty tables have no entry in the result.
            names: columns to read.

        Returns:
            None if Spark must read the tables.
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
        """Whether a table has, or had, any row."""
        if location not in self.filled and not size(location).files:
            return False
        self.filled.add(location)
        return True
