"""Gaps in what an input says about its changes: found, named, and made good."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.gold.verify.published import Finding
from spark_jobs.graph.maintenance import zeros
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log, policy, tables
from spark_jobs.storage.policy import Limit
from tests.spark.gold_project import GoldProject
from tests.spark.templates import Templates

SALES = "SELECT * FROM VALUES {} AS v(user_id, amount, note)"
FIRST = SALES.format("(1, 10, 'a'), (1, 20, 'b'), (2, NULL, NULL), (2, NULL, NULL)")
ROWS = "SELECT s.user_id, s.amount FROM silver.{} AS s"
SUMS = "SELECT s.user_id, SUM(s.amount) AS total FROM silver.{} AS s GROUP BY s.user_id"
FEED = "delta.enableChangeDataFeed"
TICKS = itertools.count()
INCREMENTAL = "INPUT_CHANGED_RULE"


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, templates: Templates
) -> Iterator[GoldProject]:
    """One project for all tests."""
    folder = tmp_path_factory.mktemp("gaps")
    settings = load_settings(folder, state_dir=folder / "state", spark={"master": "local[2]"})
    with ControlStore.open(settings.control_url) as store:
        yield GoldProject(spark, settings, store, templates=templates)


@pytest.fixture(scope="module")
def project(lake: GoldProject) -> GoldProject:
    """Over silver.sales a view that is up to date, whatever an earlier test did to the table."""
    published(lake, "sales")
    return lake


def published(project: GoldProject, table: str, query: str = ROWS) -> None:
    """A table with a view of the same name over it."""
    project.append(f"silver.{table}", FIRST)
    project.view(table, query.format(table), inputs=(f"silver.{table}",), maintained=True)
    assert followed(project, table) == "FIRST_BUILD"


def followed(project: GoldProject, view: str = "sales") -> str:
    """Refresh, compare with the SQL, and say by which reason it was done."""
    outcome = project.refresh(view, f"t{next(TICKS)}")
    project.assert_right(view)
    return outcome.plan.reason.code


def add(
    project: GoldProject, rows: str = "(1, 1, NULL), (3, 4, 'c')", table: str = "sales"
) -> None:
    project.append(f"silver.{table}", SALES.format(rows))


def feed(project: GoldProject, *, on: bool) -> None:
    value = str(on).lower()
    project.execute(f"ALTER TABLE {{}} SET TBLPROPERTIES ('{FEED}' = '{value}')", "silver.sales")


REWRITES = {
    "restored": "RESTORE TABLE {} TO VERSION AS OF 0",
    "overwritten": "INSERT OVERWRITE {} VALUES (1, 10, 'a'), (2, 5, 'n')",
    "replaced in part": "INSERT INTO {} REPLACE WHERE user_id = 1 VALUES (1, 10, 'a'), (1, 2, 'b')",
    "truncated": "DELETE FROM {}",
    "with deletion vectors": "DELETE FROM {} WHERE amount = 1",
    "merged": "MERGE INTO {} AS t USING (SELECT 1 AS user_id) AS s ON t.user_id = s.user_id "
    "WHEN MATCHED AND t.amount > 5 THEN UPDATE SET note = 'm' WHEN MATCHED THEN DELETE",
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_rewritten_input_is_followed(lake: GoldProject, name: str) -> None:
    # A table of its own: RESTORE wants a past that no other test took away.
    table = name.replace(" ", "_")
    vectors = str(name == "with deletion vectors").lower()
    published(lake, table)
    add(lake, table=table)
    lake.execute(
        f"ALTER TABLE {{}} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')",
        f"silver.{table}",
    )
    lake.execute(REWRITES[name], f"silver.{table}")
    assert followed(lake, table) == INCREMENTAL


def test_compaction_is_no_change(project: GoldProject) -> None:
    add(project)
    add(project)
    followed(project)
    project.execute("OPTIMIZE {}", "silver.sales")
    assert project.reason("sales") == "NO_UPSTREAM_CHANGE"
    add(project)
    assert followed(project) == INCREMENTAL


def test_a_feed_that_was_off_for_a_while_is_missed(project: GoldProject) -> None:
    feed(project, on=False)
    add(project)
    feed(project, on=True)
    add(project)
    assert followed(project) == "CHANGE_FEED_MISSING"
    add(project)
    assert followed(project) == INCREMENTAL


def test_commits_that_were_cleaned_up_are_missed(project: GoldProject) -> None:
    add(project)
    location = project.location("silver.sales")
    gone = DeltaTable(location).version()
    add(project)
    DeltaTable(location).create_checkpoint()
    for name in (f"{gone:020}.json", f".{gone:020}.json.crc", f"{gone:020}.crc"):
        (Path(location) / "_delta_log" / name).unlink(missing_ok=True)
    assert followed(project) == "CHANGE_FEED_MISSING"


def test_changes_that_were_vacuumed_are_missed(project: GoldProject) -> None:
    add(project)
    followed(project)
    project.execute("DELETE FROM {} WHERE user_id = 3", "silver.sales")
    vacuum(Path(project.location("silver.sales")))
    assert followed(project) == "CHANGE_FEED_MISSING"
    add(project)
    assert followed(project) == INCREMENTAL


def vacuum(location: Path) -> None:
    """Take away what the newest version does not need, as VACUUM with no retention does."""
    needed = {Path(uri).name for uri in DeltaTable(str(location)).file_uris()}
    for file in location.rglob("*.parquet"):
        if "_delta_log" not in file.parts and file.name not in needed:
            file.unlink()


def test_a_table_recreated_is_read_in_full(project: GoldProject) -> None:
    shutil.rmtree(project.location("silver.sales"))
    add(project)
    assert followed(project) == "INPUT_RECREATED"
    add(project)
    assert followed(project) == INCREMENTAL


@pytest.mark.parametrize("fed", ["true", "false"])
def test_a_table_replaced_in_place_is_read_in_full(lake: GoldProject, fed: str) -> None:
    table = f"replaced_{fed}"
    published(lake, table)
    lake.execute(
        f"CREATE OR REPLACE TABLE {{}} USING delta TBLPROPERTIES ('{FEED}' = '{fed}') AS "
        + SALES.format("(1, 10, 'a'), (7, 7, 'r')"),
        f"silver.{table}",
    )
    assert followed(lake, table) == "INPUT_RECREATED"


def test_an_input_that_vanished_keeps_the_content(project: GoldProject) -> None:
    add(project)
    followed(project)
    before = project.rows("sales")
    location = Path(project.location("silver.sales"))
    location.rename(location.with_name("elsewhere"))
    outcome = project.refresh("sales", f"t{next(TICKS)}")
    assert (outcome.plan.word, outcome.plan.reason.code) == ("skip", "INPUT_MISSING")
    assert "silver.sales" in outcome.plan.reason.text
    assert project.rows("sales") == before
    location.with_name("elsewhere").rename(location)
    add(project)
    assert followed(project) == INCREMENTAL


def test_a_table_that_never_had_a_feed_is_read_in_full(lake: GoldProject) -> None:
    frame = lake.spark.sql(FIRST)
    frame.write.format("delta").save(lake.location("silver.unfed"))
    assert not log.has_change_feed(lake.location("silver.unfed"), 0)
    published(lake, "unfed")
    add(lake, table="unfed")
    assert followed(lake, "unfed") == "CHANGE_FEED_MISSING"


def test_a_table_with_other_columns_is_read_in_full(lake: GoldProject) -> None:
    published(lake, "shaped")
    for properties in (
        "'delta.enableTypeWidening' = 'true'",
        "'delta.columnMapping.mode' = 'name'",
    ):
        lake.execute(f"ALTER TABLE {{}} SET TBLPROPERTIES ({properties})", "silver.shaped")
        assert lake.reason("shaped") == "NO_UPSTREAM_CHANGE"
    for statements in (
        ("ADD COLUMN more STRING", "ALTER COLUMN amount TYPE BIGINT"),
        ("RENAME COLUMN note TO remark", "DROP COLUMN remark"),
    ):
        for statement in statements:
            lake.execute(f"ALTER TABLE {{}} {statement}", "silver.shaped")
            assert lake.reason("shaped") == "INPUT_RESHAPED"
        assert followed(lake, "shaped") == "INPUT_RESHAPED"
        lake.execute("INSERT INTO {} (user_id, amount) VALUES (1, 5000000000)", "silver.shaped")
        assert followed(lake, "shaped") == INCREMENTAL


def test_a_column_that_is_gone_keeps_the_content_and_is_named(lake: GoldProject) -> None:
    published(lake, "mapped")
    lake.execute(
        "ALTER TABLE {} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "silver.mapped"
    )
    before = lake.rows("mapped")
    lake.execute("ALTER TABLE {} RENAME COLUMN amount TO value", "silver.mapped")
    with pytest.raises(QueryFailedError, match="amount"):
        followed(lake, "mapped")
    assert lake.rows("mapped") == before
    lake.execute("ALTER TABLE {} DROP COLUMN note", "silver.mapped")
    lake.execute("ALTER TABLE {} RENAME COLUMN value TO amount", "silver.mapped")
    followed(lake, "mapped")
    # The last column under its old name and type, but without its values.
    lake.execute("ALTER TABLE {} DROP COLUMN amount", "silver.mapped")
    lake.execute("ALTER TABLE {} ADD COLUMN amount INT", "silver.mapped")
    assert followed(lake, "mapped") == "INPUT_RESHAPED"
    assert {row[1] for row in lake.rows("mapped")} == {None}
    lake.execute("INSERT INTO {} VALUES (9, 9)", "silver.mapped")
    assert followed(lake, "mapped") == INCREMENTAL


def test_a_published_table_that_was_restored_is_built_again(lake: GoldProject) -> None:
    published(lake, "sums", SUMS)
    add(lake, table="sums")
    assert followed(lake, "sums") == INCREMENTAL
    lake.execute("RESTORE TABLE {} TO VERSION AS OF 0", "gold.sums")
    assert followed(lake, "sums") == "RESTORED"
    # The groups that were kept before belong to no publication any more.
    add(lake, table="sums")
    assert followed(lake, "sums") == INCREMENTAL


def test_rows_that_another_writer_appends_below_a_publication_are_corrected(
    lake: GoldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta lets Spark's append pass them, after the refresh has looked for them."""
    published(lake, "crowded")
    add(lake, table="crowded")
    location, append = lake.location("gold.crowded"), tables.append
    rows = lake.spark.sql("SELECT 99 AS user_id, 99 AS amount").toArrow()

    def overtaken(frame: DataFrame, at: str, **options: Any) -> None:
        if at == location:
            write_deltalake(location, rows, mode="append")
        append(frame, at, **options)

    with monkeypatch.context() as crowded:
        crowded.setattr(policy, "RESULT", Limit(rows=0))
        crowded.setattr(tables, "append", overtaken)
        outcome = lake.refresh("crowded", f"t{next(TICKS)}")
    assert (outcome.plan.reason.code, outcome.version) == (INCREMENTAL, 2)
    assert (99, 99) in lake.rows("crowded")
    assert lake.verify("crowded").finding is Finding.FOREIGN_COMMIT
    assert followed(lake, "crowded") == "FOREIGN_COMMIT"
    add(lake, table="crowded")
    assert followed(lake, "crowded") == INCREMENTAL


def test_rows_that_are_computed_otherwise_than_they_were_published_are_found(
    lake: GoldProject, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sum of a change has 0.0 for a -0.0 that no rule foresees, as it may have another sum of
    # floats, or another of the first rows that tie: the row to delete is not among the published.
    monkeypatch.setattr(zeros, "_may_make_zeros", lambda *_: False)
    lake.append("silver.zeros", "SELECT * FROM VALUES (1, 0), (2, -15) AS v(id, zero)")
    lake.append("silver.names", "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(id, name)")
    query = (
        "SELECT n.name, CAST(z.zero AS STRING) AS zero "
        "FROM (SELECT s.id, TRY_DIVIDE(s.zero, -3) AS zero FROM silver.zeros AS s) AS z "
        "JOIN silver.names AS n ON n.id = z.id"
    )
    lake.view("zeros", query, inputs=("silver.zeros", "silver.names"), maintained=True)
    assert followed(lake, "zeros") == "FIRST_BUILD"
    assert lake.rows("zeros") == [("a", "-0.0"), ("b", "5.0")]
    lake.execute("DELETE FROM {} WHERE id = 1", "silver.zeros")
    lake.append("silver.zeros", "SELECT * FROM VALUES (3, 0) AS v(id, zero)")
    lake.append("silver.names", "SELECT * FROM VALUES (3, 'c') AS v(id, name)")
    assert followed(lake, "zeros") == INCREMENTAL
    assert "for a row to delete is not there" in caplog.text
    assert lake.rows("zeros") == [("b", "5.0"), ("c", "-0.0")]


def test_a_time_without_a_zone_stays_one_between_the_steps(
    lake: GoldProject, caplog: pytest.LogCaptureFixture
) -> None:
    """As an instant, it has another text in JSON, and another type."""
    rows = "SELECT id, CAST(at AS TIMESTAMP_NTZ) AS at FROM VALUES {} AS v(id, at)"
    lake.append("silver.visits", rows.format("(1, '2024-03-31 02:30:00'), (2, '2024-01-01')"))
    said = "TO_JSON(NAMED_STRUCT('at', v.at)) AS said, TYPEOF(v.at) AS kind, COUNT(*) AS visits"
    by_key = f"SELECT v.at, {said} FROM silver.visits AS v GROUP BY v.at"
    lake.view("said", by_key.replace("v.at, ", "", 1), inputs=("silver.visits",), maintained=True)
    lake.view("said_at", by_key, inputs=("silver.visits",), maintained=True)
    for view in ("said", "said_at"):
        assert followed(lake, view) == "FIRST_BUILD"
    lake.append("silver.visits", rows.format("(3, '2024-03-31 02:30:00'), (4, '2025-01-01')"))
    for view in ("said", "said_at"):
        assert followed(lake, view) == INCREMENTAL
    assert "a row to delete is not there" not in caplog.text


def test_a_row_that_cannot_be_computed_counts_no_longer_once_it_is_corrected(
    lake: GoldProject, caplog: pytest.LogCaptureFixture
) -> None:
    """It came and left between two publications; the changes between them still have it."""
    rows = "SELECT * FROM VALUES {} AS v(id, parts)"
    lake.append("silver.shares", rows.format("(1, 4), (2, 5)"))
    query = "SELECT s.id, 100 / s.parts AS share FROM silver.shares AS s"
    lake.view("shares", query, inputs=("silver.shares",), maintained=True)
    counted = f"SELECT q.share, COUNT(*) AS n FROM ({query}) AS q GROUP BY q.share"
    lake.view("counted_shares", counted, inputs=("silver.shares",), maintained=True)
    views = ("shares", "counted_shares")
    for view in views:
        assert followed(lake, view) == "FIRST_BUILD"
    lake.append("silver.shares", rows.format("(3, 0), (4, 2), (4, 2)"))
    for view in views:
        with pytest.raises(QueryFailedError, match="DIVIDE_BY_ZERO"):
            lake.refresh(view, f"t{next(TICKS)}")
        assert len(lake.rows(view)) == 2
    lake.execute("UPDATE {} SET parts = 10 WHERE id = 3", "silver.shares")
    lake.execute("DELETE FROM {} WHERE id = 1", "silver.shares")
    for view in views:
        assert followed(lake, view) == INCREMENTAL
    assert lake.rows("shares") == [(2, 20.0), (3, 10.0), (4, 50.0), (4, 50.0)]
    assert "computed again from the net changes" in caplog.text


def test_the_sign_of_zero_reaches_a_text(lake: GoldProject) -> None:
    """Spark's GROUP BY takes -0.0 for 0.0, and a refresh adds up equal changes."""
    lake.append("silver.signs", "SELECT * FROM VALUES (1, 0.0D), (2, 5.0D) AS v(id, x)")
    lake.append("silver.marks", "SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS v(id, name)")
    queries = {
        "joined": "SELECT m.name, CAST(s.x AS STRING) AS x FROM silver.signs AS s "
        "JOIN silver.marks AS m ON m.id = s.id",
        "left_joined": "SELECT m.name, CAST(s.x AS STRING) AS x FROM silver.marks AS m "
        "LEFT JOIN silver.signs AS s ON m.id = s.id",
        "grouped": "SELECT s.id, MIN(CAST(s.x AS STRING)) AS x FROM silver.signs AS s "
        "GROUP BY s.id",
        "named": "SELECT s.id, TO_JSON(NAMED_STRUCT('x', s.x)) AS x FROM silver.signs AS s",
        "rounded": "SELECT m.name, CAST(r.x AS STRING) AS x FROM (SELECT s.id, ROUND(s.x, 1) AS x "
        "FROM silver.signs AS s) AS r JOIN silver.marks AS m ON m.id = r.id",
        "structs": "SELECT m.name, TO_JSON(t.o) AS x FROM (SELECT s.id, NAMED_STRUCT('x', s.x) "
        "AS o FROM silver.signs AS s) AS t JOIN silver.marks AS m ON m.id = t.id",
    }
    for view, query in queries.items():
        lake.view(view, query, inputs=("silver.signs", "silver.marks"), maintained=True)
        assert followed(lake, view) == "FIRST_BUILD"
    lake.append("silver.signs", "SELECT * FROM VALUES (3, -0.0D) AS v(id, x)")
    for view in queries:
        assert followed(lake, view) == INCREMENTAL
    lake.execute("UPDATE {} SET x = -0.0D WHERE id = 1", "silver.signs")
    for view in queries:
        assert followed(lake, view) == INCREMENTAL
    assert lake.rows("joined") == [("a", "-0.0"), ("b", "5.0"), ("c", "-0.0")]


@pytest.mark.parametrize("kind", ["map", "variant"])
def test_a_corrected_row_counts_no_longer_beside_values_without_equality(
    lake: GoldProject, kind: str
) -> None:
    more = {"map": "MAP('a', parts)", "variant": "PARSE_JSON(CAST(parts AS STRING))"}[kind]
    table, counted = f"tagged_{kind}", f"counted_{kind}"
    rows = f"SELECT id, parts, {more} AS more, -0.0D AS zero FROM VALUES {{}} AS v(id, parts)"
    lake.append(f"silver.{table}", rows.format("(1, 4), (2, 5)"))
    query = (
        "SELECT s.id, 100 / s.parts AS share, CAST(s.zero AS STRING) AS zero "
        f"FROM silver.{table} AS s"
    )
    lake.view(table, query, inputs=(f"silver.{table}",), maintained=True)
    groups = f"SELECT q.share, COUNT(*) AS n FROM ({query}) AS q GROUP BY q.share"
    lake.view(counted, groups, inputs=(f"silver.{table}",), maintained=True)
    for view in (table, counted):
        assert followed(lake, view) == "FIRST_BUILD"
    lake.append(f"silver.{table}", rows.format("(3, 0), (4, 2), (4, 2)"))
    with pytest.raises(QueryFailedError, match="DIVIDE_BY_ZERO"):
        lake.refresh(table, f"t{next(TICKS)}")
    lake.execute("UPDATE {} SET parts = 10 WHERE id = 3", f"silver.{table}")
    lake.execute("DELETE FROM {} WHERE id = 1", f"silver.{table}")
    for view in (table, counted):
        assert followed(lake, view) == INCREMENTAL
    shares = [(one, share) for one, share, _ in lake.rows(table)]
    assert shares == [(2, 20.0), (3, 10.0), (4, 50.0), (4, 50.0)]
    lake.append(f"silver.{table}", rows.format("(5, 1)"))
    for view in (table, counted):
        assert followed(lake, view) == INCREMENTAL


def test_a_view_with_a_map_beside_its_key_is_audited(lake: GoldProject) -> None:
    """A row to delete is found by the key: maps are not comparable."""
    query = (
        "SELECT s.user_id, MAP('rows', COUNT(*)) AS counts FROM silver.maps AS s GROUP BY s.user_id"
    )
    lake.append("silver.maps", FIRST)
    unique = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "user_id"}}
    suite = {"name": "maps", "expectations": [unique]}
    lake.view("maps", query, inputs=("silver.maps",), maintained=True, suite=suite)
    assert lake.refresh("maps", f"t{next(TICKS)}").plan.reason.code == "FIRST_BUILD"
    add(lake, table="maps")
    outcome = lake.refresh("maps", f"t{next(TICKS)}")
    assert (outcome.plan.reason.code, outcome.status) == (INCREMENTAL, "published")
    assert lake.rows("maps") == [(1, {"rows": 3}), (2, {"rows": 2}), (3, {"rows": 1})]
