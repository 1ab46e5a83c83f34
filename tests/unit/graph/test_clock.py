"""Every function that reads the clock is fixed; nothing else changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from spark_jobs.graph.clock import freeze_clock

NOON = datetime(2026, 1, 2, 12, 0, 0, 7, tzinfo=UTC)
TIMESTAMP = "TIMESTAMP '2026-01-02 12:00:00.000007+00:00'"


@pytest.mark.parametrize(
    ("written", "frozen"),
    [
        ("current_timestamp()", TIMESTAMP),
        ("CURRENT_TIMESTAMP", TIMESTAMP),
        ("now( )", TIMESTAMP),
        ("localtimestamp()", "TIMESTAMP_NTZ '2026-01-02 12:00:00.000007'"),
        ("LOCALTIMESTAMP", "TIMESTAMP_NTZ '2026-01-02 12:00:00.000007'"),
        ("curdate()", "DATE '2026-01-02'"),
        ("date_sub(current_date, 7)", "date_sub(DATE '2026-01-02', 7)"),
        ("unix_timestamp()", f"UNIX_TIMESTAMP({TIMESTAMP})"),
        ("unix_timestamp(t.at)", "unix_timestamp(t.at)"),
        ("t.current_date", "t.current_date"),
        ("`current_date`", "`current_date`"),
        ("'now()'", "'now()'"),
        ("now", "now"),
        ("1 /* now() */", "1            "),
    ],
)
def test_readings_of_the_clock(written: str, frozen: str) -> None:
    query = "SELECT {} AS current_date\nFROM t AS now"
    assert freeze_clock(query.format(written), NOON) == query.format(frozen)


def test_the_instant_is_given_in_utc() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=-13)))
    assert freeze_clock("SELECT current_date", elsewhere) == "SELECT DATE '2026-01-02'"
