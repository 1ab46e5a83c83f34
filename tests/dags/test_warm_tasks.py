"""The plugin by which tasks inherit the scheduler's imports."""

from __future__ import annotations

import subprocess
import sys

from spark_jobs.stack.airflow_config import PLUGINS

SCHEDULER = f"""
import os, sys
sys.path.insert(0, {str(PLUGINS)!r})
sys.argv = ["airflow", sys.argv[1]]
import warm_tasks
class Job: pass
class TaskRunnerMarker: pass
listener = warm_tasks.TidemarkPlugin.listeners[0]
listener.on_starting(component=TaskRunnerMarker())
before = "great_expectations" in sys.modules
listener.on_starting(component=Job())
print(before, "great_expectations" in sys.modules, "pyspark.sql.connect.session" in sys.modules)
"""


def start(component: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCHEDULER, component],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    return done.stdout.strip()


def test_the_scheduler_imports_what_tasks_need_and_its_tasks_do_not_again() -> None:
    assert start("scheduler") == "False True True"


def test_other_components_import_nothing_in_advance() -> None:
    assert start("dag-processor") == "False False False"
