"""A declaration that moves on: its tables follow where every value fits, and say where not."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_jobs.bronze.table import COLUMNS as BRONZE_TABLE
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.graph.compile import compile_project
from spark_jobs.settings import Settings
from spark_jobs.silver.errors import TypesDifferError
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import existing_table, schema
from spark_jobs.storage.streams import create_stream_table
from spark_jobs.storage.tables import append
from tests.spark.right import assert_right
from tests.spark.silver.world import Record, bronze

SOURCE = """
description: Orders of a shop.
owner: shop
format: debezium
topic: shop.public.orders
table: public.orders
keys: [order_id]
columns:
  order_id: {type: BIGINT, required: true}
"""
FIRST = {"quantity": "INT", "amount": "DECIMAL(8,2)", "weight": "FLOAT", "day": "DATE"}
WIDER = {"quantity": "BIGINT", "amount": "DECIMAL(12,3)", "weight": "DOUBLE", "day": "DATE"}
GOLD = """/* gold
description: Orders by day.
owner: shop
refresh: bulk
*/
SELECT o.day, SUM(o.quantity) AS quantity, SUM(o.amount) AS amount FROM silver.orders AS o
GROUP BY o.day
"""


class Project:
    """Declarations in files, their streams, and the view over them."""

    def __init__(self, spark: SparkSession, settings: Settings, store: ControlStore) -> None:
        self.spark, self.settings, self.store = spark, settings, store
        self.lake = Lake(settings.lake)
        self._landed = 0

    def declare(self, **types: str) -> None:
        root = Path(self.settings.project_dir)
        columns = "".join(f"  {name}: {kind!r}\n" for name, kind in types.items())
        names = ", ".join(f"o.{name}" for name in ("order_id", *types))
        silver = f"SELECT {names} FROM bronze.orders AS o\n"
        history = "stored_as_scd_type: 2\n"
        for file, text in {
            "sources/orders.yml": SOURCE + columns,
            "sql/silver/orders.sql": f"/* silver\ndescription: Orders.\n*/\n{silver}",
            "sql/silver/orders_past.sql": f"/* silver\ndescription: O.\n{history}*/\n{silver}",
            "sql/gold/days.sql": GOLD,
        }.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text, encoding="utf-8")
        self.manifest = compile_project(root)
        bronze_table = self.lake.location(self.manifest.sources["orders"].table_name)
        create_stream_table(self.spark, bronze_table, BRONZE_TABLE)
        self.flows = [
            SilverFlow(self.manifest.sources["orders"], entry, self.settings, self.store)
            for entry in self.manifest.silver.values()
        ]

    def take(self, *orders: dict[str, Any]) -> None:
        """Land changes, and let the streams begin and take them up."""
        records = [self._change(one) for one in orders]
        first = self._landed - len(records)
        frame = bronze(self.spark, records, first=first)
        place = self.lake.location(self.manifest.sources["orders"].table_name)
        append(frame.withColumn("arrival_date", sf.to_date("arrived_at")), place)
        for flow in self.flows:
            flow.create_tables(self.spark)
            query = flow.start(self.spark)
            try:
                query.processAllAvailable()
            finally:
                query.stop()

    def _change(self, row: dict[str, Any]) -> Record:
        self._landed += 1
        at = 100 * self._landed
        source = {"lsn": at, "sequence": json.dumps([str(at - 10), str(at)]), "ts_us": at}
        key = json.dumps({"order_id": row["order_id"]}).encode()
        return key, json.dumps({"op": "c", "after": row, "source": source}).encode()

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """A table's rows by a reader that is not Spark."""
        place = self.flow(name).tables.table
        found = DeltaTable(place).to_pyarrow_table(columns=list(columns)).to_pylist()
        return sorted((tuple(one[name] for name in columns) for one in found), key=repr)

    def flow(self, name: str) -> SilverFlow:
        return next(one for one in self.flows if one.entry.name == name)

    def assert_gold_is_its_sql(self, tick: str) -> None:
        refresher = Refresher(
            self.settings, self.manifest, self.store, session_factory=lambda _: self.spark
        )
        refresher.run("days", tick=tick)
        assert_right(refresher.context, "days")


def order(key: int, **more: Any) -> dict[str, Any]:
    values = {"quantity": key, "amount": f"{key}.50", "weight": 0.5, "day": "2026-01-02"}
    return {"order_id": key, **values, **more}


def test_a_declaration_moves_on(spark: SparkSession, settings: Settings) -> None:
    with ControlStore.open(settings.control_url) as store:
        project = Project(spark, settings, store)
        project.declare(**FIRST)
        project.take(order(1), order(2))
        project.assert_gold_is_its_sql("t1")

        project.declare(**WIDER, note="STRING")
        many, note = 2**40, "a column that is new"
        project.take(order(3, quantity=many, amount="123456789.125", note=note))
        expected = [
            (1, 1, Decimal("1.500"), None),
            (2, 2, Decimal("2.500"), None),
            (3, many, Decimal("123456789.125"), note),
        ]
        for name in ("orders", "orders_past"):
            assert project.rows(name, "order_id", "quantity", "amount", "note") == expected
            place = project.flow(name).tables.table
            types = {one.name: one.type for one in schema(place)}
            declared = {name: kind.lower() for name, kind in WIDER.items()}
            assert {name: types[name] for name in declared} == declared
        project.assert_gold_is_its_sql("t2")

        # Nothing moves where nothing is to be done.
        versions = [existing_table(one.tables.table).version() for one in project.flows]
        for flow in project.flows:
            flow.start(spark).stop()
        assert versions == [existing_table(one.tables.table).version() for one in project.flows]

        project.declare(**{**WIDER, "quantity": "STRING"}, note="STRING")
        for flow in project.flows:
            with pytest.raises(TypesDifferError) as caught:
                flow.start(spark)
            refused = caught.value
            assert (refused.table, refused.column) == (flow.entry.name, "quantity")
            assert (refused.held, refused.declared) == ("bigint", "string")
        project.flows = [project.flow("orders_past")]
        [flow] = project.flows
        assert flow.rebuilder(spark).run(by="me@here", reason="the column is a text now").reshaped
        project.take(order(4, quantity="many", note=None))
        texts = [(1, "1"), (2, "2"), (3, str(many)), (4, "many")]
        assert project.rows("orders_past", "order_id", "quantity") == texts
        assert flow.rebuilder(spark).preview().right
