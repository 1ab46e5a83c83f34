"""``make bench-storm``: simulates refresh storms of 50 views on one table, with countermeasures.

Nothing is measured and nothing is random: the same code produces the same page.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.simulation import Run, Task
from benchmarks.storm_report import page
from benchmarks.storm_world import (
    END,
    MIDNIGHT,
    STORM,
    Calm,
    Costs,
    Result,
    World,
    manifest,
    world,
)
from spark_jobs.orchestration.blueprint import Pool, Step
from spark_jobs.planning.ranges import TimeRange, row_range
from spark_jobs.settings import REPOSITORY

PAGE = REPOSITORY / "docs/benchmarks/storm.md"


def tick(made: World) -> None:
    """Only a tick at which all views are due."""


def correction(made: World) -> None:
    """A late correction: part of the next change, or one request for each window and view."""
    made.late_at = STORM - 1
    if made.calm.coalesce:
        return
    for _ in range(made.costs.late_windows):
        for view in made.dags:
            made.machine.at(STORM - 1, partial(made.request, view))


def replay(made: World) -> None:
    """A replay of 90 days, as in the replay DAG: one task builds all pieces."""
    costs, pool = made.costs, made.pool(Pool.REPLAY)
    for view in list(made.dags)[: costs.replayed_views]:
        work = costs.replayed_day * len(_days(costs))
        tasks = [Task(pool, work), Task(pool, costs.publish, view)]
        made.machine.at(STORM, partial(made.submit_extra, Run(None, _given(tasks))))


def backfill(made: World) -> None:
    """The same as backfills in Airflow: one run of the view's DAG for each day."""
    costs = made.costs
    for view in list(made.dags)[: costs.replayed_views]:
        tasks = [
            replace(task, work=costs.replayed_day if step.step is Step.STAGE else task.work)
            for step, task in zip(made.dags[view].tasks, made.tasks(view, 0, 0), strict=True)
        ]
        for number, _ in enumerate(_days(costs)):
            # Airflow's default for concurrent runs of a backfill.
            queue = f"{view} backfill {number % 10}"
            made.machine.at(STORM, partial(made.submit_extra, Run(queue, _given(tasks))))


def _given(tasks: Sequence[Task]) -> Callable[[float], Sequence[Task]]:
    """Tasks that do not depend on the start time of the run."""
    return lambda _: tasks


def _days(costs: Costs) -> Sequence[TimeRange]:
    range_ = TimeRange(MIDNIGHT - timedelta(days=costs.replayed_days), MIDNIGHT)
    column = manifest().gold["view_00"].columns[0]
    return row_range(column, range_, piece=timedelta(days=1)).pieces()


SCENARIOS: dict[str, Callable[[World], None]] = {
    "a tick at which all views are due": tick,
    "a late correction of 10,000 rows in 500 windows": correction,
    "a replay of 5 views over 90 days": replay,
    "the same 90 days as backfills": backfill,
}
VARIANTS = {
    "all three": Calm(),
    "no staggering": Calm(stagger=False),
    "no pools": Calm(pools=False),
    "no coalescing": Calm(coalesce=False),
    "none": Calm(stagger=False, pools=False, coalesce=False),
}


def simulate(scenario: Callable[[World], None], calm: Calm, costs: Costs | None = None) -> Result:
    """Simulate six hours after a storm, and the remaining work."""
    made = world(calm, costs or Costs())
    scenario(made)
    made.machine.run(until=END)
    ages, most_open = made.ages(), made.machine.most_open
    made.machine.run(until=float("inf"))
    caught_up = [
        next(now for now, content in moments if content >= STORM) for moments in made.shown.values()
    ]
    over = max(*caught_up, made.over_at) - STORM
    return Result(made.machine.peak, most_open, made.machine.done / 3600, over / 60, ages)


def main(
    target: Annotated[Path, typer.Option(help="Where the page is written.")] = PAGE,
) -> None:
    """Simulate every scenario in every variant, and write the page."""
    with tempfile.TemporaryDirectory() as home:
        # Importing Airflow creates its home directory; only the timetable is used.
        os.environ["AIRFLOW_HOME"] = home
        costs = Costs()
        results = {
            name: {variant: simulate(scenario, calm, costs) for variant, calm in VARIANTS.items()}
            for name, scenario in SCENARIOS.items()
        }
        target.write_text(page(results, costs), encoding="utf-8")
    typer.echo(f"wrote {target}")


if __name__ == "__main__":
    typer.run(main)
