"""The pipeline from end to end on real parts, and with each of them killed under load.

The project's own ``reconcile`` and ``verify`` are asked, and an oracle that shares no code with
them: counts from the broker, rows from Postgres, both against the Delta tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

import httpx
import psycopg
import pytest

from spark_jobs.access.airflow import ANNOUNCER
from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.access.secrets import AIRFLOW_ANNOUNCER, read_secret
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.demo.background import BackgroundLoad
from spark_jobs.demo.load import LoadOrder
from spark_jobs.demo.malformed import REQUIRED_FIELD
from spark_jobs.demo.tally import Tally
from spark_jobs.gold.base.publications import publications
from spark_jobs.graph.manifest import GoldEntry, Manifest
from tests.e2e import oracle
from tests.e2e.airflow_world import Airflow
from tests.e2e.running import RunningStack
from tests.e2e.soundness import (
    PATIENCE_SECONDS,
    assert_served,
    assert_sound,
    wait_drained,
    wait_for_the_views,
)

# Those of a group die at the same moment; nothing of a group needs another one of it.
VICTIMS = (("streams", "redis"), ("kafka", "airflow-scheduler"), ("connect",))

pytestmark = pytest.mark.timeout(1200)


def views_of(stack: RunningStack) -> Mapping[str, GoldEntry]:
    """The gold views by name."""
    return Manifest.read(stack.settings.manifest_file).gold


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


def test_every_sent_record_has_an_outcome_though_parts_are_killed(stack: RunningStack, shop: str):
    since = datetime.now(UTC)
    before, ends_before = counts(stack), oracle.kafka_ends(stack.settings)
    order = LoadOrder(rate=10, seconds=600, seed=11)
    access = kafka_access(stack.settings, Principal.LOADER)
    with BackgroundLoad(order, shop_dsn=shop, kafka=access) as load:
        load.start()
        oracle.wait_until(
            lambda: sum(oracle.bronze_counts(stack.settings).values()) > 0,
            seconds=PATIENCE_SECONDS,
            what="the streams follow",
        )
        for group in VICTIMS:
            killed = {victim: stack.kill(victim) for victim in group}
            for victim, pid in killed.items():
                stack.wait_restarted(victim, pid, seconds=PATIENCE_SECONDS)
            assert load.running
        stack.wait_ready(seconds=PATIENCE_SECONDS)
        load.stop()
        tally = load.finish()
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
    assert_sound(stack, *wait_for_the_views(stack, since))
    assert_served(stack)


def test_each_publication_that_changed_rows_is_one_event(stack: RunningStack, shop: str):
    by_hand = "orders_by_user"
    stack.refresh(by_hand)
    continuous = next(
        name for name, entry in views_of(stack).items() if entry.refresh is RefreshPolicy.CONTINUOUS
    )
    airflow = Airflow(stack)

    def events() -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        while page := airflow.get("/assets/events", limit=100, offset=found.total())[
            "asset_events"
        ]:
            found.update((one["name"], one["extra"]["attempt"]) for one in page)
        return found

    def committed() -> set[tuple[str, str]]:
        return {
            (f"gold.{view}", one.watermark.attempt)
            for view in views_of(stack)
            for one in publications(stack.settings.lake.rstrip("/") + f"/gold/{view}")
            if one.watermark.changed
        }

    wanted: set[tuple[str, str]] = set()

    def told() -> bool:
        wanted.update(committed())
        return wanted <= events().keys()

    oracle.wait_until(told, seconds=PATIENCE_SECONDS, what="each publication is an event")
    assert {f"gold.{by_hand}", f"gold.{continuous}"} <= {name for name, _ in wanted}
    assert {one: count for one, count in events().items() if count > 1} == {}
    with httpx.Client(base_url=airflow.address, timeout=30) as client:
        password = read_secret(stack.settings, AIRFLOW_ANNOUNCER)
        login = {"username": ANNOUNCER, "password": password}
        token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        runs = f"/api/v2/dags/gold__{by_hand}/dagRuns"
        asked = client.post(runs, json={"logical_date": None})
        assert asked.status_code == httpx.codes.FORBIDDEN
        assert client.get("/api/v2/connections").status_code == httpx.codes.FORBIDDEN


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
    stack.refresh("viewership_summary")
    assert oracle.gold_rows(settings, "viewership_summary") == kept
    # Its rows are gone from the serving database, and the topic has a tombstone for each.
    assert_served(stack)
    last = dict(oracle.topic_records(settings, "gold.viewership_summary"))
    gone = [key for key in last if json.loads(key)["title_id"] == title]
    assert len(gone) == len(before) - len(kept)
    assert all(last[key] is None for key in gone)
