"""Kills and rivals of incremental refreshes: equal to the SQL, and committed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.compute import run
from spark_jobs.gold.compute.difference import multiset_difference
from spark_jobs.gold.refresh import publishing, staging
from spark_jobs.gold.refresh import steps as refresh
from spark_jobs.gold.refresh.steps import FAILPOINTS, KEPT_FAILPOINTS
from spark_jobs.sections import Engine
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log, reader, tables
from spark_jobs.storage.history import folders, remove_table
from tests.spark.gold_project import GoldProject

SALES = "SELECT * FROM VALUES {} AS v(user_id, amount)"
FIRST = SALES.format("(1, 10), (1, 20), (2, NULL), (NULL, 7), (NULL, 7)")
SUMS = """SELECT s.user_id, COUNT(*) AS sales, SUM(s.amount) AS total
FROM silver.sales AS s GROUP BY s.user_id"""
UNKEYED = "SELECT s.amount FROM silver.sales AS s"

Arm = Callable[[str | None], None]


class Killed(BaseException):
    """Ends a run as a signal would: nothing that handles errors sees it."""


@pytest.fixture(scope="module")
def project(
    spark: SparkSession, each_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GoldProject]:
    """One project for all tests: each refresh goes on where the one before it was killed."""
    folder = tmp_path_factory.mktemp("faults")
    settings = load_settings(folder, state_dir=folder / "state", spark={"master": "local[2]"})
    assert settings.gold.engine is each_engine
    with ControlStore.open(settings.control_url) as store:
        project = GoldProject(spark, settings, store)
        project.append("silver.sales", FIRST)
        for name, query in {"sums": SUMS, "multiset": UNKEYED}.items():
            project.view(name, query, inputs=("silver.sales",), maintained=True)
            project.refresh(name, "first")
        yield project


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Arm:
    """Arm a failpoint of the gold steps."""

    def arm(name: str | None) -> None:
        def failpoint(passed: str) -> None:
            if passed == name:
                raise Killed(name)

        for module in (refresh, staging, run, publishing):
            monkeypatch.setattr(module, "failpoint", failpoint)

    return arm


def change(project: GoldProject, user_id: int) -> None:
    """Two rows come: one makes a group of its own, the other changes one."""
    project.append("silver.sales", SALES.format(f"({user_id}, 5), (1, 3)"))


def aggregate_state(project: GoldProject) -> DataFrame:
    """The groups that the newest publication of ``sums`` names; without any value no sum counts."""
    (state,) = project.publications("sums")[-1]["states"].values()
    context = project.refresher.context
    location = context.lake.state("sums", context.entry("sums").fingerprint, 0)
    current = log.table_version(location)
    assert current is not None
    assert current.table_id == state["id"]
    kept = reader.read(project.spark, location, state["version"])
    return kept.selectExpr("k0", "n", "nn0", "IF(nn0 = 0, NULL, sum0) AS sum0")


def groups(project: GoldProject) -> DataFrame:
    """The same from the rows."""
    sales = reader.read(project.spark, project.location("silver.sales"))
    return sales.groupBy("user_id").agg(sf.count("*"), sf.count("amount"), sf.sum("amount"))


@pytest.mark.parametrize(
    "name",
    [*FAILPOINTS, *(pytest.param(one, marks=pytest.mark.both_engines) for one in KEPT_FAILPOINTS)],
)
def test_a_killed_refresh_that_runs_again_publishes_once(
    project: GoldProject, kill_at: Arm, name: str
) -> None:
    published = len(project.publications("sums"))
    change(project, published)
    kill_at(name)
    with pytest.raises(Killed):
        project.refresh("sums", name)
    kill_at(None)
    again = project.refresh("sums", name)
    assert len(project.publications("sums")) == published + 1
    assert project.publications("sums")[-1]["rule"] == "aggregate_state"
    assert again.plan.word in {"incremental", "skip"}
    assert project.attempts("sums", *refresh.ledger.OPEN) == []
    project.assert_right("sums")
    assert not multiset_difference(groups(project), aggregate_state(project)).take(1)


def ready(project: GoldProject, view: str, tick: str) -> str:
    """An attempt that lacks nothing but its publication."""
    plan = project.refresher.plan(view, tick=tick)
    assert plan.word == "incremental", plan.line
    project.refresher.stage(plan.attempt_id)
    project.refresher.audit(plan.attempt_id)
    return plan.attempt_id


def test_a_change_that_was_staged_for_older_content_is_refused(project: GoldProject) -> None:
    change(project, 101)
    first = ready(project, "sums", "rival 1")
    change(project, 102)
    second = ready(project, "sums", "rival 2")
    assert project.refresher.publish(first).version is not None
    with pytest.raises(BaseMovedError):
        project.refresher.publish(second)
    assert project.store.attempt(second).status is AttemptStatus.FAILED
    project.assert_right("sums")
    assert project.refresh("sums", "rival 2").plan.word == "incremental"
    project.assert_right("sums")


def test_attempts_that_a_newer_one_overtook_change_nothing(project: GoldProject) -> None:
    change(project, 111)
    older = ready(project, "sums", "older")
    slow = project.refresher.plan("sums", tick="slow")
    change(project, 112)
    assert project.refresh("sums", "newer").plan.word == "incremental"
    assert project.refresher.publish(older).superseded
    with pytest.raises(BaseMovedError):
        project.refresher.stage(slow.attempt_id)
    change(project, 113)
    assert project.refresh("sums", "after all").plan.word == "incremental"
    project.assert_right("sums")


def test_rows_that_a_stranger_wrote_after_the_stage_are_not_built_upon(
    project: GoldProject,
) -> None:
    change(project, 131)
    attempt_id = ready(project, "multiset", "before the stranger")
    project.execute("INSERT INTO {} VALUES (77)", "gold.multiset")
    with pytest.raises(BaseMovedError):
        project.refresher.publish(attempt_id)
    assert project.refresh("multiset", "after the stranger").plan.reason.code == "FOREIGN_COMMIT"
    project.assert_right("multiset")


def test_compacting_the_published_table_does_not_stop_a_publication(project: GoldProject) -> None:
    project.refresh("multiset", "before compaction")
    change(project, 141)
    attempt_id = ready(project, "multiset", "compaction")
    project.execute("OPTIMIZE {}", "gold.multiset")
    assert project.refresher.publish(attempt_id).version is not None
    project.assert_right("multiset")


def test_groups_that_a_rival_kept_at_the_same_time_are_not_taken_for_ours(
    project: GoldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(project, 151)
    overwrite = tables.overwrite

    def raced(frame: DataFrame, location: str, **options: Any) -> None:
        overwrite(frame, location, **options)
        if "_staging" not in location:
            overwrite(frame.limit(0), location, metadata={"attempt": "a rival's"})

    monkeypatch.setattr(tables, "overwrite", raced)
    attempt_id = ready(project, "sums", "raced")
    monkeypatch.undo()
    project.refresher.publish(attempt_id)
    change(project, 152)
    assert project.refresh("sums", "after the race").plan.word == "incremental"
    project.assert_right("sums")


@pytest.mark.parametrize("what", ["table", "files"])
def test_deleted_aggregate_state_is_computed_again(project: GoldProject, what: str) -> None:
    change(project, 161)
    project.refresh("sums", f"kept {what}")
    context = project.refresher.context
    location = context.lake.state("sums", context.entry("sums").fingerprint, 0)
    if what == "table":
        remove_table(location)
    else:
        for file in Path(location).glob("*.parquet"):
            file.unlink()
    for user_id in (162, 163):
        change(project, user_id)
        assert project.refresh("sums", f"{what} {user_id}").plan.word == "incremental"
    project.assert_right("sums")


def test_groups_of_another_definition_are_removed(project: GoldProject) -> None:
    query = "SELECT s.user_id, SUM(s.amount) AS {} FROM silver.sales AS s GROUP BY s.user_id"
    for name in ("one", "other"):
        project.view("shifting", query.format(name), inputs=("silver.sales",), maintained=True)
        project.refresh("shifting", f"built {name}")
        change(project, 171)
        assert project.refresh("shifting", name).plan.word == "incremental"
        lake, entry = project.refresher.context.lake, project.manifest.gold["shifting"]
        assert folders(lake.states("shifting")) == [entry.fingerprint[:16]]
    project.assert_right("shifting")
