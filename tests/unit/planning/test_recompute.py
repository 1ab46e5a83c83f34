"""What is computed again: the time column, a range's pieces, and when a range is not enough."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from spark_jobs.gold.compute.ranges import range_condition
from spark_jobs.graph.manifest import Column, GoldEntry, Maintenance, MaintenanceStrategy, Manifest
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.changes import InputObservation, Movement
from spark_jobs.planning.decision import Range, Reason, ReasonCode, decision_word, scope_of
from spark_jobs.planning.errors import ReplayRequestError
from spark_jobs.planning.plan import Intruder, ViewObservation, plan_refresh
from spark_jobs.planning.ranges import RowRange, TimeRange, row_range, time_column
from spark_jobs.planning.recompute import Recompute, plan_recompute
from spark_jobs.planning.replay import ReplayPlan, ViewPlan
from spark_jobs.planning.request import ReplayRequest, replay_request, why
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from tests.unit.planning.hostile import HOSTILE

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MIDNIGHT = NOON.replace(hour=0)
ORDERS = TableName.parse("silver.orders")
DATE = Column(name="day", type="date")
TIME = Column(name="at", type="timestamp")
ENTRY = GoldEntry(
    name="daily",
    description="d",
    owner="o",
    refresh="bulk",
    sql="SELECT 1",
    query="SELECT 1",
    inputs=("silver.orders",),
    columns=(DATE, Column(name="orders", type="bigint")),
    grain=("day",),
    fingerprint="now",
    deterministic=True,
    reads_clock=False,
    file="sql/gold/daily.sql",
    tier=0,
    downstream=("weekly",),
)
PUBLISHED = Watermark(
    view="daily",
    sequence=7,
    epoch=2,
    fingerprint="now",
    rule="full",
    vector=VersionVector({ORDERS: TableVersion("a", 41)}),
    tick="t",
    attempt="x",
    clock=NOON,
)
INPUT = InputObservation(
    table=ORDERS,
    before=TableVersion("a", 41),
    pinned=TableVersion("a", 44),
    current=TableVersion("a", 44),
)
SEEN = ViewObservation(published=PUBLISHED, intruder=None, epoch=2, inputs=(INPUT,))
ASKED = Recompute(code=ReasonCode.REPLAYED, time=TimeRange(MIDNIGHT, NOON + DAY), piece=DAY)
MANIFEST = Manifest(
    project="p",
    gold={
        "daily": ENTRY,
        "weekly": ENTRY.model_copy(update={"name": "weekly", "tier": 1, "downstream": ()}),
        "other": ENTRY.model_copy(update={"name": "other", "downstream": ()}),
    },
)


def entry(*columns: Column, grain: tuple[str, ...] = (), **maintenance: object) -> GoldEntry:
    change = {"columns": columns, "grain": grain}
    if maintenance:
        change["maintenance"] = Maintenance(**maintenance)
    return ENTRY.model_copy(update=change)


@pytest.mark.parametrize(
    ("fingerprint", "reshaped", "at"), [("then", True, 44), ("then", False, 41), ("now", True, 41)]
)
def test_a_new_definition_is_computed_where_its_inputs_have_their_columns(
    fingerprint: str, reshaped: bool, at: int
) -> None:
    moved = replace(INPUT, movement=Movement(reshaped=reshaped))
    published = replace(PUBLISHED, fingerprint=fingerprint)
    plan = plan_recompute(
        ENTRY,
        replace(SEEN, published=published, inputs=(moved,)),
        tick="r1",
        clock=NOON,
        asked=replace(ASKED, time=None),
        readable=True,
    )
    assert dict(plan.vector) == {ORDERS: TableVersion("a", at)}


def test_the_time_column_is_one_that_no_change_of_rows_moves() -> None:
    groups = {"rule": MaintenanceStrategy.AGGREGATE_STATE}
    assert time_column(ENTRY) == DATE
    assert time_column(entry(TIME, DATE, grain=("day",))) == DATE
    assert time_column(entry(DATE, TIME, key=("day", "x"), **groups)) == DATE
    assert time_column(entry(DATE, TIME, key=("day", "at"), **groups)) is None
    assert time_column(entry(TIME, key=("user",), **groups)) is None, "the latest order's time"
    assert time_column(entry(TIME, rule=MaintenanceStrategy.ROW_DELTAS, key=("order",))) == TIME
    assert time_column(entry(TIME, DATE, rule=MaintenanceStrategy.ROW_DELTAS)) is None
    assert time_column(entry(DATE)) is None, "nothing says what the column is"
    assert time_column(entry(Column(name="n", type="bigint"), grain=("n",))) is None


def test_a_date_is_taken_whole_and_an_instant_as_it_is() -> None:
    asked = TimeRange(NOON, NOON + timedelta(hours=1))
    assert row_range(TIME, asked).time == asked
    assert row_range(DATE, asked).time == TimeRange(MIDNIGHT, MIDNIGHT + DAY)
    whole = TimeRange(MIDNIGHT, MIDNIGHT + DAY)
    assert row_range(DATE, whole).time == whole


@pytest.mark.parametrize(
    ("column", "piece", "count"),
    [
        (DATE, None, 1),
        (DATE, DAY, 3),
        (DATE, timedelta(hours=6), 3),
        (DATE, timedelta(hours=36), 3),
        (DATE, 2 * DAY, 2),
        (TIME, timedelta(hours=36), 2),
        (TIME, timedelta(hours=7), 11),
    ],
)
def test_pieces_cover_the_range_without_gap_or_overlap(
    column: Column, piece: timedelta | None, count: int
) -> None:
    rows = row_range(column, TimeRange(MIDNIGHT, MIDNIGHT + 3 * DAY), piece=piece)
    pieces = rows.pieces()
    assert len(pieces) == count
    assert (pieces[0].start, pieces[-1].end) == (rows.time.start, rows.time.end)
    assert all(one.end == after.start for one, after in pairwise(pieces))
    assert all(one.start < one.end for one in pieces)
    assert RowRange.from_dict(rows.as_dict()) == rows


def test_a_range_may_last_from_the_first_year_to_the_last() -> None:
    asked = replay_request(
        MANIFEST, ["daily"], start="0001-01-01", end="9999-12-31", chunk="1000000 days"
    )
    assert asked.time is not None
    rows = row_range(DATE, asked.time, piece=asked.piece)
    assert [one.end for one in rows.pieces()][-1] == asked.time.end
    assert len(rows.pieces()) == 4
    assert str(asked.time) == "0001-01-01 to 9999-12-31"
    condition = range_condition(rows, rows.pieces()[0])
    assert "day` >= CAST(TIMESTAMP '0001-01-01 00:00:00.000000' AS date)" in condition


def plan(
    of: GoldEntry = ENTRY,
    seen: ViewObservation = SEEN,
    asked: Recompute = ASKED,
    *,
    readable: bool = True,
):
    return plan_recompute(of, seen, tick="r1", clock=NOON, asked=asked, readable=readable)


def test_a_range_is_computed_at_the_versions_that_are_published() -> None:
    found = plan()
    assert isinstance(found.decision, Range)
    assert found.line == "range: replay of the rows with day from 2026-01-02 to 2026-01-04"
    assert found.vector == PUBLISHED.vector
    again = Recompute.again(found.reason.code, scope_of(found.decision))
    assert plan(asked=again).decision == found.decision


@pytest.mark.parametrize(
    ("of", "seen", "why"),
    [
        (ENTRY.model_copy(update={"grain": ()}), SEEN, "the view has no time column"),
        (ENTRY.model_copy(update={"fingerprint": "new"}), SEEN, "its definition changed"),
        (ENTRY.model_copy(update={"reads_clock": True}), SEEN, "depend on when"),
        (ENTRY.model_copy(update={"deterministic": False}), SEEN, "depend on when"),
        (
            ENTRY.model_copy(update={"columns": (DATE, Column(name="m", type="map<int,int>"))}),
            SEEN,
            "cannot be compared",
        ),
        (ENTRY, replace(SEEN, epoch=3), "epoch 3 was begun"),
        (ENTRY, replace(SEEN, intruder=Intruder(9, "DELETE")), "somebody else wrote version 9"),
    ],
)
def test_a_range_that_would_not_make_the_table_its_sql_is_widened(
    of: GoldEntry, seen: ViewObservation, why: str
) -> None:
    found = plan(of, seen)
    assert decision_word(found.decision) == "full"
    assert why in found.line
    assert found.vector == PUBLISHED.vector, "what differs is what was wrong"


def test_versions_that_are_gone_are_replaced_by_the_newest() -> None:
    newest = VersionVector({ORDERS: TableVersion("a", 44)})
    assert plan(readable=False).vector == newest
    assert plan(seen=replace(SEEN, published=None)).vector == newest
    other = replace(INPUT, before=TableVersion("b", 41))
    found = plan(seen=replace(SEEN, inputs=(other,)))
    assert (found.word, found.vector) == ("full", newest)
    missing = plan(seen=replace(SEEN, inputs=(replace(INPUT, pinned=None),)))
    assert missing.reason.code is ReasonCode.INPUT_MISSING


def test_a_parked_view_is_left_alone_by_all_but_a_replay() -> None:
    parked = replace(SEEN, parked=Reason(ReasonCode.VIEW_PINNED, "held"))
    for force in (False, True):
        found = plan_refresh(ENTRY, parked, tick="t", clock=NOON, force=force)
        assert found.line == "skip: held"
    backfill = Recompute(code=ReasonCode.BACKFILLED, time=ASKED.time)
    assert plan(seen=parked, asked=backfill).reason.code is ReasonCode.VIEW_PINNED
    assert plan(seen=parked).word == "range"


@pytest.mark.parametrize("code", [ReasonCode.REPLAY_PUBLISHES, ReasonCode.WAITS_FOR_TRANSACTION])
def test_a_backfill_does_not_wait_like_a_refresh(code: ReasonCode) -> None:
    """No later run would compute its rows, and it reads the published versions."""
    parked = replace(SEEN, parked=Reason(code, "the next run picks up the changes"))
    backfill = Recompute(code=ReasonCode.BACKFILLED, time=ASKED.time)
    assert plan(seen=parked, asked=backfill).word == "range"


def test_a_request_is_read_again_as_it_was_written() -> None:
    asked = replay_request(
        MANIFEST,
        ["daily"],
        branch=True,
        start="2026-01-01",
        end="2026-01-03T06:00:00+01:00",
        chunk="1 day 12 hours",
        only_stale=True,
    )
    assert asked.views == ("daily", "weekly")
    assert asked.time == TimeRange(MIDNIGHT - DAY, MIDNIGHT + timedelta(hours=29))
    assert ReplayRequest.from_dict(asked.as_dict()) == asked
    selected = replay_request(MANIFEST, ["daily", "state:changed"], changed=lambda: ["other"])
    assert selected.views == ("daily", "other")
    plain = replay_request(MANIFEST, ["other", "gold.daily", "other"])
    assert plain.views == ("daily", "other")
    assert ReplayRequest.from_dict(plain.as_dict()) == plain


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("views", {"views": []}),
        ("views", {"views": "daily"}),
        ("views", {"views": ["dayly"]}),
        ("views", {"views": ["tag:nothing"]}),
        ("views", {"views": ["state:old"]}),
        ("views", {"views": ["; rm -rf"]}),
        ("branch", {"branch": "true"}),
        ("only_stale", {"only_stale": 1}),
        ("from", {"start": None}),
        ("to", {"end": ""}),
        ("to", {"end": "2026-01-01"}),
        ("to", {"end": "2026-13-01"}),
        ("to", {"end": "9999-12-31 23:59:59"}),
        ("from", {"start": "0000-01-01"}),
        ("from", {"start": "0001-01-01T00:00:00+23:59"}),
        ("from", {"start": 20260101}),
        ("from", {"start": "2026-01-02T00:00:01", "end": "2026-01-03", "now": MIDNIGHT}),
        ("from", {"start": "2036-01-01", "end": "2036-02-01"}),
        ("chunk", {"chunk": "0 days"}),
        ("chunk", {"chunk": "1 second"}),
        ("chunk", {"chunk": "1 day", "start": None, "end": None}),
    ],
)
def test_an_unusable_value_is_reported_with_its_field(field: str, change: dict) -> None:
    good = {"views": ["daily"], "start": "2026-01-01", "end": "2026-01-02"}
    given = good | change
    with pytest.raises(ReplayRequestError) as caught:
        replay_request(MANIFEST, given.pop("views"), **given)
    assert caught.value.field == field
    assert caught.value.hint


@pytest.mark.parametrize(
    "reason",
    [
        "the supplier's stock is 50% off",
        'he said "no"; see OPS-1 | <b>$(x)</b> {{ y }}',
        "Die Beträge sind zu groß geworden!",
        "供应商的库存数量完全是错误的数据",
        "المبالغ خاطئة منذ يوم الأحد",
        "क्‍षेत्र की राशि गलत है",
    ],
)
def test_a_reason_may_be_in_any_language(reason: str) -> None:
    assert why(f"  {reason}\n", None).reason == reason


@pytest.mark.parametrize(
    "reason", ["too short", "x" * 301, "-" * 20, "\x1b\u202e" * 10, 7, None, ["a list of reasons"]]
)
def test_a_reason_without_words_is_refused(reason: object) -> None:
    with pytest.raises(ReplayRequestError) as caught:
        why(reason)
    assert caught.value.field == "reason"


def test_a_reason_is_one_line_of_what_can_be_seen() -> None:
    assert why("the first\r\nsecond \x1b[31mline\u202e\u200b here").reason == (
        "the first second [31mline here"
    )


def test_no_hostile_text_changes_what_is_around_a_reason() -> None:
    for text in HOSTILE:
        with contextlib.suppress(ReplayRequestError):
            found = why(text).reason
            assert found.isprintable()
            assert len(found) <= 300


def test_a_plan_sums_costs_and_marks_unknown_ones() -> None:
    known = ViewPlan(refresh=plan(), rows=10, in_the_way=("ann writes it",))
    request = replay_request(MANIFEST, ["daily"])
    made = ReplayPlan(request=request, views=(known,), followers=("weekly",))
    assert known.pieces == 2
    assert made.needs_approval(above_rows=10**9), "the inputs' rows are not counted"
    heading = "| view | decision | versions | rows | reads | pieces | conflicts |"
    assert made.markdown().splitlines()[0] == heading
    assert "| daily | range: replay" in made.markdown()
    assert "ann writes it" in made.markdown()
    assert "Refreshed afterwards: weekly." in made.markdown()
    pinned = replace(known, in_the_way=("ann pinned it (wrong | [see](http://x))",))
    shown = ReplayPlan(request=request, views=(pinned,)).markdown()
    assert r"ann pinned it \(wrong \| \[see\]\(http://x\)\) |" in shown
    nothing = ReplayPlan(request=request, views=())
    assert not nothing.needs_approval(above_rows=0)
