"""Runs a case of a silver table: the code of its stream applies batches to a separate lake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_jobs.errors import LakehouseError
from spark_jobs.gold.compute.protocol import SPARK
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Disposition
from spark_jobs.settings import Settings
from spark_jobs.silver.apply.dispositions import DISPOSITION
from spark_jobs.silver.apply.outcome import Outcome
from spark_jobs.silver.errors import BatchHeldError, SchemaDriftError
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.silver.parse.rows import BRONZE_SCHEMA, COORDINATES
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.reader import read_columns
from spark_jobs.testing.ended import Ended, Session
from spark_jobs.testing.errors import CaseBatchError
from spark_jobs.testing.multisets import difference
from spark_jobs.testing.silver_case_files import SilverCase, SilverStep, case_name
from spark_jobs.testing.silver_results import (
    RecordDifference,
    RecordEnd,
    SilverCaseResult,
    SilverStepResult,
)
from spark_jobs.testing.stopped_clock import StoppedClock
from spark_jobs.testing.text_tables import typed_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION = 0
EPOCH = 1


@dataclass
class SilverCaseRun:
    """A case whose table is in its own lake.

    Attributes:
        offset: of the next record.
    """

    case: SilverCase
    flow: SilverFlow
    spark: SparkSession
    clock: StoppedClock
    offset: int = 0
    dispositions: dict[int, Disposition] = field(default_factory=dict)

    def run(self) -> SilverCaseResult:
        """Run the steps.

        Raises:
            CaseBatchError: Spark cannot apply a batch.
            CaseTableError: rows of the case do not fit the table.
            LakehouseError: the table cannot be created or written.
        """
        apply = self.flow.batches(EPOCH, listener=self.hear)
        results: list[SilverStepResult] = []
        for at, step in enumerate(self.case.steps):
            self.clock.now = step.clock
            self.dispositions.clear()
            first = self.offset
            refusal: LakehouseError | None = None
            try:
                apply(self.batch(step), at)
            except (BatchHeldError, SchemaDriftError) as error:
                refusal = error
                self.dispositions.clear()
            except (PySparkException, Py4JJavaError) as error:
                file = self.flow.entry.file
                raise CaseBatchError(step.step, str(error), file, location=step.location) from error
            results.append(self.compared(step, first, refusal))
            if not results[-1].passed:
                break
        return SilverCaseResult(self.case, tuple(results))

    def batch(self, step: SilverStep) -> DataFrame:
        """The records of a step, with bronze's columns."""
        topic, at = self.flow.source.topic, step.clock
        rows: list[tuple[Any, ...]] = []
        for one in step.records:
            rows.append((one.sent.key, one.sent.value, [], topic, PARTITION, self.offset, at, at))
            self.offset += 1
        return self.spark.createDataFrame(rows, BRONZE_SCHEMA).coalesce(1)

    def hear(self, outcome: Outcome) -> None:
        """Store the dispositions of a batch."""
        names = (COORDINATES[1], DISPOSITION)
        if outcome.here is not None:
            columns = [outcome.here.column(name).to_pylist() for name in names]
        else:
            rows = outcome.rows.select(*names).collect()
            columns = [[row[name] for row in rows] for name in names]
        for offset, disposition in zip(*columns, strict=True):
            # The rows of an SCD type 2 table include earlier changes, which have none.
            if disposition is not None:
                self.dispositions[offset] = Disposition(disposition)

    def compared(
        self, step: SilverStep, first: int, refusal: LakehouseError | None
    ) -> SilverStepResult:
        """Compare the table, its quarantine and the dispositions after a step with the case."""
        rejected = {
            row["offset"]: (row["reason"], row["detail"])
            for row in read_columns(
                self.flow.tables.quarantine, ["offset", "reason", "detail"]
            ).to_pylist()
        }
        records = []
        for offset, record in enumerate(step.records, first):
            end = RecordEnd(self.dispositions.get(offset), *rejected.get(offset, (None, None)))
            if not end.meets(record):
                records.append(RecordDifference.of(record, end))
        actual = read_columns(self.flow.tables.table, step.then.columns)
        missing, unexpected = difference(typed_rows(step.then, actual.schema), actual)
        told = _about_refusal(step, refusal)
        return SilverStepResult(step.step, missing, unexpected, tuple(records), told)


def _about_refusal(step: SilverStep, refusal: LakehouseError | None) -> str | None:
    """What differs from the expected refusal; None if nothing does."""
    if refusal is None:
        return None if step.refused is None else f"the batch is applied, not {step.refused}"
    return None if step.refused == refusal.condition else refusal.render()


@contextmanager
def prepared_silver(
    case: SilverCase, *, manifest: Manifest, settings: Settings, spark: SparkSession
) -> Iterator[SilverCaseRun]:
    """A case whose table exists and is empty.

    Args:
        case: the case.
        manifest: the compiled project.
        settings: of an empty state directory, for the lake and the control database.
        spark: a classic session, as the streams have one.
    """
    entry = manifest.silver[case.table]
    clock = StoppedClock(case.steps[0].clock)
    Path(settings.state).mkdir(parents=True, exist_ok=True)
    with ControlStore.open(settings.control_url) as store:
        source = manifest.sources[entry.source]
        flow = SilverFlow(source, entry, settings, store, now=lambda: clock.now)
        flow.create_tables(spark)
        yield SilverCaseRun(case, flow, spark, clock)


def run_silver_case(
    case: SilverCase, *, manifest: Manifest, settings: Settings, session: Session
) -> Ended:
    """Run a case in its own lake.

    Args:
        case: the case.
        manifest: the compiled project.
        settings: with a temporary state directory; the lake is below it.
        session: opens a Spark session.
    """
    name = case_name(case.name)
    own = settings.moved_to(settings.state / name)
    result, stopped = None, None
    try:
        with prepared_silver(case, manifest=manifest, settings=own, spark=session()) as run:
            result = run.run()
    except LakehouseError as error:
        stopped = error
    return Ended(name=name, result=result, error=stopped, engine=SPARK)
