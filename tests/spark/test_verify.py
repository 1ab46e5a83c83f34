"""Verifying: floats within a tolerance, samples, and the evidence that is kept."""

from __future__ import annotations

import json

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from spark_jobs.gold.verify.published import Finding, verify
from spark_jobs.gold.verify.sampling import (
    BUCKETS,
    COMPARED,
    any_buckets,
    bucket_columns,
    sample_of,
)
from spark_jobs.gold.verify.tolerance import Closeness, close_rows
from spark_jobs.storage.tables import session_values
from tests.spark.gold_project import GoldProject

EVERY = tuple(range(BUCKETS))
MANY = """SELECT id AS order_id, concat('c', id % 40) AS customer,
CAST(id AS DECIMAL(12, 2)) AS amount FROM RANGE(1000)"""
WEIGHTS = """SELECT o.customer, COUNT(*) AS orders, SUM(CAST(o.amount AS DOUBLE)) AS weight
FROM silver.orders AS o GROUP BY o.customer"""
# Rewrites a published table as a refresh would have published it, with other content.
FORGED = """INSERT OVERWRITE {} SELECT customer, orders, weight * (1 + {}) AS weight FROM {}"""


def rows(gold: GoldProject, values: str) -> DataFrame:
    return gold.spark.sql(f"SELECT * FROM VALUES {values} AS v(k, x, y)")


@pytest.mark.parametrize(
    ("left", "right", "largest"),
    [
        ("(1, 1D, 1D)", "(1, 1D, 1.0000000001D)", 1e-10),
        ("(1, 1D, 1D)", "(1, 1D, 1.00000001D)", None),
        ("(1, 1D, 1D)", "(2, 1D, 1.0000000001D)", None),
        ("(1, 1D, 1D), (1, 1D, 1D)", "(1, 1D, 1.0000000001D)", None),
        ("(1, 1D, NULL)", "(1, 1.0000000001D, NULL)", 1e-10),
        ("(1, 1D, NULL)", "(1, 1D, 0D)", None),
        ("(NULL, 1D, double('NaN'))", "(NULL, 1.0000000001D, double('NaN'))", 1e-10),
        ("(1, 1D, double('NaN'))", "(1, 1D, 1D)", None),
        ("(1, 1D, double('Infinity'))", "(1, 1D, 1e308D)", None),
        ("(1, 1D, 0D)", "(1, 1D, 1e-300D)", None),
        # Alike in all else: the order of the second float pairs them.
        (
            "(1, 1D, 5D), (1, 1.0000000001D, 3D)",
            "(1, 1.0000000002D, 5D), (1, 1.0000000001D, 3.0000000001D)",
            2e-10,
        ),
    ],
)
def test_floats_are_compared_with_a_tolerance(
    gold: GoldProject, left: str, right: str, largest: float | None
) -> None:
    found = close_rows(rows(gold, left), rows(gold, right), tolerance=1e-9)
    if largest is None:
        assert found is None
    else:
        assert isinstance(found, Closeness)
        assert found.largest == pytest.approx(largest, rel=1e-5)


def forge(gold: GoldProject, factor: str) -> None:
    """Change the published floats, and make the change look like a publication."""
    location = gold.location("gold.weights")
    mark = gold.publications("weights")[-1]
    conf = {"spark.databricks.delta.commitInfo.userMetadata": json.dumps(mark)}
    with session_values(gold.spark, conf):
        table = f"delta.`{location}`"
        gold.spark.sql(FORGED.format(table, factor, f"{table} VERSION AS OF 0")).collect()


def test_a_verification_says_what_it_found_and_keeps_it(gold: GoldProject) -> None:
    gold.append("silver.orders", MANY)
    gold.view("weights", WEIGHTS, maintained=True)
    gold.refresh("weights", "t1")
    assert gold.verify("weights").finding is Finding.EQUAL

    forge(gold, "1e-12D")
    close = gold.verify("weights")
    assert close.passed
    assert close.finding is Finding.EQUAL_WITHIN_TOLERANCE
    assert close.largest_difference == pytest.approx(1e-12, rel=1e-3)
    assert "1e-09 is tolerated" in close.detail

    sampled = verify(gold.refresher.context, "weights", buckets=lambda _: EVERY)
    assert sampled.finding is Finding.EQUAL_WITHIN_TOLERANCE
    assert sampled.sample is not None
    assert sampled.sample.by == ("customer",)
    assert sampled.sample.rows == close.rows

    forge(gold, "1e-6D")
    assert gold.verify("weights").finding is Finding.ROWS_DIFFER
    wrong = verify(gold.refresher.context, "weights", buckets=lambda _: EVERY)
    assert not wrong.passed
    assert wrong.missing == wrong.unexpected
    assert wrong.examples

    newest, *_, oldest = gold.store.verifications("weights")
    assert oldest.finding == "EQUAL"
    assert oldest.vector == close.vector.as_dict()
    assert newest.finding == "ROWS_DIFFER"
    assert newest.sample == wrong.sample.as_dict()
    assert sum(one["actual"] for one in newest.sample["buckets"]) == newest.rows


def test_a_quiet_view_is_verified_after_an_input_was_compacted_and_vacuumed(
    gold: GoldProject,
) -> None:
    for _ in range(2):
        gold.append("silver.orders", MANY)
    gold.view("weights", WEIGHTS, maintained=True)
    gold.refresh("weights", "t1")
    orders = DeltaTable(gold.location("silver.orders"))
    computed = orders.version()
    orders.optimize.compact()
    orders.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert gold.refresh("weights", "t2").plan.reason.code == "NO_UPSTREAM_CHANGE"
    found = gold.verify("weights")
    assert found.finding is Finding.EQUAL
    assert found.vector.as_dict()["silver.orders"]["version"] == computed


def test_a_sample_compares_only_its_buckets(gold: GoldProject) -> None:
    left = gold.spark.sql("SELECT id, CAST(id AS DOUBLE) AS x FROM RANGE(1000)")
    right = gold.spark.sql("SELECT id, IF(id = 7, 0D, CAST(id AS DOUBLE)) AS x FROM RANGE(1000)")
    everything = sample_of(left, right, key=(), numbers=EVERY)
    assert everything.by == ("id",)
    assert everything.rows == 1000
    [number] = everything.differing
    others = [one for one in EVERY if one != number]
    assert sample_of(left, right, key=(), numbers=others).differing == ()
    assert sample_of(left, right, key=(), numbers=[number]).differing == (number,)


def test_small_tables_are_compared_in_all_buckets() -> None:
    assert any_buckets(9_999) == EVERY
    for rows in (10_000, None):
        chosen = any_buckets(rows)
        assert len(set(chosen)) == COMPARED
        assert set(chosen) < set(EVERY)


def test_buckets_use_the_key_or_all_comparable_columns(gold: GoldProject) -> None:
    frame = gold.spark.sql("SELECT 1 AS a, 2D AS b, ARRAY(1) AS c, NULL AS `d``e`")
    assert bucket_columns(frame, ["A"]) == ("a",)
    assert bucket_columns(frame, ["b"]) == ("a", "d`e")
    assert bucket_columns(frame, []) == ("a", "d`e")
    # Nothing to choose by: one bucket, and nested values are compared themselves.
    nested = frame.select("b", "c")
    found = sample_of(nested, nested, key=(), numbers=EVERY)
    assert (found.by, found.of, found.rows) == ((), 1, 1)
    assert found.differing == (0,)


def test_hashes_distinguish_null(gold: GoldProject) -> None:
    left = gold.spark.sql("SELECT 1 AS id, 'a' AS x, CAST(NULL AS STRING) AS y")
    right = gold.spark.sql("SELECT 1 AS id, CAST(NULL AS STRING) AS x, 'a' AS y")
    assert sample_of(left, right, key=["id"], numbers=EVERY).differing
