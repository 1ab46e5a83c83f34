"""Partitions and liquid clustering: as declared after every kind of write, and after a change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.graph.manifest import Manifest, SilverEntry, SourceEntry
from spark_jobs.serving.cleanup import clustering
from spark_jobs.settings import Settings
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage import log
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.layout import Layout, clustering_columns, partition_columns
from tests.spark.gold_project import GoldProject
from tests.spark.silver.world import CHANGES, CLICKS, EVENTS, ORDERS, applier, bronze, change, event

LINES = "SELECT o.order_id, o.customer, o.amount FROM silver.orders AS o"
MORE = "SELECT 9L AS order_id, 'cat' AS customer, CAST(7 AS DECIMAL(12, 2)) AS amount"


def layout(spark: SparkSession, location: str) -> Layout:
    return Layout(partition_columns(location), clustering_columns(location, lambda: spark))


def lay_out(gold: GoldProject, wanted: Layout) -> None:
    """Declare the view with a layout, as the compiled project would."""
    gold.view("lines", LINES, maintained=True)
    entry = gold.manifest.gold["lines"]
    changed = {
        "partition_by": wanted.partition_by,
        "cluster_by": wanted.cluster_by,
        "fingerprint": f"{entry.fingerprint[:40]}{'-'.join(wanted.partition_by)}",
        "parts": None,
    }
    views = {**gold.manifest.gold, "lines": entry.model_copy(update=changed)}
    gold.manifest = gold.manifest.model_copy(update={"gold": views})


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (Layout(("customer",)), Layout((), ("customer", "amount"))),
        (Layout((), ("amount",)), Layout(("customer",))),
    ],
    ids=["partitioned", "clustered"],
)
def test_a_view_keeps_its_layout_until_another_is_declared(
    gold: GoldProject, first: Layout, then: Layout
) -> None:
    def assert_laid_out(wanted: Layout) -> None:
        assert layout(gold.spark, gold.location("gold.lines")) == wanted
        gold.assert_right("lines")

    lay_out(gold, first)
    gold.refresh("lines", "first build")
    assert_laid_out(first)
    gold.append("silver.orders", MORE)
    assert gold.refresh("lines", "a change").plan.word == "incremental"
    assert_laid_out(first)
    gold.execute("DELETE FROM {}", "gold.lines")
    gold.refresh("lines", "rebuilt")
    assert_laid_out(first)

    lay_out(gold, then)
    gold.refresh("lines", "another layout")
    gold.append("silver.orders", MORE)
    gold.refresh("lines", "a change again")
    assert_laid_out(then)


def test_maintenance_clusters_files_once(gold: GoldProject, monkeypatch: Any) -> None:
    lay_out(gold, Layout((), ("customer",)))
    location = gold.location("gold.lines")
    gold.refresh("lines", "first build")
    for tick in ("1", "2"):
        gold.append("silver.orders", MORE)
        gold.refresh("lines", tick)
    before = log.size(location).files
    monkeypatch.setattr(clustering, "_session", lambda *_: gold.spark)

    def clustered() -> list[str]:
        opened: Any = SimpleNamespace(
            settings=gold.settings, manifest=gold.manifest, store=gold.store
        )
        return list(clustering.cluster_tables(opened, {"gold.lines", "gold.totals"}))

    assert clustered() == ["gold.lines"]
    newest = log.commits(location, limit=1)[0]
    assert newest.operation == "OPTIMIZE"
    assert log.size(location).files < before
    assert clustered() == []
    # Nobody who reads the view sees a change.
    assert gold.refresh("lines", "after").plan.word == "skip"
    gold.assert_right("lines")

    # Files that are arranged by another column are all arranged again.
    lay_out(gold, Layout((), ("amount",)))
    assert clustered() == ["gold.lines"]
    assert layout(gold.spark, location).cluster_by == ("amount",)


def test_maintenance_rewrites_files_without_nan_in_their_bounds_once(
    gold: GoldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that delta-rs compacted in earlier releases: for Spark NaN is the largest number."""
    sql = "SELECT o.order_id, DOUBLE('NaN') AS ratio FROM silver.orders AS o WHERE o.order_id = {}"
    gold.view("ratios", f"{sql.format(1)} UNION ALL {sql.format(9)}".replace("'NaN'", "'1'", 1))
    location = gold.location("gold.ratios")
    gold.refresh("ratios", "first build")
    gold.append("silver.orders", MORE)
    gold.refresh("ratios", "a change")
    monkeypatch.setattr(clustering, "_session", lambda *_: gold.spark)
    opened: Any = SimpleNamespace(settings=gold.settings, manifest=gold.manifest, store=gold.store)

    def corrected() -> list[str]:
        return list(clustering.correct_tables(opened, {"gold.ratios", "gold.totals"}))

    def large() -> int:
        frame = gold.spark.read.format("delta").load(location)
        return frame.where("ratio > 5").count()

    assert large() == 1
    DeltaTable(location).optimize.z_order(["order_id"])
    assert (log.size(location).files, large()) == (1, 0)
    assert corrected() == ["gold.ratios"]
    assert (corrected(), large()) == ([], 1)
    # Nobody who reads the view sees a change.
    assert gold.refresh("ratios", "after").plan.word == "skip"
    gold.assert_right("ratios")


@pytest.mark.parametrize(
    ("source", "entry", "partitions", "clustered"),
    [
        (CHANGES, ORDERS, "status", "order_id"),
        pytest.param(EVENTS, CLICKS, "user_id", "at", marks=pytest.mark.long),
    ],
    ids=["current rows", "events"],
)
def test_a_silver_table_is_written_in_its_layout(
    spark: SparkSession,
    settings: Settings,
    source: SourceEntry,
    entry: SilverEntry,
    *,
    partitions: str,
    clustered: str,
) -> None:
    lake, batch = Lake(settings.lake), 0
    layouts = [Layout((partitions,)), Layout((), (clustered,)), Layout((partitions,)), Layout()]
    for wanted in layouts:
        declared = entry.model_copy(
            update={"partition_by": wanted.partition_by, "cluster_by": wanted.cluster_by}
        )
        tables = SilverTables.of(lake, declared)
        tables.create(spark, source)
        tables.evolve(spark, source)
        for _ in range(2):
            batch += 1
            records = (
                [change("c", batch, 100 + batch, commit=99 + batch)]
                if source is CHANGES
                else [event(event_id=f"e{batch}", user_id=batch % 2, at="2026-01-01T00:00:00Z")]
            )
            applier(lake, source, declared).apply(bronze(spark, records, first=batch), batch)
            assert layout(spark, tables.table) == wanted
        assert DeltaTable(tables.table).to_pyarrow_table().num_rows == batch


def test_the_shipped_layout_reaches_a_table_that_has_none(
    spark: SparkSession, settings: Settings, shipped: Manifest
) -> None:
    lake, source = Lake(settings.lake), shipped.sources["request_log"]
    entry = shipped.silver["request_log"]
    assert entry.cluster_by
    before = entry.model_copy(update={"cluster_by": ()})
    for batch, declared in enumerate((before, entry, entry), start=1):
        tables = SilverTables.of(lake, declared)
        tables.create(spark, source)
        tables.evolve(spark, source)
        request = event(
            event_id=f"e{batch}",
            service="search",
            status=200,
            latency_ms=batch,
            event_time="2026-01-02T00:00:00Z",
        )
        applier(lake, source, declared).apply(bronze(spark, [request], first=batch), batch)
        assert layout(spark, tables.table) == Layout.of(declared)
    assert DeltaTable(tables.table).to_pyarrow_table().num_rows == 3
