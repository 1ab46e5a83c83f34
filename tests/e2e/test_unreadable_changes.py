"""Changes that the connector skips: the others arrive, and somebody is told."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from spark_jobs.stack.connect import skipped_file
from spark_jobs.stack.skipped import answer, capture_problem, skipped, unanswered
from tests.e2e import oracle
from tests.e2e.corner_world import SECONDS, Corner
from tests.e2e.running import RunningStack
from tests.e2e.test_corner_cases import following

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]
MANY = 60_000
BACK = "CASE WHEN ratio = 'abc' THEN 2.5 ELSE ratio::double precision END"


def test_an_unreadable_change_does_not_block_others(
    capture: RunningStack, spark: SparkSession, tmp_path: Path
) -> None:
    """A column that was a text for a while, before the connector came to it."""
    corner = Corner(capture, spark, tmp_path / "project")
    settings = capture.settings
    try:
        corner.create()
        corner.insert(id=1, ratio=0.5)
        corner.capture()
        with following(corner):
            corner.wait_equal()
            before = len(skipped(settings))
            with corner.lagging():
                corner.execute("ALTER TABLE corner_default ALTER ratio TYPE TEXT")
                corner.execute("INSERT INTO corner_default (id, ratio) VALUES (2, 'abc')")
                type_back = f"ALTER ratio TYPE DOUBLE PRECISION USING {BACK}"
                corner.execute(f"ALTER TABLE corner_default {type_back}")
                corner.everywhere("INSERT INTO THE_TABLE (id, ratio) VALUES (3, 1)")

            def arrived() -> bool:
                return {row[0] for row in corner.silver("corner_default")} == {1, 3}

            oracle.wait_until(arrived, seconds=SECONDS, what="the changes after it")
            [change] = skipped(settings)[before:]
            assert (change.operation, unanswered(settings)[-1]) == ("INSERT", change)
            assert f"the last at {change.lsn}" in str(capture_problem(settings))

            # As the runbook has it.
            corner.execute("UPDATE corner_default SET ratio = ratio WHERE id = 2")
            corner.wait_equal()
            assert answer(settings, by="a test", reason="the row was written again") > 0
            assert capture_problem(settings) is None
    finally:
        corner.drop()


def test_a_task_that_is_stopped_in_a_transaction_skips_nothing(
    capture: RunningStack, spark: SparkSession, tmp_path: Path
) -> None:
    """Its queue is full, so that Debezium interrupts it, and logs this as an unreadable change."""
    corner = Corner(capture, spark, tmp_path / "project")
    settings = capture.settings
    noted = skipped_file(settings)
    topic = f"{corner.name}.public.corner_default"

    def sent() -> int:
        return sum(corner.topics.ends([topic])[topic].values())

    try:
        corner.create()
        corner.insert(id=1)
        corner.capture()
        before = len(skipped(settings))
        lines = len(noted.read_text().splitlines()) if noted.exists() else 0
        many = sent() + 1_000
        with corner.lagging():
            corner.execute(
                "INSERT INTO corner_default (id, body) "
                f"SELECT n, repeat('x', 1000) FROM generate_series(2, {MANY}) AS n"
            )
        oracle.wait_until(lambda: sent() > many, seconds=SECONDS, what="the first changes")
        pid = capture.part("connect").pid
        assert pid
        with capture.standing_still("kafka"):
            # Until what waits to be sent fills the producer's memory, and the queue behind it.
            time.sleep(5)
            os.kill(pid, signal.SIGTERM)
            psutil.wait_procs([psutil.Process(pid)], timeout=SECONDS)
        capture.wait_restarted("connect", pid)
        assert "InterruptedException" in noted.read_text().splitlines()[lines]
        assert len(skipped(settings)) == before
        with following(corner):
            corner.wait_equal()
    finally:
        corner.drop()
