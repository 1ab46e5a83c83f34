"""A bit of a data file flips on disk: it is found, and a refresh repairs the table."""

from __future__ import annotations

from pathlib import Path
from random import Random
from shutil import rmtree

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage import log
from tests.spark.gold_project import GoldProject

FLIPS = 6
FOOTER_LENGTH = 8


def data_file(gold: GoldProject, table: str) -> Path:
    """The largest file of a table."""
    location = Path(gold.location(table))
    paths = log.files(log.open_table(str(location))).column("path").to_pylist()
    return max((location / path for path in paths), key=lambda file: file.stat().st_size)


def flip(file: Path, random: Random) -> bytes:
    """Flip one bit of a Parquet file before its footer; returns the file's content before."""
    before = file.read_bytes()
    footer = int.from_bytes(before[-FOOTER_LENGTH:-4], "little")
    at = random.randrange(4, len(before) - FOOTER_LENGTH - footer)
    damaged = bytearray(before)
    damaged[at] ^= 1 << random.randrange(8)
    file.write_bytes(damaged)
    return before


def rows(gold: GoldProject) -> object:
    """The published rows; None if they cannot be read."""
    try:
        return gold.rows("totals")
    except (PySparkException, Py4JJavaError):
        return None


def passes(gold: GoldProject) -> bool:
    try:
        return gold.verify("totals").passed
    except QueryFailedError:
        return False


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_verify_finds_what_readers_would_not(gold: GoldProject, seed: int) -> None:
    gold.refresh("totals", "t1")
    whole, random, found = gold.rows("totals"), Random(seed), 0
    file = data_file(gold, "gold.totals")
    for _ in range(FLIPS):
        before = flip(file, random)
        # Some bits are read by nobody.
        assert passes(gold) == (rows(gold) == whole)
        found += not passes(gold)
        file.write_bytes(before)
    assert found
    while passes(gold):
        flip(file, random)
    # A refresh compares, and leaves files alone whose rows it can read and finds equal.
    rmtree(gold.location("gold.totals"))
    gold.refresh("totals", "t2")
    gold.assert_right("totals")
    assert gold.rows("totals") == whole


def test_a_damaged_input_fails_the_refresh_that_reads_it(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    added = "SELECT 9L AS order_id, 'zoe' AS customer, CAST(7 AS DECIMAL(12, 2)) AS amount"
    gold.spark.sql(added).coalesce(1).write.format("delta").mode("append").save(
        gold.location("silver.orders")
    )
    location = Path(gold.location("silver.orders"))
    newest = max(location.glob("*.parquet"), key=lambda one: one.stat().st_mtime_ns)
    before = flip(newest, Random(3))
    with pytest.raises(QueryFailedError, match=newest.name):
        gold.refresh("totals", "t2")
    assert gold.reason("totals") != "NO_UPSTREAM_CHANGE"
    newest.write_bytes(before)
    assert gold.refresh("totals", "t3").status is AttemptStatus.PUBLISHED
    gold.assert_right("totals")
