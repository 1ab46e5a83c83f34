"""``tidemark demo``: from an empty directory to audited gold tables, on real parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.cli.steps import Note, Steps
from spark_jobs.settings import Settings, load_settings

if TYPE_CHECKING:
    from spark_jobs.demo.airflow_api import AirflowApi
    from spark_jobs.demo.background import BackgroundLoad
    from spark_jobs.demo.refreshes import ViewProgress
    from spark_jobs.demo.tally import Tally
    from spark_jobs.local.stack import Started
    from spark_jobs.state.store import ControlStore

# Every view is refreshed that often, so that nobody has to wait for a quarter of an hour.
PERIOD = "1 minute"
REFRESH_SECONDS = 300
POLL_SECONDS = 2
TABLE_WIDTH = 120


def demo(
    context: typer.Context,
    rate: Annotated[
        float, typer.Option(min=1, max=2000, help="Operations a second: row changes and records.")
    ] = 60,
    seconds: Annotated[float, typer.Option(min=10, max=600, help="How long the load lasts.")] = 45,
    seed: Annotated[int, typer.Option(help="The same seed makes the same load.")] = 7,
) -> None:
    """Start the stack, put it under load, wait for scheduled refreshes, and show what came out."""
    from spark_jobs.cli import demo_report
    from spark_jobs.demo.background import BackgroundLoad
    from spark_jobs.demo.load import LoadOrder
    from spark_jobs.local.postgres import SHOP, dsn
    from spark_jobs.state.types import utc_now

    settings = demo_settings(load_settings(context.obj))
    console = wide_console()
    steps = Steps(console)
    began = utc_now()
    prepare_shop(settings, steps)
    shop_dsn = dsn(settings, database=SHOP, role=SHOP)
    order = LoadOrder(rate, seconds, seed)
    with BackgroundLoad(order, shop_dsn=shop_dsn, kafka=settings.kafka) as load:
        started = start_everything(settings, steps, load)
        tally = finish_load(steps, load)
    drain(settings, steps)
    refreshed = wait_for_refreshes(settings, steps, since=began, after=utc_now())
    ending = demo_report.Ending(tally, refreshed, started.users_made)
    holds = demo_report.show(console, settings, ending)
    console.print(
        f"\nAll of it took {steps.seconds:.0f} s. The stack stays up until [bold]make down[/]."
    )
    if not holds:
        raise typer.Exit(1)


def demo_settings(settings: Settings) -> Settings:
    """The project's settings with the demo's short periods."""
    gold = settings.gold.model_copy(update={"every_override": PERIOD})
    return settings.model_copy(update={"gold": gold})


def wide_console() -> Console:
    """The terminal; where there is none, lines wide enough for the tables."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=TABLE_WIDTH)


def prepare_shop(settings: Settings, steps: Steps) -> None:
    """The database with its tables comes first, so that the connector finds them."""
    from spark_jobs.demo.database import create_shop
    from spark_jobs.local.postgres import SHOP, dsn
    from spark_jobs.local.stack import Stack

    with steps.step("start PostgreSQL and create the shop") as note:
        Stack(settings).up(lambda news: note(news.note), parts=["postgres"])
        create_shop(dsn(settings, database=SHOP, role=SHOP))


def start_everything(settings: Settings, steps: Steps, load: BackgroundLoad) -> Started:
    """Start the rest; the load begins as soon as the connector captures changes."""
    from spark_jobs.cli.stack_progress import showing_progress
    from spark_jobs.local.stack import Stack
    from spark_jobs.local.startup import Phase, Progress

    steps.console.print("start the other parts:")
    with showing_progress(steps.console) as report:

        def watch(news: Progress) -> None:
            report(news)
            if news.step == "connector" and news.phase is Phase.READY:
                load.start()

        started = Stack(settings).up(watch)
    steps.console.print(f"[green]done[/] the stack is up [dim]{steps.seconds:.0f} s in all[/]")
    return started


def finish_load(steps: Steps, load: BackgroundLoad) -> Tally:
    """Let the load run to its end."""
    total = int(load.order.rate * load.order.seconds)
    with steps.step(f"load: {load.order.rate:g} operations a second") as note:
        future = load.start()
        while not future.done():
            note(f"{load.done:,} of {total:,}")
            time.sleep(0.2)
        return load.finish()


def drain(settings: Settings, steps: Steps) -> None:
    """Wait until every record has its outcome and silver equals Postgres."""
    from spark_jobs.state.store import ControlStore

    with ControlStore.open(settings.control_url) as store, steps.step("drain") as note:
        for _ in range(60):
            lag = {p.query: p.lag_records for p in store.progress() if p.lag_records}
            note(str(lag))
            if not lag:
                break
            time.sleep(1)
        time.sleep(8)


def wait_for_refreshes(
    settings: Settings, steps: Steps, *, since: datetime, after: datetime
) -> list[ViewProgress]:
    """Wait until the scheduler has refreshed every view with all that came in.

    Raises:
        DemoStepError: a result is held by its gate, or it takes too long.
    """
    title = "wait until Airflow's schedule has refreshed every gold view"
    with steps.step(title) as note, asking(settings) as look:
        deadline = time.monotonic() + REFRESH_SECONDS
        while True:
            views = look(since, after)
            check(views, title, late=time.monotonic() > deadline)
            if all(view.complete for view in views):
                return views
            tell(views, note)
            time.sleep(POLL_SECONDS)


Look = Callable[[datetime, datetime], list["ViewProgress"]]


@contextmanager
def asking(settings: Settings) -> Iterator[Look]:
    """A function that asks Airflow and the ledger about every view."""
    from spark_jobs.demo.airflow_api import AirflowApi
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.state.store import ControlStore

    views = sorted(Manifest.read(settings.manifest_file).gold)
    with ControlStore.open(settings.control_url) as store, AirflowApi(settings) as airflow:
        airflow.log_in()
        yield lambda since, after: [
            progress_of(view, store, airflow, since=since, after=after) for view in views
        ]


def progress_of(
    view: str, store: ControlStore, airflow: AirflowApi, *, since: datetime, after: datetime
) -> ViewProgress:
    """How far one view has come."""
    from spark_jobs.demo.refreshes import view_progress

    return view_progress(
        view,
        runs=airflow.scheduled_runs(view),
        attempts=store.attempts(view, limit=50),
        since=since,
        after=after,
    )


def check(views: list[ViewProgress], title: str, *, late: bool) -> None:
    """Raise where waiting on would not help.

    Raises:
        DemoStepError: a result is held by its gate, or time is up.
    """
    from spark_jobs.demo.errors import DemoStepError

    hint = 'Open the DAG in Airflow, or run "tidemark status" and "tidemark explain --all".'
    held = [view.view for view in views if view.held]
    if held:
        raise DemoStepError(title, f"the gate holds {', '.join(held)}", hint=hint)
    if late:
        missing = ", ".join(view.view for view in views if not view.complete)
        problem = f"{missing} not refreshed within {REFRESH_SECONDS} seconds"
        raise DemoStepError(title, problem, hint=hint)


def tell(views: list[ViewProgress], note: Note) -> None:
    """Say how far the views have come."""
    published = sum(view.published is not None for view in views)
    complete = sum(view.complete for view in views)
    note(f"{published} of {len(views)} published, {complete} with all that came in")
