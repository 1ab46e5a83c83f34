"""What Airflow costs with the DAGs of many views."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import psutil
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.measure import own_cpu, stack_cpu, tree
from benchmarks.streams.running import BenchmarkStuckError, wait_until
from spark_jobs.demo.airflow_api import AirflowApi
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableName
from spark_jobs.settings import DAG_FILES, Settings
from spark_jobs.stack.stack import Stack
from spark_jobs.storage.arrow_types import arrow_columns
from spark_jobs.storage.compiled import compile_settings
from spark_jobs.storage.lake import Lake

_PROCESSOR: Final = "airflow-dag-processor"
AIRFLOW_PARTS: Final = ("airflow-api-server", "airflow-scheduler", _PROCESSOR)
# The processor is done if it used less than this share of a core for so many seconds.
QUIET_CORES: Final = 0.1
QUIET_SECONDS: Final = 15
REST_SECONDS: Final = 30
# These have rows, and are run so many times.
RUN_VIEWS: Final = ("v0", "v1", "v2", "v3", "v4")
RUNS: Final = 4
_LONGEST_SECONDS: Final = 900


@dataclass(frozen=True)
class AirflowCost:
    """CPU-seconds of Airflow.

    Attributes:
        first: of the DAG processor's start and first reading, which stores each DAG and its
            permissions.
        later: of its next reading, of unchanged DAGs.
        rest: of all parts and the database in a minute in which no view is refreshed.
        run: of all parts, the tasks and the database for a run of a view whose inputs have not
            changed.
    """

    first: float
    later: float
    rest: float
    run: float


def airflow_cost(settings: Settings, say: Callable[[str], None]) -> AirflowCost:
    """What Airflow costs with the project's DAGs; those of views are paused until they are run."""
    compile_settings(settings)
    # No reading by the clock falls into a measurement.
    rare = settings.airflow.model_copy(update={"parse_seconds": _LONGEST_SECONDS})
    # The DAGs of all other views are created paused. This one has no input, so it does nothing.
    *_, last = Manifest.read(settings.manifest_file).gold
    gold = settings.gold.model_copy(update={"scheduled_at_first": (last,)})
    settings = settings.model_copy(update={"airflow": rare, "gold": gold})
    write_inputs(settings)
    stack = Stack(settings)
    try:
        stack.up(lambda _: None, parts=AIRFLOW_PARTS)
        first = _reading_cpu(stack)
        say(f"Airflow, first reading: {first:.1f} CPU-seconds")
        for file in DAG_FILES.glob("*.py"):
            file.touch()
        later = _reading_cpu(stack) - first
        say(f"Airflow, later reading: {later:.1f} CPU-seconds")
        before = stack_cpu(stack)
        time.sleep(REST_SECONDS)
        rest = (stack_cpu(stack) - before) * 60 / REST_SECONDS
        say(f"Airflow, a minute at rest: {rest:.1f} CPU-seconds")
        stack.up(lambda _: None, parts=(*AIRFLOW_PARTS, "spark-connect"))
        run = _run_cpu(settings, stack, rest / 60)
        say(f"Airflow, a run: {run:.2f} CPU-seconds")
        return AirflowCost(round(first, 1), round(later, 1), round(rest, 1), round(run, 2))
    finally:
        stack.down()


def write_inputs(settings: Settings) -> None:
    """Write the silver tables that ``RUN_VIEWS`` read, with a row each."""
    manifest, lake = Manifest.read(settings.manifest_file), Lake(settings.lake)
    for view in RUN_VIEWS:
        for name in manifest.gold[view].inputs:
            table = TableName.parse(name)
            schema = arrow_columns(manifest.silver[table.name].columns)
            rows = pa.Table.from_pylist([{}], schema=schema)
            write_deltalake(
                lake.location(table),
                rows,
                mode="ignore",
                configuration={"delta.enableChangeDataFeed": "true"},
            )


def _reading_cpu(stack: Stack) -> float:
    """CPU-seconds of the DAG processor since its start, once it does nothing more."""
    (part,) = stack.status([_PROCESSOR])
    if part.pid is None:
        raise BenchmarkStuckError(f"{_PROCESSOR} does not run")
    process = psutil.Process(part.pid)
    deadline = time.monotonic() + _LONGEST_SECONDS
    used = 0.0
    while time.monotonic() < deadline:
        time.sleep(QUIET_SECONDS)
        before, used = used, sum(map(own_cpu, tree(process)))
        if used - before < QUIET_CORES * QUIET_SECONDS:
            return used
    raise BenchmarkStuckError(f"Airflow still works after {_LONGEST_SECONDS} s")


def _run_cpu(settings: Settings, stack: Stack, rest: float) -> float:
    """CPU-seconds of a run that finds nothing to do; ``rest`` is what a second costs without."""
    with AirflowApi(settings) as airflow:
        airflow.log_in()
        for view in RUN_VIEWS:
            airflow.unpause(view)
        # These build the views, and start what a first run starts.
        _run_all(airflow)
        before, began = stack_cpu(stack), time.monotonic()
        for _ in range(RUNS):
            _run_all(airflow)
        used, seconds = stack_cpu(stack) - before, time.monotonic() - began
    return (used - rest * seconds) / (RUNS * len(RUN_VIEWS))


def _run_all(airflow: AirflowApi) -> None:
    """Run each of ``RUN_VIEWS`` once."""
    running = {view: airflow.start(view) for view in RUN_VIEWS}

    def ended() -> bool:
        return {airflow.state(view, run) for view, run in running.items()} == {"success"}

    wait_until(ended, seconds=_LONGEST_SECONDS, what="each run succeeds")
