"""Appends the batches of a topic to its bronze table, each once.

Before each commit Spark's writer reads the whole log's state, to see whether the batch was
committed: a second of CPU time, however small the batch. So delta-rs writes small batches, and
Spark's tasks write large ones, when catching up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from spark_jobs.bronze.table import arrived, arrived_here, length
from spark_jobs.names import BronzeColumn
from spark_jobs.sections import MaintenanceSettings
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.types import utc_now
from spark_jobs.storage import writer
from spark_jobs.storage.checkpoints import BatchOffsets, planned, query_id
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.policy import Limit, Place
from spark_jobs.storage.rows import Rows, place_of, to_arrow
from spark_jobs.storage.writer import Joining


@dataclass(frozen=True)
class Landing:
    """Appends a query's batches to a bronze table; it must be the only writer.

    Attributes:
        table: location of the table.
        checkpoint: of the query; has each batch's offsets and planning time.
        tasks: maximum number of tasks, and so files, of a large batch.
        few: the largest batch that is appended without Spark.
        maintenance: when small files are compacted.
    """

    table: str
    checkpoint: str
    tasks: int
    few: Limit
    maintenance: MaintenanceSettings

    def land(self, records: DataFrame, batch_id: int) -> None:
        """Append a batch, unless it was appended before.

        Args:
            records: as from ``table.received``.
            batch_id: number of the batch.

        Raises:
            TableMovedError: another writer committed at the same time.
        """
        batch = planned(self.checkpoint, batch_id)
        at = (batch and batch.at) or utc_now()
        # The app id of Spark's Delta sink, so that batches which it wrote are recognised too.
        txn = Txn(query_id(self.checkpoint) or self.checkpoint, batch_id)
        few = None
        if batch is not None and self.few.fits(rows=self._offsets(batch)):
            # Computed by the first job that reads it, so that Kafka is read only once.
            records = records.localCheckpoint(eager=False)
            few = self._few(records, at)
            # A batch may have only transaction markers, and no record.
            if few is not None and not few.num_rows:
                return
        rows = Rows(lambda: arrived(records, at).coalesce(self.tasks), few)
        day = (str(BronzeColumn.ARRIVAL_DATE), at.date().isoformat())
        writer.append(rows, self.table, txn=txn, joining=Joining(self.maintenance, day))
        failpoint("bronze.after_append")

    @cached_property
    def _length(self) -> Column:
        """Cached: building the column takes many calls into the JVM."""
        return length()

    def _offsets(self, batch: BatchOffsets) -> int:
        """Number of offsets in the batch: an upper limit of its records."""
        before = planned(self.checkpoint, batch.batch_id - 1)
        known = {} if before is None else before.offsets
        return sum(
            int(end) - int(known.get(topic, {}).get(partition, 0))
            for topic, partitions in batch.offsets.items()
            for partition, end in partitions.items()
        )

    def _few(self, records: DataFrame, at: datetime) -> pa.Table | None:
        """The rows as Arrow data if the batch is small in every respect."""
        if place_of(records, self._length, few=self.few) is Place.SPARK:
            return None
        return arrived_here(to_arrow(records), at)
