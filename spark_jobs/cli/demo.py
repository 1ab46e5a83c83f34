"""``tidemark demo``: from an empty directory to audited gold tables, on real parts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
import yaml

from spark_jobs.demo.first_refreshes import build_order, hand_over, refresh_views
from spark_jobs.demo.waits import drain, opened, scheduled_views, wait_for_refreshes
from spark_jobs.errors import LakehouseError
from spark_jobs.java_options import SHORT_RUN
from spark_jobs.settings import DEMO_FILE, Settings, load_settings
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.demo.background import BackgroundLoad
    from spark_jobs.demo.background_start import BackgroundStart
    from spark_jobs.demo.tally import Tally
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.verify.published import Verification
    from spark_jobs.stack.stack import Started

# Airflow refreshes these views from the start, in short periods, so that results appear soon; two
# cores cannot refresh all views at once.
SCHEDULED = ("daily_order_summary", "viewership_summary")
PERIOD = "1 minute"
# The view that is built and shown before all records have arrived; it reads no other view.
FIRST = "orders_by_status"
NOTE = """\
# The schedule of `tidemark demo`, for two cores, and options of Java for some minutes. For the
# schedules of the views themselves, and Java's options for a pipeline that stays up, delete this
# file, then run `tidemark apply` and `tidemark stack up`.
"""


def demo(
    context: typer.Context,
    rate: Annotated[
        float, typer.Option(min=1, max=2000, help="Operations per second: row changes and records.")
    ] = 90,
    seconds: Annotated[float, typer.Option(min=10, max=600, help="Duration of the load.")] = 30,
    seed: Annotated[int, typer.Option(help="The same seed generates the same load.")] = 7,
) -> None:
    """Start the stack, put it under load, wait for the refreshes, and show the results."""
    from spark_jobs.access.kafka import Principal, kafka_access
    from spark_jobs.demo import summary as demo_report
    from spark_jobs.demo.background import BackgroundLoad
    from spark_jobs.demo.background_start import BackgroundStart
    from spark_jobs.demo.load import LoadOrder
    from spark_jobs.serving.page.reading import page_facts
    from spark_jobs.serving.page.rendering import rendered, write_page
    from spark_jobs.stack.postgres import SHOP, dsn
    from spark_jobs.state.types import utc_now

    write_schedule(load_settings(context.obj))
    settings = load_settings(context.obj)
    console = wide_console()
    steps = Steps(console)
    began = utc_now()
    prepare_shop(settings, steps)
    shop_dsn = dsn(settings, database=SHOP, role=SHOP)
    order = LoadOrder(rate, seconds, seed)
    with BackgroundLoad(
        order, shop_dsn=shop_dsn, kafka=kafka_access(settings, Principal.LOADER)
    ) as load:
        start_streams(settings, steps, load)
        tally = finish_load(steps, load)
    with opened(settings) as lake, BackgroundStart(settings) as rest:
        before, behind = build_order(lake.gold.manifest, scheduled_views(lake.gold))
        first = [name for name in before if name == FIRST]
        refresh_views(lake.gold, first, steps, title=f"refresh the first of {len(before)} views")
        demo_report.show_first(console, lake.gold, first, seconds=steps.seconds)
        rest.start()
        reconciled = drain(lake, steps)
        refresh_views(lake.gold, before, steps, title=f"refresh {len(before)} gold views")
        started = finish_start(steps, rest)
        found = compare(lake.gold, before, steps)
        refreshed = wait_for_refreshes(lake.gold, steps, since=began)
        refresh_views(lake.gold, behind, steps, title=f"refresh what reads them: {len(behind)}")
        found += compare(lake.gold, sorted({*lake.gold.manifest.gold} - {*before}), steps)
        found.sort(key=lambda one: one.view)
        ending = demo_report.Ending(tally, reconciled, refreshed, found)
        demo_report.show(console, lake.gold, ending)
        hand_over(lake.gold, [*before, *behind], steps)
        with steps.step("write the page that Airflow shows"):
            write_page(rendered(page_facts(lake.project, now=utc_now())), settings.status_page)
    demo_report.show_logins(console, settings, users_made=started.users_made)
    console.print(f"\nTotal: {steps.seconds:.0f} s. The stack stays up until [bold]make down[/].")
    if not all(one.passed for one in found):
        raise typer.Exit(1)


def write_schedule(settings: Settings) -> None:
    """Leave the demo's schedule in the state directory, where later commands find it too.

    Raises:
        StateDirectoryError: it cannot be written.
    """
    from spark_jobs.storage.rights import make_state, usual_rights

    make_state(settings.state)
    chosen = {
        "gold": {"every_override": PERIOD, "scheduled_at_first": list(SCHEDULED)},
        "spark": {"java_options": SHORT_RUN},
    }
    with usual_rights():
        (settings.state / DEMO_FILE).write_text(NOTE + yaml.safe_dump(chosen))


def prepare_shop(settings: Settings, steps: Steps) -> None:
    """Start the database and create its tables, so that the connector finds them."""
    from spark_jobs.demo.database import create_shop
    from spark_jobs.stack.postgres import SHOP, dsn
    from spark_jobs.stack.stack import Stack

    with steps.step("start PostgreSQL and create the shop") as note:
        # The demo has its own schedule, so parts with other settings are restarted.
        Stack(settings).up(lambda news: note(news.note), parts=["postgres"], restart=True)
        create_shop(dsn(settings, database=SHOP, role=SHOP))


def start_streams(settings: Settings, steps: Steps, load: BackgroundLoad) -> None:
    """Start the streams and what they read; the load begins as soon as changes are captured.

    Airflow starts later, behind the first refreshes: two cores that start everything at once show
    the first result a minute later.
    """
    from spark_jobs.stack.spark_connect import NAME as SPARK_CONNECT
    from spark_jobs.stack.stack import Stack
    from spark_jobs.stack.start_display import showing_progress
    from spark_jobs.stack.startup import Phase, Progress
    from spark_jobs.stack.streams import NAME as STREAMS

    steps.console.print("start the streams and what they read:")
    with showing_progress(steps.console) as report:

        def watch(news: Progress) -> None:
            report(news)
            if news.step == "connector" and news.phase is Phase.READY:
                load.start()

        Stack(settings).up(watch, parts=[STREAMS, SPARK_CONNECT], restart=True)
    apply_schedule(settings, steps)
    steps.console.print(f"[green]done[/] the streams run [dim]{steps.seconds:.0f} s in all[/]")


def finish_start(steps: Steps, rest: BackgroundStart) -> Started:
    """Wait until Airflow runs, too."""
    with steps.step("start Airflow, in the background until here") as note:
        return rest.finish(note)


def compare(gold: GoldContext, views: Sequence[str], steps: Steps) -> list[Verification]:
    """Compare published tables with their SQL."""
    from spark_jobs.gold.verify.several import verify_each

    with steps.step(f"compare {len(views)} published tables with their SQL") as note:
        found = []
        for view, result in verify_each(gold, views):
            if isinstance(result, LakehouseError):
                raise result
            found.append(result)
            note(f"{len(found)} of {len(views)}, {view} is compared")
        return found


def apply_schedule(settings: Settings, steps: Steps) -> None:
    """Apply the demo's schedule, if the stack had a different one before."""
    from spark_jobs.rollout.apply import apply, only_apply
    from spark_jobs.rollout.planning import make_plan
    from spark_jobs.rollout.steps import Carrier
    from spark_jobs.serving.project import asker
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.compiled import compiled

    project = compiled(settings)
    with ControlStore.open(settings.control_url) as store, only_apply(settings, store):
        planned = make_plan(settings, store, project)
        carrier = Carrier(settings, store, project)
        if planned.plan.steps:
            apply(
                settings,
                store,
                planned,
                who=asker(),
                carry=carrier.carry,
                watch=lambda step: steps.step(step.title),
            )
        carrier.close()


def finish_load(steps: Steps, load: BackgroundLoad) -> Tally:
    """Wait for the end of the load."""
    total = int(load.order.rate * load.order.seconds)
    with steps.step(f"load: {load.order.rate:g} operations a second") as note:
        future = load.start()
        while not future.done():
            note(f"{load.done:,} of {total:,}")
            time.sleep(0.2)
        return load.finish()
