"""What a change would make refreshes compute, over tables that another writer changed."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.gold.base.errors import NotAnInputError
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.graph.maintenance.reach import NO_ROWS, RowsMoved
from spark_jobs.planning.errors import VersionRangeError
from spark_jobs.planning.impact import version_range
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.storage.errors import TableMissingError, VersionsGoneError
from tests.unit.gold.conftest import Shop


def test_nothing_that_moved_touches_nothing(shop: Shop) -> None:
    found = shop.asked()
    assert set(found) == {"sums", "notes", "by_hand", "best", "first_notes"}, "not the others"
    assert found["sums"].untouched == "already at version 0"
    assert found["best"].untouched == "no upstream change since gold.sums@0"
    assert all(one.changes == NO_ROWS and one.reads_at_most == 0 for one in found.values())


def test_a_change_goes_through_the_graph_by_the_columns_that_each_view_reads(shop: Shop) -> None:
    shop.update("amount", "amount + 1", "order_id < 3")
    found = shop.asked()
    assert list(found) == ["by_hand", "notes", "sums", "best", "first_notes"]
    sums = found["sums"]
    assert sums.plan.word == "incremental"
    assert (sums.arrivals["bronze.orders"].rows, sums.arrivals["bronze.orders"].exact) == (
        RowsMoved(3, 3),
        True,
    )
    assert (sums.changes, sums.rows, sums.share) == (RowsMoved(6, 6), 10, 0.6)
    assert (sums.reads_at_least, sums.reads_at_most, sums.inputs_rows) == (3, 3, 100)
    assert sums.share_read == 0.03
    best = found["best"]
    assert best.plan.line == "incremental: gold.sums@0→@1; row deltas"
    assert (best.changes, best.arrivals["gold.sums"].exact) == (RowsMoved(6, 6), False)
    assert found["notes"].untouched == "reads none of the changed columns"
    assert found["first_notes"].untouched == "no upstream change since gold.notes@0"
    by_hand = found["by_hand"]
    assert (by_hand.plan.reason.code, by_hand.untouched) == ("STRATEGY_FULL", None)
    assert (by_hand.changes, by_hand.reads_at_most) == (NO_ROWS, 100)


def test_the_planner_decides_as_it_would_for_a_refresh(shop: Shop) -> None:
    shop.update("amount", "0", "order_id < 3")
    refresher = Refresher(shop.context.settings, shop.context.manifest, shop.context.store)
    for view in ("sums", "notes", "by_hand"):
        assert shop.asked()[view].plan.decision == refresher.explain(view).decision


def test_a_range_counts_only_its_own_changes(shop: Shop) -> None:
    for step in range(3):
        shop.update("amount", "amount + 1", f"order_id < {step + 1}")
    rows = {
        versions: shop.asked(versions=versions)["sums"].arrivals["bronze.orders"].rows
        for versions in ("0..1", "1..2", "0..3", "2..3")
    }
    assert rows == {
        "0..1": RowsMoved(1, 1),
        "1..2": RowsMoved(2, 2),
        "0..3": RowsMoved(3, 3),
        "2..3": RowsMoved(3, 3),
    }
    shop.publish("sums")
    assert shop.asked(versions="1..2")["sums"].untouched == "already at version 3"
    assert shop.asked(versions="1..2")["notes"].untouched == "reads none of the changed columns"
    shop.update("amount", "7", "order_id = 50")
    mixed = shop.asked(versions="1..4")["sums"]
    assert mixed.arrivals["bronze.orders"].rows == RowsMoved(1, 1), "the rest is published"


def test_a_change_of_a_gold_view_continues_from_there(shop: Shop) -> None:
    write_deltalake(shop.context.published_at("sums"), pa.table({"row": [1]}), mode="append")
    found = shop.asked("gold.sums")
    assert list(found) == ["best"]
    assert found["best"].plan.word == "incremental"


def test_a_change_published_by_a_view_still_reaches_its_readers(shop: Shop) -> None:
    shop.update("amount", "amount + 1", "order_id < 3")
    shop.publish("sums")
    found = shop.asked()
    assert found["sums"].untouched == "already at version 1"
    best = found["best"]
    assert (best.untouched, best.plan.word) == (None, "incremental")
    assert best.arrivals["gold.sums"].rows == RowsMoved(10, 10)
    refresher = Refresher(shop.context.settings, shop.context.manifest, shop.context.store)
    assert best.plan.line == refresher.explain("best").line
    # Of a range only what comes of it counts, and the view above holds that.
    assert shop.asked(versions="0..1")["best"].untouched == "no upstream change since gold.sums@0"

    shop.update("amount", "amount + 1", "order_id < 3")
    both = shop.asked()["best"]
    assert both.plan.line.startswith("incremental: gold.sums@0→@2")


def test_a_view_that_is_pinned_or_was_never_published(shop: Shop) -> None:
    shop.update("amount", "0", "order_id = 1")
    shutil.rmtree(shop.context.published_at("notes"))
    pinned = PinnedView(
        view="sums", version=0, who="ann", reason="wrong amounts", replay_id="rollback-1"
    )
    shop.context.store.pin_view(pinned)
    found = shop.asked()
    assert "ann pinned the view" in (found["sums"].untouched or "")
    assert found["best"].untouched == "no upstream change since gold.sums@0"
    assert (found["notes"].plan.line, found["notes"].share) == ("full: first build", None)


def test_without_change_files_the_row_count_is_a_limit_from_the_log(shop: Shop) -> None:
    shop.update("amount", "amount + 1", "order_id < 3")
    for file in (shop.project / "data" / "orders" / "_change_data").iterdir():
        file.unlink()
    sums = shop.asked()["sums"]
    assert sums.plan.reason.code == "CHANGE_FEED_MISSING"
    arrived = sums.arrivals["bronze.orders"]
    assert (arrived.rows, arrived.exact) == (RowsMoved(3, 3), False)
    assert sums.reads_at_most == 100


@pytest.mark.parametrize(
    "text", ["", "3", "a..b", "1..", "..2", "1..2..3", "-1..2", "2..2", "3..1"]
)
def test_a_malformed_range_is_refused(text: str) -> None:
    with pytest.raises(VersionRangeError) as error:
        version_range(text)
    assert error.value.text == text


def test_unknown_inputs_and_missing_versions_are_errors(shop: Shop) -> None:
    for table in ("silver.order", "bronze.nothing", "orders", "gold.sum", ""):
        with pytest.raises(NotAnInputError) as unknown:
            shop.asked(table)
        assert unknown.value.table == table
    with pytest.raises(VersionsGoneError) as gone:
        shop.asked(versions="0..9")
    assert (gone.value.table, gone.value.versions) == ("bronze.orders", "0..9")
    shutil.rmtree(shop.project / "data" / "users")
    with pytest.raises(TableMissingError):
        shop.asked("bronze.users")


def test_versions_that_cleaning_up_took_are_named(shop: Shop) -> None:
    for number in range(3):
        shop.update("amount", "0", f"order_id = {number}")
    shop.orders.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(VersionsGoneError):
        shop.asked(versions="0..1")
    shop.orders.create_checkpoint()
    (shop.project / "data" / "orders" / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(VersionsGoneError):
        shop.asked(versions="0..3")


def test_the_command_prints_text_and_json(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(shop.project / "state"))
    monkeypatch.setenv("COLUMNS", "200")
    shop.update("amount", "amount + 1", "order_id < 3")
    words = ["--project", str(shop.project), "impact", "bronze.orders", "--versions", "0..1"]
    told = json.loads(CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).stdout)
    assert (told["versions"], told["newest"]) == ({"after": 0, "upto": 1}, 1)
    [sums] = [one for one in told["views"] if one["view"] == "sums"]
    assert sums["arriving"] == {"bronze.orders": {"rows": {"leave": 3, "enter": 3}, "exact": True}}
    assert sums["changes_at_most"] == {"leave": 6, "enter": 6}
    shown = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert "untouched: reads none of the changed columns" in shown
    assert "≤ -6 +6" in shown
    other = [*words[:3], "gold.best"]
    assert "No gold view reads gold.best." in CliRunner().invoke(app, other).stdout
