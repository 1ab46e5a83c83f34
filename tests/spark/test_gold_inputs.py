"""Inputs that are restored, recreated, rewound, or gone; tables that others write."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.gold.base.errors import InputReplacedError, NotPublishedError
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.state.attempts import AttemptStatus
from tests.spark.gold_project import GoldProject

MORE = "SELECT 4L AS order_id, 'eve' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount"


def test_a_restored_input_is_a_change_like_any_other(gold: GoldProject) -> None:
    gold.append("silver.orders", MORE)
    gold.refresh("totals", "t1")
    gold.execute("RESTORE TABLE {} TO VERSION AS OF 0", "silver.orders")
    outcome = gold.refresh("totals", "t2")
    assert outcome.plan.reason.code == "INPUT_CHANGED_NO_RULE"
    assert "eve" not in {row[0] for row in gold.rows("totals")}
    gold.assert_right("totals")


def test_an_input_recreated_is_read_in_full(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    shutil.rmtree(gold.location("silver.orders"))
    gold.append("silver.orders", MORE)
    outcome = gold.refresh("totals", "t2")
    assert outcome.plan.line == "full: silver.orders was recreated"
    assert [row[0] for row in gold.rows("totals")] == ["eve"]


def test_an_input_that_vanished_keeps_the_published_content(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    before = gold.rows("totals")
    shutil.rmtree(gold.location("silver.orders"))
    outcome = gold.refresh("totals", "t2")
    assert outcome.plan.reason.code == "INPUT_MISSING"
    assert outcome.status is AttemptStatus.SKIPPED
    assert gold.rows("totals") == before
    gold.append("silver.orders", MORE)
    assert gold.refresh("totals", "t3").status is AttemptStatus.PUBLISHED


def test_a_pinned_table_that_was_replaced_is_not_read(gold: GoldProject) -> None:
    plan = gold.refresher.plan("totals", tick="t1")
    shutil.rmtree(gold.location("silver.orders"))
    gold.append("silver.orders", MORE)
    with pytest.raises(InputReplacedError):
        gold.refresher.stage(plan.attempt_id)
    assert gold.refresh("totals", "t1").plan.reason.code == "INPUT_MISSING"
    assert gold.refresh("totals", "t2").status is AttemptStatus.PUBLISHED


def test_an_input_that_lost_versions_is_read_in_full(gold: GoldProject) -> None:
    backup = Path(gold.location("silver.backup"))
    shutil.copytree(gold.location("silver.orders"), backup)
    gold.append("silver.orders", MORE)
    gold.refresh("totals", "t1")
    shutil.rmtree(gold.location("silver.orders"))
    shutil.copytree(backup, gold.location("silver.orders"))
    outcome = gold.refresh("totals", "t2")
    assert outcome.plan.reason.code == "INPUT_REWOUND"
    assert outcome.status is AttemptStatus.PUBLISHED
    assert len(gold.rows("totals")) == 3
    gold.assert_right("totals")


def test_verify_without_a_publication_says_so(gold: GoldProject) -> None:
    with pytest.raises(NotPublishedError):
        gold.verify("totals")


def foreign(gold: GoldProject, location: Path) -> None:
    """Declare bronze.parcels over a table of another writer, and a view over it."""
    source = SourceEntry(
        name="parcels",
        format=SourceFormat.DELTA,
        location=str(location),
        columns=(),
        file="sources/parcels.yml",
    )
    gold.manifest = gold.manifest.model_copy(update={"sources": {"parcels": source}})
    gold.view(
        "parcel_count",
        "SELECT p.city AS city, COUNT(*) AS parcels FROM bronze.parcels AS p GROUP BY p.city",
        inputs=("bronze.parcels",),
    )


def test_a_table_of_another_writer_is_an_input(gold: GoldProject, tmp_path: Path) -> None:
    location = tmp_path / "some one's" / "parcels"
    rows = pa.table({"city": ["Bonn", "Bonn", None], "at": pa.array([1, 2, 3], pa.int32())})
    write_deltalake(location, rows)
    foreign(gold, location)
    gold.refresh("parcel_count", "t1")
    assert gold.rows("parcel_count") == [(None, 1), ("Bonn", 2)]
    write_deltalake(location, rows.slice(0, 1), mode="append")
    assert "@0→@1" in gold.refresh("parcel_count", "t2").plan.line
    assert gold.rows("parcel_count") == [(None, 1), ("Bonn", 3)]
    gold.assert_right("parcel_count")

    shutil.rmtree(location)
    write_deltalake(location, rows.slice(2, 1))
    assert gold.refresh("parcel_count", "t3").plan.reason.code == "INPUT_RECREATED"
    assert gold.rows("parcel_count") == [(None, 1)]


def test_a_table_that_plain_spark_writes_is_an_input(gold: GoldProject, tmp_path: Path) -> None:
    location = tmp_path / "parcels"
    frame = gold.spark.sql("SELECT 'Bonn' AS city, EXPLODE(SEQUENCE(1, 50)) AS id").coalesce(1)
    writer = frame.write.format("delta").option("delta.enableDeletionVectors", "true")
    writer.save(str(location))
    foreign(gold, location)
    gold.refresh("parcel_count", "t1")
    gold.spark.sql(f"DELETE FROM delta.`{location}` WHERE id <= 2")
    gold.refresh("parcel_count", "t2")
    assert gold.rows("parcel_count") == [("Bonn", 48)]
    gold.assert_right("parcel_count")
