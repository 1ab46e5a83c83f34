"""Whole refreshes in this process, of tables that are named, laid out or restored unluckily."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake

from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.compute.ranges import write_range
from spark_jobs.gold.refresh.steps import Outcome, Refresher
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.staged import DELETE, INSERT
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.ranges import RowRange, TimeRange
from spark_jobs.planning.work import work_item
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import arrow_tables, history, log
from spark_jobs.storage.compiled import compile_settings
from spark_jobs.storage.delta import Txn
from tests.unit.gold.conftest import FED, NOON

HEAD = "description: d\nowner: o\nrefresh: bulk\nstrategy: incremental"
PLAIN = "SELECT a.k, a.x FROM bronze.a AS a"


class Project:
    """Delta tables as sources, and one view."""

    def __init__(self, root: Path, query: str, *, data: str = "data", **tables: pa.Table) -> None:
        self.root, self.data = root, root / data
        self.ticks = 0
        for name, rows in tables.items():
            file = root / "sources" / f"{name}.yml"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"format: delta\nlocation: {data}/{name}\n")
            write_deltalake(self.data / name, rows, configuration=FED)
        self.define(query)

    def define(self, query: str) -> None:
        file = self.root / "sql" / "gold" / "v.sql"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"/* gold\n{HEAD}\n*/\n{query}\n")

    @contextmanager
    def opened(self) -> Iterator[Refresher]:
        settings = load_settings(self.root, state_dir=self.root / "state", gold={"engine": "auto"})
        with ControlStore.open(settings.control_url) as store:
            refresher = Refresher(settings, compile_settings(settings), store)
            refresher.context.in_process = True
            yield refresher

    def refresh(self, *, force: bool = False) -> Outcome:
        self.ticks += 1
        with self.opened() as refresher:
            return refresher.run("v", tick=f"t{self.ticks}", force=force)

    def append(self, table: str, **columns: list[Any]) -> None:
        write_deltalake(self.data / table, pa.table(columns), mode="append")

    @property
    def published(self) -> str:
        with self.opened() as refresher:
            return refresher.context.published_at("v")

    def rows(self) -> list[tuple[Any, ...]]:
        found = DeltaTable(self.published).to_pyarrow_table().to_pylist()
        return sorted(tuple(row.values()) for row in found)


def table(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


@pytest.mark.parametrize("other", ["a_old", "a_new", "a_change"])
@pytest.mark.parametrize("order", [1, -1])
def test_the_change_of_a_table_is_not_the_content_of_another(
    tmp_path: Path, other: str, order: int
) -> None:
    sides = [("a", "bronze.a AS a"), ("b", f"bronze.{other} AS b")][::order]
    query = f"SELECT a.k, a.x, b.x AS y FROM {sides[0][1]} JOIN {sides[1][1]} ON a.k = b.k"
    project = Project(
        tmp_path, query, a=table(k=[1, 2], x=[10, 20]), **{other: table(k=[1, 2], x=[5, 6])}
    )
    project.refresh()
    project.append("a", k=[3, 2], x=[30, 21])
    project.append(other, k=[3, 1], x=[7, 8])
    assert project.refresh().plan.reason.code is ReasonCode.INPUT_CHANGED_RULE
    assert project.rows() == [(1, 10, 5), (1, 10, 8), (2, 20, 6), (2, 21, 6), (3, 30, 7)]


def test_a_directory_that_looks_like_a_partition_is_none(tmp_path: Path) -> None:
    query = "SELECT a.k, a.region FROM bronze.a AS a"
    rows = table(k=[1, 2], region=["north", "south"])
    project = Project(tmp_path, query, data="region=eu", a=rows)
    project.refresh()
    project.append("a", k=[3], region=["west"])
    assert project.refresh().plan.word == "incremental"
    assert project.rows() == [(1, "north"), (2, "south"), (3, "west")]


@pytest.mark.parametrize("force", [False, True])
def test_a_view_is_published_after_its_input_lost_versions(tmp_path: Path, force: bool) -> None:
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    shutil.copytree(project.data / "a", tmp_path / "backup")
    project.append("a", k=[2], x=[20])
    project.refresh()
    shutil.rmtree(project.data / "a")
    shutil.copytree(tmp_path / "backup", project.data / "a")
    if not force:
        project.define("SELECT a.k * 2 AS k, a.x FROM bronze.a AS a")
    found = project.refresh(force=force)
    wanted = ReasonCode.FORCED if force else ReasonCode.DEFINITION_CHANGED
    assert (found.plan.reason.code, found.status) == (wanted, AttemptStatus.PUBLISHED)
    assert project.rows() == [(1 if force else 2, 10)]


def test_a_table_with_columns_in_another_order_is_rewritten_by_spark(tmp_path: Path) -> None:
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    project.refresh()
    project.define("SELECT a.x, a.k FROM bronze.a AS a WHERE a.k > 0")
    with pytest.raises(NotTranslatedError, match="only Spark"):
        project.refresh()


def test_a_foreign_row_is_seen_behind_many_commits_without_rows(tmp_path: Path) -> None:
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    project.refresh()
    write_deltalake(project.published, table(k=[9], x=[9]), mode="append")
    for days in range(30, 55):
        properties = {"delta.logRetentionDuration": f"interval {days} days"}
        DeltaTable(project.published).alter.set_table_properties(properties)
    project.append("a", k=[2], x=[20])
    assert project.refresh().plan.reason.code is ReasonCode.FOREIGN_COMMIT
    assert project.rows() == [(1, 10), (2, 20)]


def test_a_foreign_row_is_seen_in_a_commit_that_says_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    project.refresh()
    write_deltalake(project.published, table(k=[9], x=[9]), mode="append")
    commit = Path(project.published) / "_delta_log" / f"{1:020}.json"
    lines = commit.read_text().splitlines()
    commit.write_text("\n".join(one for one in lines if "commitInfo" not in json.loads(one)))
    project.append("a", k=[2], x=[20])
    assert project.refresh().plan.reason.code is ReasonCode.FOREIGN_COMMIT
    assert project.rows() == [(1, 10), (2, 20)]


def test_a_lost_control_database_delays_no_publication(tmp_path: Path) -> None:
    """Also after a rewrite, which has no transaction id."""
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    project.refresh()
    project.append("a", k=[2], x=[20])
    project.refresh()
    newest = log.commits(project.published, limit=1)[0].metadata
    assert newest is not None
    said: Mapping[str, Any] = {**newest, "sequence": 40}
    rows = DeltaTable(project.published).to_pyarrow_table()
    arrow_tables.replace(rows, project.published, metadata=said)
    for file in (tmp_path / "state").glob("control.db*"):
        file.unlink()
    assert project.refresh(force=True).status is AttemptStatus.PUBLISHED
    with project.opened() as refresher:
        assert refresher.context.store.attempts("v", limit=1)[0].sequence == 41


def test_pieces_that_were_computed_for_another_version_are_not_continued(tmp_path: Path) -> None:
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    project.refresh()
    time = TimeRange(NOON.replace(hour=0), NOON)
    rows = RowRange(column="k", type="timestamp", time=time)
    with project.opened() as refresher:
        plan = refresher.plan("v", tick="t9", force=True)
        work = work_item(refresher.context.store.attempt(plan.attempt_id))
        staged = str(tmp_path / "staged")
        arrow_tables.create(table(k=[1]), staged)
        arrow_tables.append(
            DeltaTable(staged),
            table(k=[1]),
            txn=Txn("stage", 1),
            metadata={"base": 7, "rows": {DELETE: 0, INSERT: 1}},
        )
        with pytest.raises(BaseMovedError, match="for version 7"):
            write_range(refresher.context, work, rows, staged)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k AS Kk, a.x AS Customer FROM bronze.a AS a",
        "SELECT a.k AS Kk, COUNT(*) AS Cc FROM bronze.a AS a GROUP BY a.k",
    ],
)
def test_columns_may_have_upper_case_letters(tmp_path: Path, query: str) -> None:
    """A change is written with the table's spelling, whatever the engine returns."""
    project = Project(tmp_path, query, a=table(k=[1, 2, 3], x=["a", "b", "c"]))
    project.refresh()
    for number, force in enumerate((True, False)):
        update = {"x": f"'z{number}'", "k": str(10 + number)}
        DeltaTable(project.data / "a").update(updates=update, predicate="k NOT IN (2, 3)")
        assert project.refresh(force=force).status is AttemptStatus.PUBLISHED
        assert 10 + number in {row[0] for row in project.rows()}
        assert len(project.rows()) == 3


@pytest.mark.parametrize("most", [history.MOST_COMMITS, 1])
def test_a_new_column_of_an_input_is_read_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The published version of the input lacks it."""
    monkeypatch.setattr(history, "MOST_COMMITS", most)
    query = "SELECT a.k, {}COUNT(*) AS n FROM bronze.a AS a GROUP BY a.k"
    project = Project(tmp_path, query.format(""), a=table(k=[1, 2, 2]))
    project.refresh()
    DeltaTable(project.data / "a").alter.add_columns([Field("note", "string")])
    project.append("a", k=[1], note=["new"])
    project.define(query.format("MAX(a.note) AS note, "))
    assert project.refresh().plan.reason.code is ReasonCode.DEFINITION_CHANGED
    assert project.rows() == [(1, "new", 2), (2, None, 2)]
