"""Which failures are retried: only transient ones."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryDecision, RetryPolicy

from spark_jobs.errors import LakehouseError
from spark_jobs.orchestration.blueprint import RETRY_DELAY_SECONDS

if TYPE_CHECKING:
    from airflow.sdk import Context


# A busy table is usually free after the first pause; a killed Spark server on a busy machine is
# usually ready after the second.
PAUSE_FACTOR = 4


class RetryTransient(RetryPolicy):
    """Fail immediately on conditions of the data or the project; retry all others."""

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Context | None = None,
    ) -> RetryDecision:
        del max_tries, context
        if not isinstance(exception, LakehouseError):
            return RetryDecision.default()
        if transient(exception):
            pause = timedelta(seconds=RETRY_DELAY_SECONDS * PAUSE_FACTOR ** (try_number - 1))
            return RetryDecision.retry(delay=pause, reason=f"{exception.condition} may pass")
        return RetryDecision.fail(reason=f"{exception.condition} is not retried")

    def serialize(self) -> dict[str, Any]:
        return {"__type": type(self).__name__}


def transient(error: LakehouseError) -> bool:
    """Whether the condition means that something is down or busy."""
    from spark_jobs.state.errors import (
        ControlUnreachableError,
        LeaseLostError,
        LeaseTakenError,
        TableLockedError,
    )
    from spark_jobs.storage.errors import SparkUnreachableError, TableMovedError

    passing = (
        ControlUnreachableError,
        LeaseLostError,
        LeaseTakenError,
        SparkUnreachableError,
        TableLockedError,
        TableMovedError,
    )
    return isinstance(error, passing) or _transport_failed(error)


def _transport_failed(error: BaseException) -> bool:
    """Whether a query failed in the connection to the Connect server, not on the server.

    The client raises the base class for a broken connection or a session that a restarted server
    does not know, and subclasses for errors of the query.
    """
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    cause = error.__cause__
    while cause is not None:
        if type(cause) is SparkConnectGrpcException or isinstance(cause, ConnectionError):
            return True
        cause = cause.__cause__
    return False
