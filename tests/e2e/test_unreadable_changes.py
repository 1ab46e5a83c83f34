"""A change that the connector cannot read: the others arrive, and somebody is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.stack.skipped import answer, capture_problem, skipped, unanswered
from tests.e2e import oracle
from tests.e2e.corner_world import SECONDS, Corner
from tests.e2e.running import RunningStack
from tests.e2e.test_corner_cases import following

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]
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
