"""What takes minutes on a full stack with default settings: every view, and a new snapshot."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import psycopg
import pytest

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.demo.load import LoadOrder, run_load
from tests.e2e import oracle
from tests.e2e.running import RunningStack
from tests.e2e.soundness import (
    PATIENCE_SECONDS,
    TABLES,
    assert_served,
    assert_sound,
    shop_of,
    wait_drained,
    wait_for_the_views,
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def shop(plain_stack: RunningStack) -> str:
    """The shop's database with its tables."""
    return shop_of(plain_stack)


def test_every_view_is_its_sql(plain_stack: RunningStack, shop: str):
    since = datetime.now(UTC)
    order = LoadOrder(rate=80, seconds=25, seed=13)
    access = kafka_access(plain_stack.settings, Principal.LOADER)
    run_load(order, shop_dsn=shop, kafka=access)
    wait_drained(plain_stack, shop)
    wait_for_the_views(plain_stack, since)
    # Most views are refreshed by nobody here: they would take the cores from what is tested.
    plain_stack.tidemark("refresh", "--all", seconds=1200)
    assert_sound(plain_stack)
    assert_served(plain_stack)


def test_a_new_snapshot_of_every_table_changes_nothing_and_is_followed(
    plain_stack: RunningStack, shop: str
):
    stack = plain_stack
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
    gone = json.loads(stack.tidemark("source", "delete-backfill", "--json").stdout)
    assert {one["source"]: one["rows"] for one in gone} == dict.fromkeys(TABLES, 0)
    stack.refresh("viewership_summary")
    assert oracle.gold_rows(stack.settings, "viewership_summary") == before

    with psycopg.connect(shop) as connection:
        connection.execute("UPDATE titles SET name = name || ' (restored)'")
    wait_drained(stack, shop)
    assert_sound(stack, "viewership_summary")
