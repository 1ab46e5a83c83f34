"""A timetable of aligned intervals whose runs start with a delay, and of backfills by day.

A cron expression with an offset would move the intervals too, and with them the ticks that views
share and the ranges of a backfill. The plugin beside this module makes the class known to Airflow.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import UTC, DateTime

# Airflow treats runs with the same logical date as one run, and the first interval of the day has
# that of its start.
_APART = timedelta(microseconds=1)


class BackfillDay(DagRunInfo):
    """A backfill's run for one day (UTC)."""

    @property
    def logical_date(self) -> DateTime | None:
        """Just after the start of the day."""
        return None if self.data_interval is None else self.data_interval.start + _APART


class StaggeredTimetable(CronDataIntervalTimetable):
    """Intervals of a cron expression; a run starts ``delay`` after the end of its interval.

    With ``backfill_days`` a backfill has one run for each day (UTC) that its range touches and
    that has ended, however many intervals a day has: rows are recomputed once.
    """

    def __init__(
        self,
        cron: str,
        *,
        time_zone: str = "UTC",
        delay: timedelta = timedelta(),
        backfill_days: bool = False,
    ) -> None:
        super().__init__(cron, time_zone)
        self._time_zone = time_zone
        self._delay = delay
        self._backfill_days = backfill_days

    def next_dagrun_info(
        self,
        *,
        last_automated_data_interval: DataInterval | None,
        restriction: TimeRestriction,
    ) -> DagRunInfo | None:
        """The next interval, which the delay does not change, and the start of its run."""
        # Only a backfill asks with catch-up and an end: schedules of views have neither.
        if self._backfill_days and restriction.catchup and restriction.latest is not None:
            return _next_day(last_automated_data_interval, restriction)
        info = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )
        if info is None or info.data_interval is None:
            return info
        return DagRunInfo(run_after=info.run_after + self._delay, data_interval=info.data_interval)

    def serialize(self) -> dict[str, Any]:
        return {
            "expression": self._expression,
            "time_zone": self._time_zone,
            "delay_seconds": self._delay.total_seconds(),
            "backfill_days": self._backfill_days,
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> StaggeredTimetable:
        # Airflow's database may contain what an older release wrote.
        return cls(
            data["expression"],
            time_zone=data.get("time_zone", "UTC"),
            delay=timedelta(seconds=data["delay_seconds"]),
            backfill_days=data.get("backfill_days", False),
        )


def _next_day(last: DataInterval | None, restriction: TimeRestriction) -> DagRunInfo | None:
    """The next day of a backfill's range; Airflow drops a day that has not ended."""
    if restriction.earliest is None or restriction.latest is None:
        return None
    start = restriction.earliest.in_timezone(UTC).start_of("day") if last is None else last.end
    return None if start > restriction.latest else BackfillDay.interval(start, start.add(days=1))
