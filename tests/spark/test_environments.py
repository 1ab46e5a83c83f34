"""Environments hold changed views beside production, which they read and never write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.deploy.environment_errors import (
    EnvironmentBlockedError,
    EnvironmentNotBuiltError,
)
from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.gold.environment import copies
from spark_jobs.gold.environment.copies import delete_copies
from spark_jobs.rollout import environments
from spark_jobs.rollout.environments import drop_environment, plan_environment
from spark_jobs.state.environments import EnvironmentStatus, ViewState
from spark_jobs.state.store import ControlStore
from tests.spark.environments import BEST, DOUBLED, TOTALS, Shop, make_shop, shop_at
from tests.spark.killed import kill_at, own_spark


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Iterator[Shop]:
    with ControlStore.open(shop_store(tmp_path)) as store:
        yield make_shop(tmp_path, store, spark)


def shop_store(folder: Path) -> str:
    (folder / "state").mkdir(exist_ok=True)
    return f"sqlite:///{folder}/state/control.db"


def states(shop: Shop) -> dict[str, ViewState]:
    found = shop.store.environment("ana")
    return {} if found is None else {view: one.state for view, one in found.views.items()}


def test_changed_views_and_what_reads_them_are_built_and_production_stays(shop: Shop) -> None:
    before = {view: shop.rows(view) for view in ("totals", "best", "counts")}
    logs = sorted(Path(shop.settings.lake, "gold").rglob("*.json"))
    shop.write(totals=DOUBLED)
    found = shop.build()

    assert found.status is EnvironmentStatus.BUILT
    assert list(found.views) == ["totals", "best"]
    query = "SELECT * FROM gold.totals"
    assert shop.query(query, "ana") == [(1, 30, 2), (2, 40, 1), (3, 60, 1)]
    assert shop.query(query) == before["totals"] == [(1, 15, 2), (2, 20, 1), (3, 30, 1)]
    # What reads a view of the environment reads it there; what does not change is production's.
    assert shop.query("SELECT buyer, total FROM gold.best", "ana") == [(1, 30), (2, 40), (3, 60)]
    assert shop.query("SELECT * FROM gold.counts", "ana") == before["counts"]
    assert {view: shop.rows(view) for view in before} == before
    assert sorted(Path(shop.settings.lake, "gold").rglob("*.json")) == logs
    assert not any(one.name.startswith("ana") for one in Path(shop.settings.lake, "gold").iterdir())


def test_an_environment_that_is_built_is_left_alone_until_a_view_changes(shop: Shop) -> None:
    shop.write(totals=DOUBLED)
    first = shop.build()
    again = shop.build()
    assert again.views == first.views

    shop.write(best=BEST.replace("15", "35"))
    planned = plan_environment(shop.settings, shop.store, shop.project, "ana", who="tests")
    assert planned.builds == ("best",)
    shop.build()
    assert shop.query("SELECT buyer, total FROM gold.best", "ana") == [(2, 40), (3, 60)]

    # The change is taken back: nothing is left in the environment.
    shop.write(totals=TOTALS, best=BEST)
    assert shop.build().views == {}
    assert shop.files() == []


def test_a_view_that_fails_leaves_the_others_and_names_itself(shop: Shop) -> None:
    shop.write(totals=DOUBLED, best=BEST.replace("t.total * 2", "CAST(raise_error('no') AS INT)"))
    with pytest.raises(QueryFailedError) as failed:
        shop.build()
    assert failed.value.view == "best"
    assert states(shop) == {"totals": ViewState.BUILT, "best": ViewState.OPEN}
    with pytest.raises(EnvironmentNotBuiltError):
        shop.query("SELECT * FROM gold.best", "ana")
    assert len(shop.query("SELECT * FROM gold.totals", "ana")) == 3

    shop.write(best=BEST)
    assert shop.build().status is EnvironmentStatus.BUILT


def test_a_blocked_view_of_an_environment_can_be_queried(shop: Shop) -> None:
    nobody = TOTALS.replace("s.buyer,", "NULLIF(s.buyer, 3) AS user_id,")
    shop.write(fresh=nobody)
    shop.suite("fresh")
    with pytest.raises(EnvironmentBlockedError) as stopped:
        shop.build()
    assert list(stopped.value.views) == ["gold.fresh"]
    assert states(shop) == {"fresh": ViewState.BLOCKED}
    assert len(shop.query("SELECT * FROM gold.fresh", "ana")) == 3

    shop.write(fresh=TOTALS.replace("s.buyer,", "s.buyer AS user_id,"))
    shop.build()
    assert states(shop) == {"fresh": ViewState.BUILT}


def test_a_dropped_environment_leaves_no_file(shop: Shop) -> None:
    shop.write(totals=DOUBLED)
    found = shop.build()
    assert shop.files()
    drop_environment(shop.settings, shop.store, found)

    assert shop.files() == []
    assert not Path(shop.settings.lake, "_environments", "ana").exists()
    assert shop.store.environments() == []
    shop.assert_right("totals")


def test_copies_of_data_that_was_forgotten_are_deleted(shop: Shop) -> None:
    shop.write(totals=DOUBLED)
    shop.build()
    assert delete_copies(shop.settings, shop.store, {"silver.others"}, why="no") == []

    told = delete_copies(shop.settings, shop.store, {"bronze.sales"}, why="forgotten")
    assert told == ["ana: gold.totals", "ana: gold.best"]
    assert shop.files() == []
    assert set(states(shop).values()) == {ViewState.DELETED}
    with pytest.raises(EnvironmentNotBuiltError) as absent:
        shop.query("SELECT * FROM gold.totals", "ana")
    assert absent.value.problem == "forgotten"
    assert shop.build().status is EnvironmentStatus.BUILT


def once(points: Sequence[str], always: str) -> list[Any]:
    """One of them in each run of the suite, and all of them in the long tier."""
    return [one if one == always else pytest.param(one, marks=pytest.mark.long) for one in points]


def build_in(folder: Path) -> None:
    settings = shop_at(folder)
    with ControlStore.open(shop_store(folder)) as store, own_spark(settings) as spark:
        Shop(settings, store, spark).build()


def drop_in(folder: Path) -> None:
    settings = shop_at(folder)
    with ControlStore.open(shop_store(folder)) as store:
        found = store.environment("ana")
        assert found is not None
        drop_environment(settings, store, found)


def forget_in(folder: Path) -> None:
    with ControlStore.open(shop_store(folder)) as store:
        delete_copies(shop_at(folder), store, {"bronze.sales"}, why="forgotten")


@pytest.mark.parametrize("point", once(environments.FAILPOINTS[:4], "environment.build.recorded"))
def test_a_killed_build_continues(shop: Shop, tmp_path: Path, point: str) -> None:
    shop.write(totals=DOUBLED)
    kill_at(point, build_in, tmp_path)
    # What it had pinned still counts, however production has moved on.
    kept = shop.store.environment("ana")
    assert kept is not None
    shop.sell(buyer=[4], amount=[40])
    found = shop.build()

    assert found.status is EnvironmentStatus.BUILT
    pinned = point == "environment.build.recorded"
    expected = [(1, 30), (2, 40), (3, 60), *([] if pinned else [(4, 80)])]
    assert shop.query("SELECT buyer, total FROM gold.totals", "ana") == expected
    assert shop.query("SELECT buyer, total FROM gold.best", "ana") == expected
    assert shop.rows("totals") == [(1, 15, 2), (2, 20, 1), (3, 30, 1)]


@pytest.mark.parametrize(
    "point", once([*environments.FAILPOINTS[4:], *copies.FAILPOINTS], "environment.drop.begun")
)
def test_a_killed_deletion_continues(shop: Shop, tmp_path: Path, point: str) -> None:
    shop.write(totals=DOUBLED)
    shop.build()
    again = forget_in if point in copies.FAILPOINTS else drop_in
    kill_at(point, again, tmp_path)
    if point not in copies.FAILPOINTS:
        with pytest.raises(EnvironmentNotBuiltError):
            shop.query("SELECT * FROM gold.totals", "ana")
    again(tmp_path)
    assert shop.files() == []
