"""Replay and rollback: what is computed again equals the SQL, is published once, and holds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from spark_jobs.gold.base.errors import NothingToReleaseError, RollbackRefusedError
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.compute import ranges
from spark_jobs.gold.recover import recompute, replay, rollback
from spark_jobs.gold.recover.replay import Replayer
from spark_jobs.gold.recover.rollback import Rollbacker
from spark_jobs.gold.refresh import steps as refresh
from spark_jobs.gold.refresh.again import publish_on_newest
from spark_jobs.graph.manifest import Column
from spark_jobs.planning.request import ReplayRequest, Why, replay_request
from spark_jobs.state.replays import ReplayRecord, ReplayStatus, ViewProgress
from spark_jobs.storage import log, tables
from tests.spark.gold_project import GoldProject

WHY = Why("a test wants it so", None)
SALES = """SELECT CAST(o.day AS DATE) AS day, o.customer, CAST(o.amount AS DECIMAL(12, 2)) AS amount
FROM VALUES ('2026-01-01', 'ann', 1), ('2026-01-02', 'ann', 2), ('2026-01-02', 'bob', 3),
('2026-01-03', 'bob', 4) AS o (day, customer, amount)"""
DAILY = """SELECT s.day AS day, COUNT(*) AS sales, CAST(SUM(s.amount) AS DECIMAL(12, 2)) AS amount
FROM silver.sales AS s GROUP BY s.day"""
COLUMNS = (
    Column(name="day", type="date"),
    Column(name="sales", type="bigint"),
    Column(name="amount", type="decimal(12,2)"),
)
MORE = "SELECT DATE '2026-01-02' AS day, 'eve' AS customer, CAST(5 AS DECIMAL(12, 2)) AS amount"

# Says itself, and more mildly, what the grain implies.
UNIQUE = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "day"}}
SHARED = {"name": "daily", "expectations": [{**UNIQUE, "severity": "info"}]}


class Killed(BaseException):
    """Ends a run as a signal would: nothing that handles errors sees it."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Arm a failpoint; it goes off once."""

    def arm(name: str | None) -> None:
        armed = [name]

        def failpoint(passed: str) -> None:
            if passed in armed:
                armed.clear()
                raise Killed(passed)

        for module in (ranges, recompute, refresh, replay, rollback):
            monkeypatch.setattr(module, "failpoint", failpoint)

    return arm


@pytest.fixture
def shop(gold: GoldProject) -> GoldProject:
    """The view ``daily`` over silver.sales, published, and wrong on two days as by a fault."""
    gold.append("silver.sales", SALES)
    declare(gold)
    gold.refresh("daily", "t1")
    spoil(gold)
    return gold


def declare(gold: GoldProject, query: str = DAILY, **changes: object) -> None:
    gold.view("daily", query, inputs=["silver.sales"], columns=COLUMNS, grain=["day"], **changes)


def spoil(gold: GoldProject) -> None:
    """Falsify rows under a commit that says it is a publication, as a wrong rule would."""
    location = gold.location("gold.daily")
    latest = latest_publication(location)
    assert latest is not None
    frame = gold.spark.sql(
        "SELECT day, sales + IF(day = DATE '2026-01-01', 0, 10) AS sales, amount "
        f"FROM delta.`{location}`"
    )
    mark = latest.watermark.as_metadata()
    mark |= {"sequence": mark["sequence"] + 1, "attempt": "wrong"}
    tables.overwrite(frame, location, metadata=mark)


def begin(gold: GoldProject, replay_id: str = "r1", **fields: object) -> Replayer:
    replayer = Replayer(gold.refresher)
    plan = replayer.plan(request(gold, **fields))
    replayer.begin(plan, replay_id=replay_id, who="ann", why=WHY)
    return replayer


def request(gold: GoldProject, **fields: object) -> ReplayRequest:
    return replay_request(gold.manifest, ["daily"], **fields)


def run(gold: GoldProject, replay_id: str = "r1", **fields: object) -> ReplayRecord:
    return begin(gold, replay_id, **fields).run(replay_id)


def sales(gold: GoldProject) -> dict[str, int]:
    return {str(day): count for day, count, _ in gold.rows("daily")}


WRONG = {"2026-01-01": 1, "2026-01-02": 12, "2026-01-03": 11}
RIGHT = {"2026-01-01": 1, "2026-01-02": 2, "2026-01-03": 1}
DAYS = {"start": "2026-01-01", "end": "2026-01-04", "chunk": "1 day"}


def test_a_replay_corrects_only_the_rows_of_its_range(shop: GoldProject) -> None:
    assert sales(shop) == WRONG
    before = log.table_version(shop.location("gold.daily"))
    record = run(shop, start="2026-01-02", end="2026-01-03")
    assert record.status is ReplayStatus.DONE, record.error
    assert sales(shop) == WRONG | {"2026-01-02": 2}
    (row,) = shop.store.replay_views("r1")
    assert row.difference["leaving"] == row.difference["entering"] == 1
    assert row.difference["same_versions"]
    assert {one["sales"] for one in row.difference["examples"]} == {"2", "12"}
    assert row.published_version == before.version + 1
    assert len(shop.changes("daily", row.published_version)) == 2, "only what differs is fed"
    assert run(shop, "r2").status is ReplayStatus.DONE
    assert sales(shop) == RIGHT
    shop.assert_right("daily")


# Where the work is killed one time after the other; each list is one replay.
KILLS = [
    [
        "gold.replay.begun",
        "gold.replay.planned",
        "gold.stage.before_write",
        "gold.stage.piece_written",
        "gold.stage.recorded",
        "gold.audit.judged",
        "gold.audit.recorded",
        "gold.replay.built",
        "gold.publish.cleaned",
        "gold.replay.published",
        "gold.replay.followed",
    ],
    ["gold.publish.recorded"],
    ["gold.replay.committed"],
]


@pytest.mark.parametrize("names", KILLS, ids=lambda names: names[0])
def test_a_replay_that_is_killed_anywhere_continues_and_publishes_once(
    shop: GoldProject, kill_at, names: list[str]
) -> None:
    for name in names:
        kill_at(name)
        with pytest.raises(Killed, match=name):
            run(shop, **DAYS)
    replayer = begin(shop, **DAYS)
    assert replayer.unfinished(request(shop, **DAYS)).replay_id == "r1"
    for _ in range(2):
        assert replayer.run("r1").status is ReplayStatus.DONE
    assert sales(shop) == RIGHT
    shop.assert_right("daily")
    assert [one["tick"] for one in shop.publications("daily")] == ["t1", "t1", "r1"]


def test_pieces_that_are_there_are_not_computed_again(
    shop: GoldProject, kill_at, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at("gold.stage.piece_written")
    with pytest.raises(Killed):
        run(shop, **DAYS)
    written: list[int] = []
    write = ranges._write_piece
    monkeypatch.setattr(
        ranges, "_write_piece", lambda *given: (written.append(given[2]), write(*given))
    )
    assert begin(shop, **DAYS).run("r1").status is ReplayStatus.DONE
    assert written == [2, 3]
    assert sales(shop) == RIGHT


@pytest.mark.parametrize("fields", [{}, DAYS])
def test_a_refresh_that_is_faster_is_caught_up_with(shop: GoldProject, fields: dict) -> None:
    replayer = begin(shop, **fields)
    replayer.build("r1", "daily")
    shop.append("silver.sales", MORE)
    live = shop.refresh("daily", "t2")
    assert live.version is not None
    row = replayer.publish("r1", "daily")
    assert row.status is ViewProgress.PUBLISHED
    assert sales(shop) == RIGHT | {"2026-01-02": 3}
    shop.assert_right("daily")
    versions = [one["vector"]["silver.sales"]["version"] for one in shop.publications("daily")]
    assert versions == sorted(versions), "never back in time"


def test_a_refresh_that_a_replay_overtook_is_published_on_top_of_it(gold: GoldProject) -> None:
    gold.append("silver.sales", SALES)
    # A change of spoiled rows would be held otherwise: it does not find those that it replaces.
    declare(gold, maintained=True, suite=SHARED)
    gold.refresh("daily", "t1")
    spoil(gold)
    replayer = begin(gold)
    replayer.build("r1", "daily")
    gold.append("silver.sales", MORE)
    live = gold.refresher.plan("daily", tick="t2")
    assert live.word == "incremental"
    gold.refresher.stage(live.attempt_id)
    gold.refresher.audit(live.attempt_id)
    replayer.publish("r1", "daily")
    assert not publish_on_newest(gold.refresher, live.attempt_id).superseded
    assert sales(gold) == RIGHT | {"2026-01-02": 3}
    gold.assert_right("daily")
    assert [one["rule"] for one in gold.publications("daily")[2:]] == ["full", live.decision.rule]


def test_refreshes_stand_back_while_a_replay_catches_up(shop: GoldProject) -> None:
    shop.append("silver.sales", MORE)
    with shop.store.lease("recompute/gold.daily", owner="r1", seconds=60):
        assert shop.reason("daily") == "REPLAY_PUBLISHES"
        assert shop.refresh("daily", "t2").status == "skipped"
    assert shop.refresh("daily", "t3").status == "published"


def test_a_range_is_widened_where_its_rows_alone_would_not_do(shop: GoldProject) -> None:
    declare(shop, DAILY.replace("COUNT(*)", "COUNT(*) + 1"))
    plan = Replayer(shop.refresher).plan(request(shop, **DAYS))
    (view,) = plan.views
    assert view.refresh.word == "full"
    assert "its definition changed" in view.refresh.line
    assert run(shop, **DAYS).status is ReplayStatus.DONE
    shop.assert_right("daily")


def test_a_view_stays_pinned_until_it_is_released(shop: GoldProject) -> None:
    shop.append("silver.sales", MORE)
    assert run(shop).status is ReplayStatus.DONE
    rollbacker = Rollbacker(shop.refresher)
    target = rollbacker.target("daily", replay="r1")
    rollbacker.begin("daily", target, replay_id="b1", who="ann", why=WHY)
    row = rollbacker.run("b1")
    assert sales(shop) == WRONG
    assert rollbacker.run("b1") == row
    outcome = shop.refresh("daily", "t9", force=True)
    assert (outcome.status, outcome.plan.reason.code) == ("skipped", "VIEW_PINNED")
    assert sales(shop) == WRONG
    assert log.transaction_version(shop.location("gold.daily"), "gold/daily/2") == 1

    rollbacker.release("daily", who="bob", why=WHY, approved_by="eve")
    with pytest.raises(NothingToReleaseError):
        rollbacker.release("daily", who="bob")
    (ended,) = shop.store.replay("b1").decisions
    told = {"what": "pin ended", "who": "bob", "approved_by": "eve", "reason": WHY.reason}
    assert ended.items() >= told.items()
    assert shop.refresh("daily", "t10").status == "published"
    assert shop.publications("daily")[-1]["vector"]["silver.sales"]["version"] == 1


def test_the_next_replay_releases_a_pinned_view(shop: GoldProject) -> None:
    shop.execute("DELETE FROM {} WHERE sales = 1", "gold.daily")
    assert Rollbacker(shop.refresher).target("daily").version == 1, "before the stranger"
    rollbacker = back(shop, to=0)
    with pytest.raises(RollbackRefusedError) as caught:
        rollbacker.target("daily", to=99)
    assert caught.value.known == (1, 0)
    shop.append("silver.sales", MORE)
    assert run(shop).status is ReplayStatus.DONE
    assert shop.store.pinned_views() == {}
    assert sales(shop) == RIGHT | {"2026-01-02": 3}, "what came meanwhile is taken up afterwards"


def back(gold: GoldProject, *, to: int) -> Rollbacker:
    rollbacker = Rollbacker(gold.refresher)
    target = rollbacker.target("daily", to=to)
    record = rollbacker.begin("daily", target, replay_id="b1", who="ann", why=WHY)
    rollbacker.run(record.replay_id)
    return rollbacker


def test_a_damaged_table_can_be_rolled_back_and_computed_again(shop: GoldProject) -> None:
    def damage() -> None:
        location = Path(shop.location("gold.daily"))
        for file in log.files(log.existing_table(str(location))).column("path").to_pylist():
            (location / file).unlink()

    damage()
    back(shop, to=0)
    assert sales(shop) == RIGHT
    damage()
    Rollbacker(shop.refresher).release("daily", who="ann")
    shop.refresh("daily", "t2", force=True)
    shop.assert_right("daily")


def test_the_same_rollback_again_publishes_nothing(shop: GoldProject) -> None:
    shop.execute("DELETE FROM {} WHERE sales = 1", "gold.daily")
    rollbacker = back(shop, to=0)
    again = partial(rollbacker.begin, "daily", rollbacker.target("daily", to=0), replay_id="b2")
    assert again(who="ann", why=WHY).replay_id == "b1"
    rollbacker.run("b1")
    assert [one["rule"] for one in shop.publications("daily")].count("rollback") == 1
    assert again(who="ann", why=Why("for another reason", None)).replay_id == "b2"


def test_a_rollback_that_is_killed_anywhere_continues_and_publishes_once(
    shop: GoldProject, kill_at
) -> None:
    names = [*rollback.FAILPOINTS[:-1], "gold.stage.recorded", "gold.publish.recorded"]
    for name in [*names, rollback.FAILPOINTS[-1]]:
        kill_at(name)
        with pytest.raises(Killed, match=name):
            back(shop, to=0)
    assert sales(shop) == RIGHT
    assert [one["rule"] for one in shop.publications("daily")].count("rollback") == 1
    assert shop.reason("daily") == "VIEW_PINNED"
    shop.assert_right("daily")


def test_a_refresh_that_was_planned_before_a_rollback_does_not_undo_it(shop: GoldProject) -> None:
    shop.append("silver.sales", MORE)
    late = shop.refresher.plan("daily", tick="t2").attempt_id
    shop.refresher.stage(late)
    shop.refresher.audit(late)
    back(shop, to=0)
    assert shop.refresher.publish(late).superseded
    assert sales(shop) == RIGHT


def test_duplicates_within_a_range_are_counted(gold: GoldProject) -> None:
    gold.append("silver.sales", SALES.replace("'2026-01-03', 'bob', 4", "'2026-01-02', 'bob', 3"))
    query = "SELECT s.day AS day, s.customer, s.amount FROM silver.sales AS s"
    columns = (COLUMNS[0], Column(name="customer", type="string"), COLUMNS[2])
    # The grain names the time column here.
    gold.view("daily", query, inputs=["silver.sales"], columns=columns, grain=["day"], suite=SHARED)
    gold.refresh("daily", "t1")
    location = gold.location("gold.daily")
    mark = latest_publication(location).watermark.as_metadata()
    mark |= {"sequence": 2, "attempt": "wrong"}
    frame = gold.spark.sql(f"SELECT DISTINCT * FROM delta.`{location}`")
    tables.overwrite(frame, location, metadata=mark)
    assert run(gold, start="2026-01-02", end="2026-01-03").status is ReplayStatus.DONE
    assert [amount for _, _, amount in gold.rows("daily")].count(Decimal(3)) == 2
    gold.assert_right("daily")


def test_personal_values_are_not_in_reports(gold: GoldProject) -> None:
    gold.append("silver.sales", SALES)
    query = "SELECT s.day AS day, s.customer AS Customer, s.amount FROM silver.sales AS s"
    columns = (COLUMNS[0], Column(name="Customer", type="string", pii=True), COLUMNS[2])
    gold.view("daily", query, inputs=["silver.sales"], columns=columns)
    gold.refresh("daily", "t1")
    location = gold.location("gold.daily")
    mark = latest_publication(location).watermark.as_metadata() | {"sequence": 2, "attempt": "x"}
    wrong = gold.spark.sql(f"SELECT day, Customer, amount + 1 AS amount FROM delta.`{location}`")
    tables.overwrite(
        wrong.selectExpr("day", "Customer", "CAST(amount AS DECIMAL(12, 2)) AS amount"),
        location,
        metadata=mark,
    )
    examples = gold.verify("daily").examples
    assert {one["Customer"] for one in examples} == {"***"}, examples
    assert run(gold).status is ReplayStatus.DONE
    found = gold.store.replay_view("r1", "daily").difference
    assert found["leaving"] == found["entering"] == 4
    assert {one["Customer"] for one in found["examples"]} == {"***"}
    assert all(one["amount"] != "***" for one in found["examples"])


def test_rows_that_left_with_time_leave_after_a_rollback_too(
    gold: GoldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback keeps the clock of its rows: the next refresh continues from there."""
    noon = datetime(2100, 1, 2, 12, tzinfo=UTC)
    times = ", ".join(f"(TIMESTAMP '2100-01-02 {hour}:30:00')" for hour in (11, 12, 13))
    gold.append("silver.sales", f"SELECT o.at FROM VALUES {times} AS o (at)")
    query = "SELECT s.at FROM silver.sales AS s WHERE s.at >= CURRENT_TIMESTAMP() - INTERVAL 1 HOUR"
    columns = (Column(name="at", type="timestamp"),)
    gold.view(
        "daily",
        query,
        inputs=["silver.sales"],
        columns=columns,
        reads_clock=True,
        maintained=True,
    )

    def refresh_at(hours: int) -> str:
        refresher = gold.refresher
        monkeypatch.setattr(refresher, "_now", lambda: noon + timedelta(hours=hours))
        return refresher.run("daily", tick=f"t{hours}").plan.word

    assert [refresh_at(0), refresh_at(1)] == ["full", "incremental"]
    back(gold, to=0)
    gold.assert_right("daily")
    assert gold.publications("daily")[-1]["clock"] == noon.isoformat()
    Rollbacker(gold.refresher).release("daily", who="ann")
    refresh_at(2)
    assert len(gold.rows("daily")) == 1
    gold.assert_right("daily")
