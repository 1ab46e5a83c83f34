"""The pipeline from end to end on real parts, and with each of them killed under load.

The project's own ``reconcile`` and ``verify`` are asked, and an oracle that shares no code with
them: counts from the broker, rows from Postgres, both against the Delta tables.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from datetime import UTC, datetime

import psycopg
import pytest
from rich.console import Console

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.cli.demo import SCHEDULED
from spark_jobs.cli.demo_waits import opened, wait_for_refreshes
from spark_jobs.cli.steps import Steps
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.demo.background import BackgroundLoad
from spark_jobs.demo.database import create_shop
from spark_jobs.demo.load import LoadOrder, run_load
from spark_jobs.demo.malformed import REQUIRED_FIELD
from spark_jobs.demo.tally import Tally
from spark_jobs.local import redis_server
from spark_jobs.local.postgres import SERVING, SHOP, dsn
from tests.e2e import oracle
from tests.e2e.running import RunningStack
from tests.e2e.soundness import (
    PATIENCE_SECONDS,
    TABLES,
    assert_sound,
    wait_drained,
)

VICTIMS = ("streams", "kafka", "connect", "redis", "airflow-scheduler")

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def shop(stack: RunningStack) -> str:
    """The shop's database with its tables."""
    url = dsn(stack.settings, database=SHOP, role=SHOP)
    create_shop(url)
    return url


def assert_served(stack: RunningStack) -> None:
    """Every sink has what its table has: by the project's own word, and by the oracle's."""
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
    watched = dict(oracle.topic_records(settings.kafka, "gold.viewership_summary"))
    rows = [json.loads(value) for value in watched.values() if value is not None]
    assert {(row["user_id"], row["title_id"]): row["watch_seconds"] for row in rows} == {
        key: row["watch_seconds"] for key, row in summary.items()
    }


def wait_for_the_views(stack: RunningStack, since: datetime) -> list[str]:
    """Wait until Airflow's schedule and the streams have taken up what came in until now.

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


def counts(stack: RunningStack) -> dict[str, tuple[int, int]]:
    """Silver rows and quarantined records of every topic of events."""
    settings = stack.settings
    return {
        topic: (oracle.silver_count(settings, topic), oracle.quarantine_count(settings, topic))
        for topic in REQUIRED_FIELD
    }


def well_formed(tally: Tally, topic: str) -> int:
    """Events of a topic that are neither malformed nor a repetition."""
    return sum(
        count
        for (name, trait), count in tally.records.items()
        if name == topic and trait not in {"duplicate", "malformed"}
    )


def test_everything_that_was_sent_has_its_outcome(stack: RunningStack, shop: str):
    since = datetime.now(UTC)
    before, ends_before = counts(stack), oracle.kafka_ends(stack.settings)
    order = LoadOrder(rate=80, seconds=25, seed=11)
    tally = run_load(order, shop_dsn=shop, kafka=KafkaAccess(stack.settings.kafka))
    wait_drained(stack, shop)

    def settled() -> bool:
        return all(
            counts(stack)[topic]
            == (
                before[topic][0] + well_formed(tally, topic),
                before[topic][1] + tally.quarantinable(topic),
            )
            for topic in REQUIRED_FIELD
        )

    oracle.wait_until(settled, seconds=PATIENCE_SECONDS, what="each event once, or quarantined")
    ends = oracle.kafka_ends(stack.settings)
    sent = {topic: ends[topic] - ends_before[topic] for topic in REQUIRED_FIELD}
    assert sent == {topic: tally.sent_to(topic) for topic in REQUIRED_FIELD}
    views = wait_for_the_views(stack, since)
    assert_sound(stack, *views)


def test_nothing_is_lost_when_parts_are_killed_under_load(stack: RunningStack, shop: str):
    since = datetime.now(UTC)
    order = LoadOrder(rate=40, seconds=600, seed=12)
    with BackgroundLoad(order, shop_dsn=shop, kafka=KafkaAccess(stack.settings.kafka)) as load:
        load.start()
        for victim in VICTIMS:
            pid = stack.kill(victim)
            stack.wait_restarted(victim, pid, seconds=PATIENCE_SECONDS)
            assert load.running
        stack.wait_ready(seconds=PATIENCE_SECONDS)
        load.stop()
        load.finish()
    wait_drained(stack, shop)
    wait_for_the_views(stack, since)
    # Most views are refreshed by nobody here: they would take the cores from what is tested.
    stack.tidemark("refresh", "--all")
    assert_sound(stack)
    assert_served(stack)


def test_a_title_that_is_taken_down_leaves_the_view_its_table_and_its_topic(
    stack: RunningStack, shop: str
):
    settings = stack.settings
    before = oracle.gold_rows(settings, "viewership_summary")
    title = Counter(row["title_id"] for row in before.values()).most_common(1)[0][0]
    kept = {key: row for key, row in before.items() if row["title_id"] != title}
    assert len(kept) < len(before)
    with psycopg.connect(shop) as connection:
        connection.execute("DELETE FROM titles WHERE title_id = %s", [title])
    wait_drained(stack, shop)
    stack.tidemark("refresh", "viewership_summary")
    assert oracle.gold_rows(settings, "viewership_summary") == kept
    # Its rows are gone from the serving database, and the topic has a tombstone for each.
    assert_served(stack)
    last = dict(oracle.topic_records(settings.kafka, "gold.viewership_summary"))
    gone = [key for key in last if json.loads(key)["title_id"] == title]
    assert len(gone) == len(before) - len(kept)
    assert all(last[key] is None for key in gone)


def test_a_new_snapshot_of_every_table_changes_nothing_and_is_followed(
    stack: RunningStack, shop: str
):
    assert "Nothing was done" in stack.tidemark("source", "resnapshot").stdout
    before = oracle.gold_rows(stack.settings, "viewership_summary")
    ends = oracle.kafka_ends(stack.settings)["titles"]
    titles = len(oracle.postgres_rows(stack.settings, shop, "titles"))
    assert titles

    stack.tidemark("source", "resnapshot", "--run", "--reason", "a rehearsal of a lost slot")
    oracle.wait_until(
        lambda: oracle.kafka_ends(stack.settings)["titles"] >= ends + titles,
        seconds=PATIENCE_SECONDS,
        what="the snapshot",
    )
    wait_drained(stack, shop)
    gone = json.loads(stack.tidemark("source", "retract", "--json").stdout)
    assert {one["source"]: one["rows"] for one in gone} == dict.fromkeys(TABLES, 0)
    stack.tidemark("refresh", "viewership_summary")
    assert oracle.gold_rows(stack.settings, "viewership_summary") == before

    with psycopg.connect(shop) as connection:
        connection.execute("UPDATE titles SET name = name || ' (restored)'")
    wait_drained(stack, shop)
    assert_sound(stack, "viewership_summary")
