"""Gold over tables that others write: a project directory of SQL and Delta sources, and no more."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from spark_jobs.gold.refresh.steps import Outcome, Refresher
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.compiled import compile_settings
from tests.spark.right import assert_right

FED = {"delta.enableChangeDataFeed": "true"}
SOURCE = """description: Parcels that a partner writes.
format: delta
location: data/{}
columns: {{city: STRING, weight: "DECIMAL(9,2)"}}
"""
VIEW = "/* gold\ndescription: A view.\nowner: tests\nrefresh: bulk\nstrategy: strict\n*/\n{}\n"
VIEWS = {
    "by_city": "SELECT p.city, COUNT(*) AS parcels, SUM(p.weight) AS weight "
    "FROM bronze.parcels AS p GROUP BY p.city",
    "levels": "SELECT c.city, c.parcels >= 2 AS busy FROM gold.by_city AS c",
    "summary": "SELECT l.busy, COUNT(*) AS cities FROM gold.levels AS l GROUP BY l.busy",
    "letters": "SELECT l.city, l.weight FROM bronze.letters AS l WHERE l.weight > 1",
}
TICKS = itertools.count()


@dataclass
class Project:
    """A project directory, and the tables of its partners."""

    folder: Path
    settings: Settings
    refresher: Refresher
    spark: SparkSession

    def table(self, name: str) -> str:
        return str(self.folder / "data" / name)

    def open(self, name: str) -> DeltaTable:
        return DeltaTable(self.table(name))

    def add(self, name: str, *cities: str | None, weight: str | None = "2.50") -> None:
        write_deltalake(self.table(name), parcels(*cities, weight=weight), mode="append")

    def refreshed(self, *views: str) -> list[Outcome]:
        """One tick over views, each of which equals its SQL after it."""
        tick = f"t{next(TICKS)}"
        outcomes = [self.refresher.run(view, tick=tick) for view in views]
        for view in views:
            assert_right(self.refresher.context, view)
        return outcomes


def parcels(*cities: str | None, weight: str | None = "2.50") -> pa.Table:
    value = None if weight is None else Decimal(weight)
    return pa.table(
        {
            "city": pa.array(cities, pa.string()),
            "weight": pa.array([value] * len(cities), pa.decimal128(9, 2)),
        }
    )


@pytest.fixture(scope="module")
def project(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """One project for all tests; every view is published, and its tests go on from there."""
    folder = tmp_path_factory.mktemp("foreign") / "with space"
    for path, text in {
        "sources/parcels.yml": SOURCE.format("parcels"),
        "sources/letters.yml": SOURCE.format("letters"),
        **{f"sql/gold/{name}.sql": VIEW.format(query) for name, query in VIEWS.items()},
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    write_deltalake(
        str(folder / "data/parcels"), parcels("Bonn", "Bonn", "Ulm", None), configuration=FED
    )
    write_deltalake(str(folder / "data/letters"), parcels("Bonn", "Bonn"))
    settings = load_settings(folder, state_dir=folder / "state", spark={"master": "local[2]"})
    manifest = compile_settings(settings)
    with ControlStore.open(settings.control_url) as store:
        refresher = Refresher(settings, manifest, store, session_factory=lambda _: spark)
        project = Project(folder, settings, refresher, spark)
        for name in VIEWS:
            refresher.run(name, tick="first")
        yield project


def merged(project: Project) -> None:
    merge = project.open("parcels").merge(
        parcels("Bonn", "Jena", weight="9.00"),
        predicate="s.city = t.city",
        source_alias="s",
        target_alias="t",
    )
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def replaced_in_part(project: Project) -> None:
    rows = parcels("Ulm", "Ulm", weight="0.50")
    write_deltalake(project.table("parcels"), rows, mode="overwrite", predicate="city = 'Ulm'")


def overwritten(project: Project) -> None:
    rows = parcels("Bonn", "Ulm", None, weight=None)
    write_deltalake(project.table("parcels"), rows, mode="overwrite")


def written_by_spark(project: Project) -> None:
    at = f"delta.`{project.table('parcels')}`"
    project.spark.sql(f"INSERT INTO {at} VALUES ('Bonn', 1), ('Bonn', 1), ('Kiel', NULL)")
    project.spark.sql(f"UPDATE {at} SET weight = 3 WHERE city = 'Bonn'")


WRITES: dict[str, Callable[[Project], object]] = {
    "append": lambda project: project.add("parcels", "Bonn", None),
    "delete": lambda project: project.open("parcels").delete("city = 'Bonn'"),
    "update": lambda project: project.open("parcels").update(
        {"weight": "7"}, predicate="city = 'Ulm'"
    ),
    "merge": merged,
    "overwrite in part": replaced_in_part,
    "overwrite": overwritten,
    "plain Spark": written_by_spark,
}


@pytest.mark.parametrize("name", WRITES)
def test_changes_of_another_writer_are_followed(project: Project, name: str) -> None:
    project.add("parcels", "Bonn", "Ulm")
    WRITES[name](project)
    (outcome,) = project.refreshed("by_city")
    assert outcome.plan.reason.code == "INPUT_CHANGED_RULE"


def test_compaction_by_another_writer_is_no_change(project: Project) -> None:
    project.add("parcels", "Bonn")
    project.refreshed("by_city")
    project.open("parcels").optimize.compact()
    assert project.refresher.explain("by_city").reason.code == "NO_UPSTREAM_CHANGE"


def test_a_table_without_a_feed_is_read_in_full_until_it_has_one(project: Project) -> None:
    project.add("letters", "Ulm")
    project.open("letters").delete("city = 'Bonn'")
    (outcome,) = project.refreshed("letters")
    assert outcome.plan.reason.code == "CHANGE_FEED_MISSING"
    project.open("letters").alter.set_table_properties(FED)
    assert project.refresher.explain("letters").reason.code == "NO_UPSTREAM_CHANGE"
    project.add("letters", "Ulm", "Kiel")
    (outcome,) = project.refreshed("letters")
    assert outcome.plan.reason.code in {"INPUT_CHANGED_RULE", "CHANGE_FEED_MISSING"}
    project.add("letters", "Jena", weight="0.50")
    project.open("letters").delete("city = 'Ulm'")
    (outcome,) = project.refreshed("letters")
    assert outcome.plan.reason.code == "INPUT_CHANGED_RULE"


def test_views_over_views_follow_each_other_s_changes(project: Project) -> None:
    levels = ("by_city", "levels", "summary")
    project.add("parcels", "Köln", "Köln")
    assert [one.plan.word for one in project.refreshed(*levels)] == ["incremental"] * 3
    # A third parcel makes Köln no busier: that ends at the second level.
    project.add("parcels", "Köln")
    first, second, third = project.refreshed(*levels)
    assert (first.plan.word, first.changed) == ("incremental", True)
    assert (second.plan.word, second.changed) == ("incremental", False)
    assert third.plan.reason.code == "NO_UPSTREAM_CHANGE"
    assert fed(project, "levels", since=second.version) == []


def fed(project: Project, view: str, *, since: int | None) -> list[object]:
    """What the change feed of a published table holds from a version on."""
    location = project.refresher.context.published_at(view)
    reader = project.spark.read.format("delta").option("readChangeFeed", "true")
    return list(reader.option("startingVersion", str(since)).load(location).collect())


def test_rows_that_are_written_again_as_they_were_change_nothing(project: Project) -> None:
    project.refreshed("by_city")
    rows = project.open("parcels").to_pyarrow_table()
    write_deltalake(project.table("parcels"), rows, mode="overwrite")
    (outcome,) = project.refreshed("by_city")
    assert (outcome.plan.word, outcome.changed) == ("incremental", False)
    assert fed(project, "by_city", since=outcome.version) == []
