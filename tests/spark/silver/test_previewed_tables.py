"""Edited silver tables are compared with the live ones, and with them the views that read them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.cli.diff import DIFFERENT
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.preview import Preview, TablePreview, changed_views
from spark_jobs.rollout.silver_copies import SilverCopies
from spark_jobs.settings import load_settings
from spark_jobs.silver.errors import SilverTableUnknownError
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.state.errors import TableLockedError
from spark_jobs.state.locks import table_lock
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.lake import Lake, lock_directory
from spark_jobs.storage.log import table_version
from tests.deployments import put_in_force
from tests.golden.declaration_cases import RIGHT, write_project
from tests.spark.silver.test_rebuild import Live
from tests.spark.silver.world import Record, bronze, change, event

SILVER = "/* silver\ndescription: One.\n*/\n"
GOLD = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + "*/\n"
ORDERS = "SELECT o.order_id, o.status, o.amount FROM bronze.orders AS o"
MORE = ORDERS.replace("o.amount", "CAST(o.amount + 1 AS DECIMAL(12, 2)) AS amount")
FILES = {
    "sources/orders.yml": "format: debezium\ntopic: shop.public.orders\nkeys: [order_id]\n"
    "columns: {order_id: BIGINT, status: STRING, amount: 'DECIMAL(12,2)'}\n",
    "sources/clicks.yml": "format: json\ntopic: clicks\nevent_id: event_id\n"
    "columns: {event_id: STRING, user_id: BIGINT}\n",
    # No record of it came yet.
    "sources/later.yml": "format: json\ntopic: later\nevent_id: id\ncolumns: {id: STRING}\n",
    "sql/silver/later.sql": SILVER + "SELECT l.id FROM bronze.later AS l",
    "sql/gold/spend.sql": None,
    "expectations/gold/spend.json": None,
    "sql/silver/orders.sql": SILVER + ORDERS,
    "sql/silver/clicks.sql": SILVER + "SELECT c.event_id, c.user_id FROM bronze.clicks AS c",
    "sql/gold/sums.sql": GOLD
    + "SELECT o.status, SUM(o.amount) AS amount FROM silver.orders AS o GROUP BY ALL",
    "sql/gold/numbers.sql": GOLD
    + "SELECT o.status, COUNT(*) AS orders FROM silver.orders AS o GROUP BY ALL",
    "sql/gold/visits.sql": GOLD
    + "SELECT c.user_id, COUNT(*) AS visits FROM silver.clicks AS c GROUP BY ALL",
}
CHANGES = [
    change("c", 1, 1, amount="1.50"),
    change("c", 2, 2, amount="2.00"),
    change("c", 3, 3, status="shipped", amount="4.00"),
    (b'{"order_id": 9}', b"not JSON"),
    change("u", 2, 4, amount="3.00"),
    change("c", 4, 5),
    change("d", 4, 6),
]
CLICKS = [event(event_id=f"e{n % 3}", user_id=n % 3) for n in range(4)]


class Project:
    """A project that was applied, its streams' tables, and its edited files."""

    def __init__(self, spark: SparkSession, folder: Path, store: ControlStore) -> None:
        self.spark, self.folder, self.store = spark, folder, store
        self.settings = load_settings(folder, state_dir=folder / "state")
        self.lake = Lake(self.settings.lake)
        write_project(folder, dict(FILES))
        self.before = self.applied = self.compiled()

    def reset(self) -> None:
        """Undo all edits."""
        for layer in ("silver", "gold"):
            for file in (self.folder / "sql" / layer).iterdir():
                file.unlink()
        write_project(self.folder, dict(FILES))
        self.before = self.applied

    def compiled(self) -> Manifest:
        return compile_project(self.folder)

    def live(self, name: str, records: list[Record]) -> None:
        """Run the stream of a table over some records."""
        entry = self.before.silver[name]
        declared = self.before.sources[entry.source], entry
        live = Live(self.spark, self.settings, self.store, declared)
        live.land(bronze(self.spark, records))
        with live.following() as query:
            query.processAllAvailable()

    def edit(self, **files: str) -> None:
        for name, sql in files.items():
            layer, _, table = name.partition("_")
            header = SILVER if layer == "silver" else GOLD
            (self.folder / f"sql/{layer}/{table}.sql").write_text(header + sql)

    def versions(self) -> list[int | None]:
        places = [
            SilverFlow(self.before.sources[name], entry, self.settings, self.store).tables
            for name, entry in self.before.silver.items()
        ]
        found = [table_version(place) for one in places for place in one.places]
        return [None if one is None else one.version for one in found]

    def preview(self, *names: str, views: tuple[str, ...] | None = ()) -> dict[str, TablePreview]:
        """As ``tidemark diff``, in the session of the tests."""
        after, versions = self.compiled(), self.versions()
        copies = SilverCopies(
            self.settings, self.store, self.before, after, lambda _: nullcontext(self.spark)
        )
        copies.check(names)
        context = GoldContext(self.settings, after, self.store, lambda _: self.spark)
        with copies.built(names, note=lambda _: None) as declared:
            preview = Preview(context, self.before, utc_now(), declared)
            found = list(preview.tables())
            moved = {one.table: one.noticed for one in found if not one.same}
            found += preview.differences(changed_views(self.before, after, views, moved=moved))
        assert self.versions() == versions
        assert not any((Path(self.settings.lake) / "_rebuild").glob("*"))
        return {one.table: one for one in found}


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("project")
    settings = load_settings(folder, state_dir=folder / "state")
    settings.state.mkdir()
    with ControlStore.open(settings.control_url) as store:
        made = Project(spark, folder, store)
        made.live("orders", CHANGES)
        made.live("clicks", CLICKS)
        yield made


@pytest.fixture
def project(made: Project) -> Project:
    made.reset()
    return made


def test_a_changed_column_reaches_the_views_that_read_it(project: Project) -> None:
    project.edit(silver_orders=MORE)
    found = project.preview("orders")

    assert list(found) == ["silver.orders", "gold.sums"]
    orders, sums = found["silver.orders"], found["gold.sums"]
    assert (orders.why, orders.rows.key) == ("changed", ("order_id",))
    assert (orders.rows.before, orders.rows.after, orders.rows.changed) == (3, 3, 3)
    assert orders.rows.columns == {"amount": 3}
    assert {one["amount"] for one in orders.rows.samples} == {
        "1.50 → 2.50",
        "3.00 → 4.00",
        "4.00 → 5.00",
    }
    assert sums.why == "reads silver.orders"
    assert {one["amount"] for one in sums.rows.samples} == {"4.50 → 6.50", "4.00 → 5.00"}


def test_rows_that_the_table_gains_or_loses_reach_all_its_views(project: Project) -> None:
    project.edit(silver_orders=ORDERS + " WHERE o.status = 'placed'")
    found = project.preview("orders")

    assert list(found) == ["silver.orders", "gold.numbers", "gold.sums"]
    assert (found["silver.orders"].rows.removed, found["silver.orders"].rows.added) == (1, 0)
    assert found["gold.numbers"].rows.removed == 1


def test_a_new_column_is_computed_for_a_view_that_reads_it(project: Project) -> None:
    project.edit(
        silver_orders=ORDERS.replace("o.amount", "o.amount, o.amount > 2 AS large"),
        gold_numbers="SELECT o.large, COUNT(*) AS orders FROM silver.orders AS o GROUP BY ALL",
    )
    project.edit(gold_last="SELECT n.large FROM gold.numbers AS n")
    alone = project.preview(views=None)
    assert list(alone) == ["gold.numbers", "gold.last"]
    assert alone["gold.last"].detail == alone["gold.numbers"].detail
    assert alone["gold.numbers"].rows is None
    assert "silver.orders has no column large yet" in alone["gold.numbers"].detail

    found = project.preview("orders", views=("gold.numbers",))
    orders, numbers = found["silver.orders"].rows, found["gold.numbers"].rows
    assert (orders.columns_added, orders.added, orders.changed) == (("large",), 0, 0)
    assert (numbers.before, numbers.after) == (2, 2)


def test_a_table_with_personal_data_hides_it_by_either_declaration(project: Project) -> None:
    held = project.before.silver["orders"]
    columns = tuple(one.model_copy(update={"pii": one.name == "status"}) for one in held.columns)
    silver = {**project.before.silver, "orders": held.model_copy(update={"columns": columns})}
    project.before = project.before.model_copy(update={"silver": silver})
    project.edit(silver_orders=ORDERS.replace("o.status", "UPPER(o.status) AS status"))
    rows = project.preview("orders")["silver.orders"].rows
    assert rows.changed == 3
    assert {one["status"] for one in rows.samples} == {"*** → ***"}


def test_new_tables_and_tables_of_another_source(project: Project) -> None:
    big = "SELECT o.order_id, o.amount FROM bronze.orders AS o WHERE o.amount > 2"
    project.edit(silver_big=big, gold_many="SELECT b.order_id FROM silver.big AS b")
    found = project.preview("big", "later")
    assert (found["silver.big"].why, found["silver.big"].rows.added) == ("new", 2)
    assert (found["gold.many"].why, found["gold.many"].rows.added) == ("new", 2)
    # Nothing came of that source yet.
    assert found["silver.later"].rows is None
    assert "bronze.later does not exist yet" in found["silver.later"].detail
    with pytest.raises(SilverTableUnknownError):
        project.preview("nothing")


def test_events_are_compared_by_their_id(project: Project) -> None:
    assert project.preview("clicks")["silver.clicks"].same
    sql = "SELECT c.event_id, c.user_id + 1 AS user_id FROM bronze.clicks AS c WHERE c.user_id > 0"
    project.edit(silver_clicks=sql)
    rows = project.preview("clicks")["silver.clicks"].rows
    assert (rows.key, rows.removed, rows.changed) == (("event_id",), 1, 2)


def test_a_rebuild_and_a_preview_exclude_each_other(project: Project) -> None:
    directory = lock_directory(project.settings.lake, project.settings.state)
    with table_lock(directory, "rebuild.orders"), pytest.raises(TableLockedError):
        project.preview("orders")


@pytest.mark.long
def test_the_command_compares_tables_and_views(project: Project) -> None:
    text = project.before.model_copy(update={"deployment": "d1"}).model_dump_json()
    put_in_force(project.store, text, number=1, name="d1", settings={})
    project.edit(silver_orders=MORE)
    tidemark = [str(Path(sys.executable).with_name("tidemark")), "--project", str(project.folder)]
    ran = subprocess.run(
        [*tidemark, "diff", "silver.orders", "--json"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "TIDEMARK_STATE_DIR": str(project.settings.state)},
    )
    assert ran.returncode == DIFFERENT, ran.stderr
    found = json.loads(ran.stdout)
    assert [(one["table"], one["changed"]) for one in found["tables"]] == [("silver.orders", 3)]
    assert [(one["view"], one["changed"]) for one in found["views"]] == [("sums", 2)]
