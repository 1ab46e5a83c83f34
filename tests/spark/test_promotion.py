"""A promotion publishes what was built, once, and the next refresh is right whatever came since."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.deploy.environment_errors import EnvironmentBlockedError, PromotionRefusedError
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.recover.rollback import Rollbacker
from spark_jobs.gold.refresh.observe import catch_up
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.names import TableName
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.request import Why
from spark_jobs.rollout import promotion
from spark_jobs.rollout.apply import apply
from spark_jobs.rollout.planning import make_plan
from spark_jobs.rollout.steps import Carrier
from spark_jobs.state.environments import EnvironmentStatus, ViewState
from spark_jobs.state.store import ControlStore
from tests.spark.environments import DOUBLED, TOTALS, Shop, make_shop, shop_at
from tests.spark.killed import kill_at, own_spark

BEFORE = [(1, 15, 2), (2, 20, 1), (3, 30, 1)]
BUILT = [(1, 30, 2), (2, 40, 1), (3, 60, 1)]
AFTER = [*BUILT, (4, 80, 1)]
VIEWS = ("totals", "best", "counts")


def database(folder: Path) -> str:
    (folder / "state").mkdir(exist_ok=True)
    return f"sqlite:///{folder}/state/control.db"


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Iterator[Shop]:
    with ControlStore.open(database(tmp_path)) as store:
        yield make_shop(tmp_path, store, spark)


def moved_on(shop: Shop) -> None:
    """Build a changed view and what reads it; then sales go on."""
    shop.write(totals=DOUBLED)
    shop.build()
    shop.sell(buyer=[4], amount=[40])


def logs(shop: Shop) -> list[Path]:
    return sorted(Path(shop.settings.lake, "gold").rglob("*.json"))


def assert_caught_up(shop: Shop) -> None:
    """Refresh as the schedule does: every view equals its SQL, with what came meanwhile."""
    shop.refresh("caught up")
    assert shop.rows("totals") == AFTER
    for view in VIEWS:
        shop.assert_right(view)


def test_rows_are_published_as_built_and_refreshes_continue_from_there(shop: Shop) -> None:
    moved_on(shop)
    shop.refresh("production goes on")
    applied = shop.promote()

    assert (applied.failed, applied.messages) == ({}, {})
    assert shop.rows("totals") == BUILT
    totals = latest_publication(f"{shop.settings.lake}/gold/totals")
    best = latest_publication(f"{shop.settings.lake}/gold/best")
    assert totals is not None
    assert best is not None
    # What reads the view says that it comes from the version that was just published.
    (read,) = best.watermark.vector.versions.values()
    assert read.version == totals.version
    assert best.watermark.vector.get(TableName.parse("gold.totals")) == read
    for view in ("totals", "best"):
        attempt = shop.store.attempts(view)[0]
        assert (attempt.decision, attempt.asked_by) == ("promotion", "tests")
        # Copied, not computed.
        assert "engine" not in (attempt.actual or {}) or attempt.actual["engine"] == "spark"
    # The project is what runs.
    assert make_plan(shop.settings, shop.store, shop.project).plan.empty
    found = shop.store.environment("ana")
    assert found is not None
    assert found.status is EnvironmentStatus.PROMOTED
    assert found.deployment == applied.deployment

    outcomes = shop.refresh("after")
    reasons = {view: one.plan.reason.code.value for view, one in outcomes.items()}
    assert (reasons["totals"], reasons["best"]) == ("INPUT_CHANGED_RULE", "INPUT_CHANGED_RULE")
    assert_caught_up(shop)
    with pytest.raises(PromotionRefusedError):
        shop.promote()


def test_new_views_over_each_other(shop: Shop) -> None:
    shop.write(fresh="SELECT s.buyer, MAX(s.amount) AS most FROM bronze.sales AS s GROUP BY ALL")
    shop.write(best="SELECT f.buyer, f.most FROM gold.fresh AS f WHERE f.most > 10")
    shop.build()
    shop.sell(buyer=[3, 4], amount=[90, 11])
    shop.promote()

    assert shop.rows("fresh") == [(1, 10), (2, 20), (3, 30)]
    assert shop.rows("best") == [(2, 20), (3, 30)]
    shop.refresh("after")
    assert shop.rows("best") == [(2, 20), (3, 90), (4, 11)]
    for view in ("fresh", "best", "totals"):
        shop.assert_right(view)


def test_what_the_gate_stops_is_not_published(shop: Shop) -> None:
    moved_on(shop)
    shop.write(fresh=TOTALS.replace("s.buyer,", "NULLIF(s.buyer, 3) AS user_id,"))
    shop.suite("fresh")
    with pytest.raises(EnvironmentBlockedError):
        shop.build()
    before, deployment = logs(shop), shop.store.newest_deployment()
    with pytest.raises(EnvironmentBlockedError):
        shop.promote()

    # Nor where somebody says that it passed: the rows are judged again.
    found = shop.store.environment("ana")
    assert found is not None
    passed = replace(found.views["fresh"], state=ViewState.BUILT)
    shop.store.save_environment(found.with_view("fresh", passed))
    with pytest.raises(EnvironmentBlockedError) as stopped:
        shop.promote()
    assert list(stopped.value.views) == ["gold.fresh"]
    assert (logs(shop), shop.store.newest_deployment()) == (before, deployment)
    assert shop.rows("totals") == BEFORE


def test_a_promotion_is_taken_back_like_any_publication(shop: Shop) -> None:
    moved_on(shop)
    shop.promote()
    rollbacker = Rollbacker(shop.refresher)
    target = rollbacker.target("totals")
    why = Why("the numbers are doubled", None)
    rollbacker.begin("totals", target, replay_id="rollback-1", who="tests", why=why)
    rollbacker.run("rollback-1")
    assert shop.rows("totals") == BEFORE

    # A view that a person pinned is not touched by the next environment.
    shop.write(totals=TOTALS)
    shop.build()
    with pytest.raises(PromotionRefusedError, match="pinned"):
        shop.promote()
    rollbacker.release("totals", who="tests")
    assert_caught_up(shop)


def test_production_that_is_ahead_does_not_go_back(shop: Shop) -> None:
    moved_on(shop)
    # Somebody applied the same files, and refreshes went on.
    shop.applied()
    # First the columns that changed, at the versions that are published; then what came since.
    shop.refresh("columns")
    shop.refresh("ahead")
    assert shop.rows("totals") == AFTER
    applied = shop.promote()

    assert set(applied.messages) == {"promote gold.totals", "promote gold.best"}
    assert shop.rows("totals") == AFTER
    assert_caught_up(shop)


def test_an_input_that_was_rewritten_since_the_build_is_read_again(
    shop: Shop, tmp_path: Path
) -> None:
    sales = shop.settings.project_dir / "sales"
    shutil.copytree(sales, tmp_path / "backup")
    shop.sell(buyer=[4], amount=[40])
    shop.write(totals=DOUBLED)
    shop.build()
    shutil.rmtree(sales)
    shutil.copytree(tmp_path / "backup", sales)
    shop.sell(buyer=[5], amount=[50])
    shop.promote()
    assert (4, 80, 1) in shop.rows("totals"), "as it was built"
    assert shop.refresh("after")["totals"].plan.reason.code is ReasonCode.INPUT_REWOUND
    for view in VIEWS:
        shop.assert_right(view)


def promote_in(folder: Path) -> None:
    settings = shop_at(folder)
    with ControlStore.open(database(folder)) as store, own_spark(settings) as spark:
        Shop(settings, store, spark).promote()


@pytest.mark.parametrize(
    "point",
    [
        one if one == "promotion.published" else pytest.param(one, marks=pytest.mark.long)
        for one in promotion.FAILPOINTS
    ],
)
def test_a_killed_promotion_continues(shop: Shop, tmp_path: Path, point: str) -> None:
    moved_on(shop)
    kill_at(point, promote_in, tmp_path)
    # Each view shows all of its old rows or all of its new ones.
    assert shop.rows("totals") in (BEFORE, BUILT)
    applied = shop.promote()

    assert applied.failed == {}
    assert shop.rows("totals") == BUILT
    commits = [one.decision for one in shop.store.attempts("totals") if one.published_version]
    assert commits.count("promotion") == 1
    found = shop.store.environment("ana")
    assert found is not None
    assert found.status is EnvironmentStatus.PROMOTED
    newest = shop.store.newest_deployment()
    assert newest is not None
    assert (newest.status.value, newest.open_steps) == ("applied", ())
    assert_caught_up(shop)


@pytest.mark.long
def test_an_apply_finishes_a_promotion_that_was_killed(shop: Shop, tmp_path: Path) -> None:
    moved_on(shop)
    kill_at("promotion.published", promote_in, tmp_path)
    while shop.store.lease_holder(catch_up("best")) is not None:
        time.sleep(0.5)
    planned = make_plan(shop.settings, shop.store, shop.project)
    assert "promote gold.best" in map(str, planned.plan.steps)
    refresher = Refresher(
        shop.settings, shop.project, shop.store, session_factory=lambda _: shop.spark
    )
    carrier = Carrier(shop.settings, shop.store, shop.project, refresher=refresher)
    applied = apply(
        shop.settings,
        shop.store,
        planned,
        who="tests",
        carry=carrier.carry,
        watch=lambda _: nullcontext(lambda _: None),
    )
    assert applied.failed == {}
    assert_caught_up(shop)
