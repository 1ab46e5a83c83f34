"""A preview computes both sides over one state of the inputs, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.preview import Preview, TablePreview, changed_views
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.compiled import delta_schema
from tests.golden.declaration_cases import RIGHT, write_project

HEADER = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + "*/\n"
FILES = {
    "sources/sales.yml": "format: delta\nlocation: sales\n",
    "sql/gold/totals.sql": HEADER
    + "SELECT s.buyer, SUM(s.amount) AS total, COUNT(*) AS sales\nFROM bronze.sales AS s\n"
    "GROUP BY ALL",
    "sql/gold/best.sql": HEADER
    + "SELECT t.buyer, t.total FROM gold.totals AS t WHERE t.total > 20",
    "sql/gold/counts.sql": HEADER + "SELECT t.buyer, t.sales FROM gold.totals AS t",
}


@pytest.fixture
def previewed(tmp_path: Path, spark: SparkSession):
    rows = {"buyer": pa.array([1, 1, 2, 3], pa.int64()), "amount": pa.array([5, 10, 20, 30])}

    def compiled(folder: str, files: dict[str, str]) -> Manifest:
        project = tmp_path / folder
        project.mkdir()
        write_project(project, {**FILES, **files})
        link = project / "sales"
        if not link.exists():
            write_deltalake(tmp_path / "sales", pa.table(rows), mode="ignore")
            link.symlink_to(tmp_path / "sales")
        return compile_project(project, delta_schema=delta_schema)

    def run(files: dict[str, str], were: dict[str, str] | None = None) -> dict[str, TablePreview]:
        before, after = compiled("before", were or {}), compiled("after", files)
        settings = load_settings(tmp_path / "after", state_dir=tmp_path / "state")
        with ControlStore.open(settings.control_url) as store:
            context = GoldContext(settings, after, store, lambda _: spark)
            preview = Preview(context, before, utc_now())
            found = list(preview.differences(changed_views(before, after)))
            assert set(preview.versions) <= {"bronze.sales"}
        # Nothing was published, and no name is left behind.
        assert not (Path(settings.lake) / "gold").exists()
        left = [one.viewName for one in spark.sql("SHOW VIEWS").collect()]
        assert not [one for one in left if "preview" in one]
        return {one.table.removeprefix("gold."): one for one in found}

    return run


def test_rows_are_compared_by_key_through_the_views_below(previewed) -> None:
    sql = FILES["sql/gold/totals.sql"].replace("SUM(s.amount)", "MAX(s.amount) * 2")
    found = previewed({"sql/gold/totals.sql": sql})
    totals, best = found["totals"].rows, found["best"].rows

    # Of 15, 20 and 30 becomes 20, 40 and 60.
    assert "counts" not in found
    assert (totals.before, totals.after) == (3, 3)
    assert (totals.added, totals.removed, totals.changed) == (0, 0, 3)
    assert totals.columns == {"total": 3}
    assert totals.key == ("buyer",)
    assert {row["total"] for row in totals.samples} == {"15 → 20", "20 → 40", "30 → 60"}
    assert found["best"].why == "reads gold.totals"
    assert (best.before, best.after, best.added, best.removed) == (1, 2, 1, 0)


def test_rows_that_a_key_of_one_side_only_identifies_are_compared_as_rows(
    previewed,
) -> None:
    """Each buyer of the new result would meet several old rows, or the other way round."""
    plain = HEADER + "SELECT s.buyer FROM bronze.sales AS s"
    once = plain.replace("SELECT s.", "SELECT DISTINCT s.")
    found = previewed({"sql/gold/once.sql": once}, {"sql/gold/once.sql": plain})["once"]
    assert not found.same
    assert (found.rows.before, found.rows.after) == (4, 3)
    assert (found.rows.added, found.rows.removed, found.rows.changed) == (0, 1, None)
    assert found.rows.key == ()
    assert "buyer" in found.rows.detail


def test_new_columns_and_new_views(previewed) -> None:
    sql = FILES["sql/gold/totals.sql"].replace(
        "COUNT(*) AS sales", "COUNT(*) AS sales, MIN(s.amount) AS least"
    )
    more = {"sql/gold/fresh.sql": HEADER + "SELECT s.buyer FROM bronze.sales AS s"}
    found = previewed({"sql/gold/totals.sql": sql, **more})

    assert set(found) == {"totals", "fresh"}
    assert found["totals"].rows.columns_added == ("least",)
    assert (found["totals"].rows.added, found["totals"].rows.changed) == (0, 0)
    assert not found["totals"].same
    assert (found["fresh"].why, found["fresh"].rows.added) == ("new", 4)


def test_a_missing_input_is_reported(previewed) -> None:
    sql = FILES["sql/gold/counts.sql"].replace(
        "FROM gold.totals AS t",
        "FROM gold.totals AS t JOIN silver.orders AS o ON o.user_id = t.buyer",
    )
    found = previewed({"sql/gold/counts.sql": sql})

    assert found["counts"].rows is None
    assert "silver.orders" in found["counts"].detail
