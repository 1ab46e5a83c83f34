"""The limit of a statement: the time of all its jobs, however many they are."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.serving.sql import thrift
from spark_jobs.serving.sql.thrift import JobLimit


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Spark:
    """Jobs that the test lets run, and what was stopped."""

    def __init__(self) -> None:
        self.jobs: dict[str, int] = {}
        self.stopped: list[str | int] = []
        context = SimpleNamespace(
            cancelJob=lambda job, _: self.stopped.append(job),
            cancelJobGroupAndFutureJobs=lambda group, _: self.stopped.append(group),
        )
        self.sparkContext = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found.monotonic)
    monkeypatch.setattr(thrift, "_running_jobs", lambda spark: dict(spark.jobs))
    return found


def looks(limit: JobLimit, clock: Clock, jobs: list[dict[str, int]], spark: Any) -> None:
    """A look each second; each sees these jobs."""
    for running in jobs:
        clock.now += 1
        spark.jobs = running
        limit.enforce()


def test_the_jobs_of_a_statement_count_together(clock: Clock) -> None:
    spark = Spark()
    limit = JobLimit(spark, 6, looked_at=0.0)  # type: ignore[arg-type]
    looks(limit, clock, [{"a": job, "b": 1} for job in range(6)], spark)
    assert spark.stopped == []
    looks(limit, clock, [{"a": 7}], spark)
    assert spark.stopped == ["a"]
    # As long as its jobs come, they are stopped.
    looks(limit, clock, [{"b": 1, "a": 8}], spark)
    assert sorted(map(str, spark.stopped)) == ["a", "a", "b"]


def test_a_pause_between_jobs_does_not_count(clock: Clock) -> None:
    spark = Spark()
    limit = JobLimit(spark, 6, looked_at=0.0)  # type: ignore[arg-type]
    looks(limit, clock, [{"a": job} if job % 2 else {} for job in range(12)], spark)
    assert spark.stopped == []
    looks(limit, clock, [{"a": 13}], spark)
    assert spark.stopped == ["a"]


def test_statements_that_ended_are_forgotten(clock: Clock) -> None:
    spark = Spark()
    limit = JobLimit(spark, 6, looked_at=0.0)  # type: ignore[arg-type]
    looks(limit, clock, [{f"s{number}": number} for number in range(100)], spark)
    assert len(limit.used) < 10
    assert limit.used.keys() == limit.seen.keys()


def test_a_job_of_no_statement_is_stopped_alone(clock: Clock) -> None:
    spark = Spark()
    limit = JobLimit(spark, 6, looked_at=0.0)  # type: ignore[arg-type]
    looks(limit, clock, [{"job 3": 3}] * 7, spark)
    assert spark.stopped == [3]
