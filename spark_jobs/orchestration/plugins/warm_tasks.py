"""An Airflow plugin: the timetable of views, and imports that tasks inherit.

LocalExecutor's workers are forks of the scheduler, and each task is a fork of a worker. What the
scheduler imports before the first fork is already loaded in a task; otherwise each audit would
spend seconds on importing Great Expectations. No connection, thread or session is opened here.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

from spark_jobs.orchestration.staggered import StaggeredTimetable

log = logging.getLogger(__name__)


class WarmTasks:
    """The listener, which Airflow calls when one of its components starts."""

    @hookimpl
    def on_starting(self, component: Any) -> None:
        # Only the command line shows which component starts. Tasks are components too, and have the
        # scheduler's command line, because they are its forks.
        if type(component).__name__ == "Job" and sys.argv[1:2] == ["scheduler"]:
            preload()


class TidemarkPlugin(AirflowPlugin):
    """Airflow finds plugins by their base class."""

    name = "tidemark"
    listeners = [WarmTasks()]  # noqa: RUF012 - Airflow's own interface
    timetables = [StaggeredTimetable]  # noqa: RUF012 - the same


def preload() -> None:
    """Import what tasks import; after a failure the tasks import it and report the error."""
    started = time.perf_counter()
    try:
        import pyspark.sql.connect.session  # noqa: F401

        import spark_jobs.gold.refresh.steps  # noqa: F401
        from spark_jobs.quality.library import load_library

        load_library()
    except ImportError:
        log.exception("tasks will import for themselves")
        return
    log.info("imported for tasks seconds=%.1f", time.perf_counter() - started)
