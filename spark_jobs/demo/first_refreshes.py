"""The views that the demo refreshes itself, before Airflow schedules them.

Two dozen views that start at the same time would keep two cores busy for minutes. Airflow schedules
a few from the start, and the others are built in one Spark session, two at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from spark_jobs.terminal.steps import Steps

if TYPE_CHECKING:
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.graph.manifest import Manifest

# Much of a refresh of few rows is planning, in one thread.
THREADS = 2


def build_order(manifest: Manifest, scheduled: Collection[str]) -> tuple[list[str], list[str]]:
    """The views that neither a schedule nor a stream refreshes, upstream views first.

    Returns:
        the views that do not read a view that is refreshed elsewhere, and those that do.
    """
    from spark_jobs.definitions.vocabulary import RefreshPolicy

    before: list[str] = []
    behind: list[str] = []
    elsewhere = {*scheduled} | {
        name for name, entry in manifest.gold.items() if entry.refresh is RefreshPolicy.CONTINUOUS
    }
    late = set(elsewhere)
    for tier in manifest.gold_by_tier():
        for entry in tier:
            if entry.name in elsewhere:
                continue
            if late & set(entry.upstream):
                late.add(entry.name)
                behind.append(entry.name)
            else:
                before.append(entry.name)
    return before, behind


def refresh_views(gold: GoldContext, views: Sequence[str], steps: Steps, *, title: str) -> None:
    """Refresh views in one tick, each after the views that it reads.

    In a second demo on the same stack a scheduled run may already refresh one, which is skipped.

    Raises:
        LakehouseError: a view cannot be refreshed, or its gate blocks it.
    """
    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.state.errors import LeaseTakenError
    from spark_jobs.state.types import utc_now

    refresher = Refresher(
        gold.settings, gold.manifest, gold.store, session_factory=lambda _: gold.spark
    )
    tick = f"demo-{utc_now():%Y%m%dT%H%M%S.%f}"
    with steps.step(title) as note:
        # Opened here, because two threads would open two sessions.
        _ = refresher.context.spark

        def refresh(view: str) -> None:
            with suppress(LeaseTakenError):
                refresher.run(view, tick=tick)

        upstream = {view: {*gold.manifest.gold[view].upstream} & {*views} for view in views}
        order = TopologicalSorter(upstream)
        order.prepare()
        running: dict[Future[None], str] = {}
        done = 0
        with ThreadPoolExecutor(THREADS, thread_name_prefix="refresh") as pool:
            while order.is_active():
                running |= {pool.submit(refresh, view): view for view in order.get_ready()}
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    view = running.pop(ended)
                    ended.result()
                    order.done(view)
                    done += 1
                    note(f"{done} of {len(views)}, {view} is refreshed")


def hand_over(gold: GoldContext, views: Sequence[str], steps: Steps) -> None:
    """Let Airflow refresh the other views from now on, in their declared periods.

    Raises:
        AirflowUnreachableError: Airflow does not answer.
    """
    from spark_jobs.demo.airflow_api import AirflowApi

    title = f"let Airflow refresh {len(views)} more views from now on"
    with steps.step(title), AirflowApi(gold.settings) as airflow:
        airflow.log_in()
        for view in views:
            airflow.unpause(view)
