"""An Airflow plugin: the timetable of views, and tasks that need not import.

The scheduler imports what refresh tasks need, so that they inherit it.

LocalExecutor's workers are forks of the scheduler, and each task is a fork of a worker. What the
scheduler imported before the first fork costs a task nothing; otherwise each audit would import
Great Expectations for seconds. Only modules are loaded: no connection, no thread, no session.
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
    """The listener. Airflow calls it when any of its components starts."""

    @hookimpl
    def on_starting(self, component: Any) -> None:
        # A job does not say which one it is before it runs; the command line does. Tasks are
        # components too, and have the scheduler's command line, since they are its forks.
        if type(component).__name__ == "Job" and sys.argv[1:2] == ["scheduler"]:
            preload()


class TidemarkPlugin(AirflowPlugin):
    """Airflow finds plugins by their base class."""

    name = "tidemark"
    listeners = [WarmTasks()]  # noqa: RUF012 - Airflow's own interface
    timetables = [StaggeredTimetable]  # noqa: RUF012 - the same


def preload() -> None:
    """Import what tasks import; a failure costs speed and is theirs to report."""
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
