"""Invariants of a stack after any fault: everything arrived, and every view equals its SQL."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime

from rich.console import Console

from spark_jobs.cli.demo import SCHEDULED
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.demo.database import create_shop
from spark_jobs.demo.waits import opened, wait_for_refreshes
from spark_jobs.settings import Settings
from spark_jobs.stack import redis_server
from spark_jobs.stack.postgres import SERVING, SHOP, dsn
from spark_jobs.terminal.steps import Steps
from tests.e2e import oracle
from tests.e2e.running import RunningStack

TABLES = ("users", "products", "titles", "orders", "order_items")
# The harness does two things concurrently: it restarts a service and runs the load.
PATIENCE_SECONDS = 600


def shop_of(stack: RunningStack) -> str:
    """The shop's database with its tables."""
    url = dsn(stack.settings, database=SHOP, role=SHOP)
    create_shop(url)
    return url


def wait_drained(
    stack: RunningStack,
    shop: str,
    records: Callable[[Settings], dict[str, int]] = oracle.kafka_ends,
) -> None:
    """Wait until bronze equals the broker, and silver equals Postgres.

    Args:
        stack: the stack.
        shop: the address of the source database.
        records: counts the records of each source; offsets suffice unless producers abort.
    """
    settings = stack.settings

    def drained() -> bool:
        return oracle.bronze_counts(settings) == records(settings) and all(
            oracle.silver_rows(settings, name) == oracle.postgres_rows(settings, shop, name)
            for name in TABLES
        )

    oracle.wait_until(drained, seconds=PATIENCE_SECONDS, what="everything arrived")


def assert_sound(stack: RunningStack, *views: str) -> None:
    """The project's own checks pass too, for some views or for all."""
    reconciled = stack.tidemark("reconcile", "--wait", "120", "--json", check=False)
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    verified = stack.tidemark("verify", *(views or ["--all"]), "--json", check=False, seconds=1200)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert all(view["holds"] for view in json.loads(verified.stdout))


def assert_served(stack: RunningStack) -> None:
    """Every sink equals its table, according to the project and to the oracle."""
    settings = stack.settings

    def caught_up() -> bool:
        sinks = json.loads(stack.tidemark("sink", "status", "--json").stdout)
        return all(one["versions_behind"] == 0 and one["state"] == "running" for one in sinks)

    oracle.wait_until(caught_up, seconds=PATIENCE_SECONDS, what="the sinks caught up")
    verified = stack.tidemark("sink", "verify", "--json", check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert all(one["rows"] > 0 for one in json.loads(verified.stdout))

    stats = oracle.gold_rows(settings, "user_order_stats")
    serving = dsn(settings, database=SERVING, role=SERVING)
    assert oracle.served_rows(settings, serving, "serving.user_order_stats") == stats
    hashes = oracle.redis_hashes(redis_server.url(settings), "user_order_stats:")
    assert {name: one["total_spend"] for name, one in hashes.items()} == {
        str(row["user_id"]): str(row["total_spend"]) for row in stats.values()
    }
    summary = oracle.gold_rows(settings, "viewership_summary")
    assert oracle.served_rows(settings, serving, "serving.viewership_summary") == summary
    watched = dict(oracle.topic_records(settings, "gold.viewership_summary"))
    rows = [json.loads(value) for value in watched.values() if value is not None]
    assert {(row["user_id"], row["title_id"]): row["watch_seconds"] for row in rows} == {
        key: row["watch_seconds"] for key, row in summary.items()
    }


def wait_for_the_views(stack: RunningStack, since: datetime) -> list[str]:
    """Wait until Airflow's schedule and the streams have processed everything so far.

    Returns:
        the views that they refresh.
    """
    steps = Steps(Console(file=io.StringIO()))
    with opened(stack.settings) as lake:
        views = wait_for_refreshes(lake.gold, steps, since=since)
        entries = lake.gold.manifest.gold.values()
    continuous = {one.name for one in entries if one.refresh is RefreshPolicy.CONTINUOUS}
    assert {view.view for view in views if view.published.run} == set(SCHEDULED)
    assert {view.view for view in views if view.published.run is None} == continuous
    assert continuous
    return [view.view for view in views]
