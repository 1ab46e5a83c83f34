"""Landing the batches of one topic in its bronze table, each once.

Before each commit Spark's writer asks the state of the whole log whether the batch was committed: a
second of CPU, however few the records. So a batch of few records is moved here, by delta-rs; a
large one, as in catching up, is written by Spark's tasks.
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
from spark_jobs.storage import policy, writer
from spark_jobs.storage.checkpoints import BatchOffsets, planned, query_id
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.policy import Place
from spark_jobs.storage.rows import Rows, place_of, to_arrow
from spark_jobs.storage.writer import Joining


@dataclass(frozen=True)
class Landing:
    """Appends the batches of a query to a bronze table that nobody else writes meanwhile.

    Attributes:
        table: where the table lies.
        checkpoint: the query's; tells the batch's offsets and when it was planned.
        tasks: which write a large batch, at most; each makes a file.
        maintenance: when small files are joined.
    """

    table: str
    checkpoint: str
    tasks: int
    maintenance: MaintenanceSettings

    def land(self, records: DataFrame, batch_id: int) -> None:
        """Append a batch, unless it was appended before.

        Args:
            records: as ``table.received`` gives them.
            batch_id: the number of the batch.

        Raises:
            TableMovedError: somebody else wrote the table at the same moment.
        """
        batch = planned(self.checkpoint, batch_id)
        at = (batch and batch.at) or utc_now()
        # As Spark's own writer named its commits, so that a batch of its is known as well.
        txn = Txn(query_id(self.checkpoint) or self.checkpoint, batch_id)
        few = None
        if batch is not None and policy.BATCH.fits(rows=self._offsets(batch)):
            # Computed by the first job that reads it, so that Kafka is read once.
            records = records.localCheckpoint(eager=False)
            few = self._few(records, at)
            # A batch of nothing but the marks of transactions has no record.
            if few is not None and not few.num_rows:
                return
        rows = Rows(lambda: arrived(records, at).coalesce(self.tasks), few)
        day = (str(BronzeColumn.ARRIVAL_DATE), at.date().isoformat())
        writer.append(rows, self.table, txn=txn, joining=Joining(self.maintenance, day))
        failpoint("bronze.after_append")

    @cached_property
    def _length(self) -> Column:
        """Made once: it takes many calls into the JVM."""
        return length()

    def _offsets(self, batch: BatchOffsets) -> int:
        """How many offsets the batch spans: no fewer than it has records."""
        before = planned(self.checkpoint, batch.batch_id - 1)
        known = {} if before is None else before.offsets
        return sum(
            int(end) - int(known.get(topic, {}).get(partition, 0))
            for topic, partitions in batch.offsets.items()
            for partition, end in partitions.items()
        )

    def _few(self, records: DataFrame, at: datetime) -> pa.Table | None:
        """The rows, where the records are few in all respects."""
        if place_of(records, self._length) is Place.SPARK:
            return None
        return arrived_here(to_arrow(records), at)
