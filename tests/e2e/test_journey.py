"""A day of an analytics engineer: new data reaches gold, and a change is previewed and undone.

The project is a copy of the shipped one. The full stack runs and the shop is under load meanwhile.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.cli.diff import DIFFERENT
from spark_jobs.cli.plan import CHANGES
from spark_jobs.demo.background import BackgroundLoad
from spark_jobs.demo.load import LoadOrder, run_load
from spark_jobs.names import Layer, TableName
from spark_jobs.settings import REPOSITORY
from spark_jobs.storage.lake import Lake
from tests.e2e.conftest import SCHEDULE
from tests.e2e.running import RunningStack, new_stack, write_files
from tests.e2e.soundness import assert_sound, shop_of, wait_drained

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

COPIED = ("dags", "expectations", "sources", "sql")
ROWS = 50
SECONDS = 300
SILVER = "/* silver\ndescription: Of a test.\nowner: tests\n*/\n"
GOLD = "/* gold\ndescription: Of a test.\nowner: tests\ngrain: [{grain}]\nrefresh: continuous\n*/\n"

# In the order in which they are deployed: what is new, and the view whose first row is awaited.
STAGES = {
    "a topic of JSON events": {
        "sources/store_visits.yml": """\
description: Visits to a store.
owner: tests
format: json
topic: store_visits
event_id: visit_id
event_time: at
columns: {visit_id: STRING, user_id: BIGINT, at: TIMESTAMP}
""",
        "sql/silver/store_visits.sql": SILVER
        + "SELECT s.visit_id, s.user_id, s.at FROM bronze.store_visits AS s\n",
        "sql/gold/visits_by_user.sql": GOLD.format(grain="user_id")
        + "SELECT v.user_id, COUNT(*) AS visits\nFROM silver.store_visits AS v\n"
        "GROUP BY v.user_id\n",
    },
    "a table of the database that has rows": {
        "sources/coupons.yml": """\
description: Coupons of users.
owner: tests
format: debezium
topic: shop.public.coupons
table: public.coupons
keys: [coupon_id]
columns: {coupon_id: {type: BIGINT, required: true}, user_id: BIGINT, percent: INT}
""",
        "sql/silver/coupons.sql": SILVER
        + "SELECT c.coupon_id, c.user_id, c.percent FROM bronze.coupons AS c\n",
        "sql/gold/coupons_now.sql": GOLD.format(grain="coupon_id")
        + "SELECT c.coupon_id, c.user_id, c.percent FROM silver.coupons AS c\n",
    },
    "a history": {
        "sql/silver/coupons_history.sql": SILVER.replace("*/", "stored_as_scd_type: 2\n*/")
        + "SELECT c.coupon_id, c.percent FROM bronze.coupons AS c\n",
        "sql/gold/coupon_versions.sql": GOLD.format(grain="coupon_id")
        + "SELECT h.coupon_id, COUNT(*) AS versions\nFROM silver.coupons_history AS h\n"
        "GROUP BY h.coupon_id\n",
    },
    "a join of five tables": {
        "sql/gold/order_facts.sql": GOLD.format(grain="order_id, line")
        + """\
SELECT o.order_id, i.line, u.country, p.category, c.percent, i.quantity
FROM silver.orders AS o
JOIN silver.order_items AS i ON i.order_id = o.order_id
JOIN silver.products AS p ON p.product_id = i.product_id
JOIN silver.users AS u ON u.user_id = o.user_id
LEFT JOIN silver.coupons AS c ON c.user_id = o.user_id
""",
    },
    "a view over that": {
        "sql/gold/items_by_country.sql": GOLD.format(grain="country")
        + "SELECT f.country, SUM(f.quantity) AS items, COUNT(*) AS n\nFROM gold.order_facts AS f\n"
        "GROUP BY f.country\n",
    },
}
VIEW, READER = "order_facts", "items_by_country"


@dataclass
class Journey:
    """A stack for a project that grows."""

    running: RunningStack
    shop: str
    load: BackgroundLoad
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return Path(self.running.settings.project_dir)

    def database(self) -> psycopg.Connection:
        return psycopg.connect(self.shop, autocommit=True)

    def processes(self) -> dict[str, int | None]:
        return {one.part: one.pid for one in self.running.stack.status()}

    def rows(self, view: str) -> list[dict]:
        location = Lake(self.running.settings.lake).location(TableName(Layer.GOLD, view))
        if not DeltaTable.is_deltatable(location):
            return []
        return DeltaTable(location).to_pyarrow_table().to_pylist()

    def deploy(self, stage: str) -> None:
        """Write the files of a stage, plan and apply them, and wait for the view's first row."""
        began = time.monotonic()
        write_files(self.project, STAGES[stage])
        planned = self.running.tidemark("plan", check=False)
        assert planned.returncode == CHANGES, planned.stdout + planned.stderr
        applied = self.running.tidemark("apply", "--yes", check=False, seconds=600)
        assert applied.returncode == 0, applied.stdout + applied.stderr
        view = Path(list(STAGES[stage])[-1]).stem
        if "JSON" in stage:
            self.visit()
        while not self.rows(view):
            assert time.monotonic() < began + SECONDS, f"{view} has no row"
            time.sleep(0.2)
        self.seconds[stage] = round(time.monotonic() - began, 1)

    def visit(self) -> None:
        producer = Producer(kafka_access(self.running.settings, Principal.LOADER).librdkafka())
        for at in range(20):
            event = {"visit_id": f"v{at}", "user_id": at % 5, "at": "2026-01-01T00:00:00Z"}
            producer.produce("store_visits", json.dumps(event).encode())
        assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    """The shipped project on the full stack, with the shop's tables under load and caught up."""
    project = tmp_path_factory.mktemp("journey")
    for name in COPIED:
        shutil.copytree(REPOSITORY / name, project / name)
    shutil.copy(REPOSITORY / "tidemark.yml", project)
    with new_stack(project, gold=SCHEDULE) as running:
        running.up()
        shop = shop_of(running)
        access = kafka_access(running.settings, Principal.LOADER)
        run_load(LoadOrder(rate=20, seconds=15, seed=20), shop_dsn=shop, kafka=access)
        wait_drained(running, shop)
        order = LoadOrder(rate=10, seconds=1500, seed=21)
        with BackgroundLoad(order, shop_dsn=shop, kafka=access) as load:
            load.start()
            yield Journey(running, shop, load)


def test_each_new_part_reaches_gold_by_plan_and_apply_alone(journey: Journey) -> None:
    running = journey.running
    running.tidemark("refresh", "orders_by_user", seconds=600)
    before = journey.processes()
    with journey.database() as connection:
        connection.execute(
            "CREATE TABLE coupons (coupon_id BIGINT PRIMARY KEY, user_id BIGINT, percent INT)"
        )
        connection.execute(
            "INSERT INTO coupons SELECT i, i, mod(i, 50) FROM generate_series(1, %s) AS i", [ROWS]
        )
        for stage in STAGES:
            journey.deploy(stage)
            # Changes flow before, while and after rows from before are read.
            connection.execute("UPDATE coupons SET percent = percent + 1 WHERE coupon_id <= 10")
        expected = set(
            connection.execute("SELECT coupon_id, user_id, percent FROM coupons").fetchall()
        )
    deadline = time.monotonic() + SECONDS
    found: set[tuple] = set()
    while found != expected and time.monotonic() < deadline:
        rows = journey.rows("coupons_now")
        found = {(row["coupon_id"], row["user_id"], row["percent"]) for row in rows}
        time.sleep(0.5)
    assert found == expected
    assert sum(row["visits"] for row in journey.rows("visits_by_user")) == 20
    # The history begins with the table's stage, so it has the changes from then on.
    assert max(row["versions"] for row in journey.rows("coupon_versions")) > 1
    assert journey.processes() == before
    assert running.tidemark("plan", check=False).returncode == 0
    print(f"seconds from file to first row: {journey.seconds}")


def test_a_breaking_change_is_previewed_built_promoted_and_undone(journey: Journey) -> None:
    running = journey.running
    file = journey.project / f"sql/gold/{VIEW}.sql"
    sql = file.read_text()
    file.write_text(sql + "WHERE i.quantity > 1\n")

    def timed(*arguments: str, code: int = 0) -> str:
        began = time.monotonic()
        ended = running.tidemark(*arguments, check=False, seconds=600)
        assert ended.returncode == code, ended.stdout + ended.stderr
        journey.seconds[" ".join(arguments[:3])] = round(time.monotonic() - began, 1)
        return ended.stdout

    print(timed("plan", code=CHANGES))
    preview = timed("diff", VIEW, "--markdown", code=DIFFERENT)
    print(preview)
    assert f"gold.{VIEW}" in preview
    assert f"gold.{READER}" in preview

    plan = timed("plan", "--env", "ana", code=CHANGES)
    assert VIEW in plan
    assert READER in plan
    timed("apply", "--env", "ana", "--yes")
    least = f"SELECT MIN(quantity) AS least FROM gold.{VIEW}"
    answer = timed("query", "--env", "ana", "--format", "json", least)
    assert json.loads(answer) == [{"least": 2}]
    assert min(row["quantity"] for row in journey.rows(VIEW)) == 1

    timed("env", "promote", "ana", "--yes")
    assert min(row["quantity"] for row in journey.rows(VIEW)) == 2
    timed("env", "drop", "ana", "--yes")
    # Undone: the file as it was, and one apply.
    file.write_text(sql)
    timed("apply", "--yes")
    deadline = time.monotonic() + SECONDS
    while min(row["quantity"] for row in journey.rows(VIEW)) != 1:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    print(f"seconds: {journey.seconds}")


def test_everything_is_right_afterwards(journey: Journey) -> None:
    with journey.database() as connection:
        connection.execute("DELETE FROM coupons WHERE coupon_id = 1")
    assert journey.load.running
    journey.load.stop()
    journey.load.finish()
    wait_drained(journey.running, journey.shop)
    assert_sound(journey.running, VIEW, READER, "coupons_now", "coupon_versions", "visits_by_user")
