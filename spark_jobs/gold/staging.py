"""Stage: compute a view's result once, beside the published table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.errors import QueryFailedError
from spark_jobs.gold.pinned import first_lines, pinned_result
from spark_jobs.planning.vector import VersionVector
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import log, tables
from spark_jobs.storage.history import remove_table
from spark_jobs.storage.tables import Txn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class StagedResult:
    """A result that waits for its audit."""

    view: str
    attempt_id: str
    location: str
    rows: int
    bytes: int


def stage(context: GoldContext, attempt: RefreshAttempt) -> StagedResult:
    """Write the result of the pinned SQL to the attempt's own table; again: what is there stays.

    Raises:
        InputReplacedError: another table lies where the plan pinned one.
        QueryFailedError: Spark refuses or fails the query.
        UntypedColumnError: a column has no type.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415

    location = staged_at(context, attempt)
    if log.table_version(location) is None:
        frame = pinned_result(
            context,
            context.entry(attempt.view),
            vector=VersionVector.from_dict(attempt.vector or {}),
            clock=attempt.started_at,
        )
        failpoint("gold.stage.before_write")
        try:
            tables.overwrite(frame, location, txn=Txn("stage", 1))
        except PySparkException as error:
            raise QueryFailedError(attempt.view, first_lines(error)) from error
        failpoint("gold.stage.written")
    size = log.size(location)
    return StagedResult(attempt.view, attempt.attempt_id, location, size.rows or 0, size.bytes)


def staged_at(context: GoldContext, attempt: RefreshAttempt) -> str:
    """Where an attempt's result lies until it is published."""
    return context.lake.staging(attempt.view, attempt.attempt_id)


def staged_rows(context: GoldContext, attempt: RefreshAttempt) -> DataFrame:
    """An attempt's result."""
    return tables.read(context.spark, staged_at(context, attempt))


def discard(context: GoldContext, attempt: RefreshAttempt) -> None:
    """Remove an attempt's result."""
    remove_table(staged_at(context, attempt))
