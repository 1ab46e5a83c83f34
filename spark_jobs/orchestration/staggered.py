"""Aligned intervals whose runs start a while after their end, so that views do not start at once.

A cron expression with an offset would move the intervals too, and with them the ticks that views
share and the ranges of a backfill. The plugin beside this module makes the class known to Airflow.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable


class StaggeredTimetable(CronDataIntervalTimetable):
    """Intervals of a cron expression in UTC; runs start ``delay`` after the end of theirs."""

    def __init__(self, cron: str, *, delay: timedelta) -> None:
        super().__init__(cron, "UTC")
        self._delay = delay

    def next_dagrun_info(
        self,
        *,
        last_automated_data_interval: DataInterval | None,
        restriction: TimeRestriction,
    ) -> DagRunInfo | None:
        """The next interval, as without a delay, and when its run starts."""
        info = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )
        if info is None or info.data_interval is None:
            return info
        return DagRunInfo(run_after=info.run_after + self._delay, data_interval=info.data_interval)

    def serialize(self) -> dict[str, Any]:
        return {"expression": self._expression, "delay_seconds": self._delay.total_seconds()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> StaggeredTimetable:
        return cls(data["expression"], delay=timedelta(seconds=data["delay_seconds"]))
