"""A copied table is another table with the same rows."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.storage import log, tables
from spark_jobs.storage.delta import CHANGE_FEED
from tests.spark.templates import Templates

ROWS = "SELECT 1 AS id, 'a' AS name UNION ALL SELECT 2, NULL"


def test_copies_have_the_rows_and_an_identity_of_their_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    made: list[str] = []

    def make(location: str) -> None:
        made.append(location)
        tables.append(spark.sql(ROWS), location, properties=CHANGE_FEED)

    templates = Templates(tmp_path / "templates")
    places = [str(tmp_path / name) for name in ("one", "other")]
    for place in places:
        templates.copy(ROWS, place, make)
    assert len(made) == 1
    versions = [log.table_version(place) for place in (*made, *places)]
    assert {one and one.version for one in versions} == {0}
    assert len({one and one.table_id for one in versions}) == 3

    spark.sql(f"DELETE FROM delta.`{places[0]}` WHERE id = 1")
    left = [tables.read(spark, place).collect() for place in (places[0], places[1], made[0])]
    assert [len(rows) for rows in left] == [1, 2, 2]
    # The change feed is on in the copy as well.
    [change] = tables.changes(spark, places[0], after=0, upto=1).collect()
    assert (change["id"], change["_change_type"]) == (1, "delete")
