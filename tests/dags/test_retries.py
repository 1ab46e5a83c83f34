"""Which failures are tried again: what is down or busy, never what is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk import RetryAction

from spark_jobs.definitions.schedules import DAY
from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.errors import QueryFailedError, ViewUnknownError
from spark_jobs.orchestration.documentation import duration
from spark_jobs.orchestration.errors import PeriodUnsupportedError
from spark_jobs.orchestration.retries import RetryTransient
from spark_jobs.state.errors import (
    ControlUnreachableError,
    LeaseLostError,
    LeaseTakenError,
    TableLockedError,
)
from spark_jobs.storage.errors import JarsMissingError, SparkUnreachableError

BUSY = [
    ControlUnreachableError("postgresql://db", "refused"),
    LeaseTakenError("gold.v", holder="a", expires_at=datetime(2026, 1, 1, tzinfo=UTC)),
    LeaseLostError("gold.v", owner="a", fencing=1),
    TableLockedError("gold.v", Path("/lock"), "1"),
    SparkUnreachableError("sc://127.0.0.1:1", "refused", seconds=5),
]
WRONG = [
    ViewUnknownError("v", []),
    QueryFailedError("v", "DIVIDE_BY_ZERO"),
    JarsMissingError("/jars"),
    PeriodUnsupportedError("v", 2 * DAY),
]


def decide(error: BaseException) -> RetryAction:
    return RetryTransient().evaluate(error, 1, 3).action


@pytest.mark.parametrize("error", BUSY, ids=lambda error: error.condition)
def test_unavailable_or_locked_resources_are_retried(error: LakehouseError) -> None:
    assert decide(error) is RetryAction.RETRY


def test_pauses_grow_until_a_server_on_a_busy_machine_is_back() -> None:
    pauses = [RetryTransient().evaluate(BUSY[0], number, 2).retry_delay for number in (1, 2)]
    assert pauses == [timedelta(seconds=15), timedelta(seconds=60)]


@pytest.mark.parametrize("error", WRONG, ids=lambda error: error.condition)
def test_permanent_errors_fail_without_retries(error: LakehouseError) -> None:
    assert decide(error) is RetryAction.FAIL


@pytest.mark.parametrize("error", [ConnectionError(), TimeoutError(), RuntimeError(), OSError()])
def test_unknown_errors_use_the_default_retries(error: BaseException) -> None:
    assert decide(error) is RetryAction.DEFAULT


def test_a_query_that_failed_because_the_server_went_away_is_tried_again() -> None:
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    error = QueryFailedError("v", "connection reset")
    error.__cause__ = SparkConnectGrpcException("failed to connect to all addresses")
    assert decide(error) is RetryAction.RETRY


def test_a_query_that_the_server_refused_fails_at_once() -> None:
    from pyspark.errors.exceptions.connect import AnalysisException

    error = QueryFailedError("v", "no such column")
    error.__cause__ = AnalysisException("no such column")
    assert decide(error) is RetryAction.FAIL


@pytest.mark.parametrize(
    ("seconds", "words"), [(1, "1 second"), (60, "1 minute"), (7200, "2 hours"), (DAY, "1 day")]
)
def test_periods_in_words(seconds: int, words: str) -> None:
    assert duration(seconds) == words
