"""Every reason for a decision, from observations alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.graph.manifest import GoldEntry, Maintenance, MaintenanceStrategy, Parts
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.changes import InputObservation, Movement
from spark_jobs.planning.decision import (
    Incremental,
    ReasonCode,
    scope_of,
)
from spark_jobs.planning.experience import PastRefresh
from spark_jobs.planning.plan import Intruder, RefreshPlan, ViewObservation, plan_refresh
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ORDERS = TableName.parse("silver.orders")
USERS = TableName.parse("silver.users")
ENTRY = GoldEntry(
    name="daily",
    description="d",
    owner="o",
    refresh="bulk",
    sql="SELECT 1",
    query="SELECT 1",
    inputs=("silver.orders", "silver.users"),
    columns=(),
    fingerprint="now",
    deterministic=True,
    reads_clock=False,
    file="sql/gold/daily.sql",
    tier=0,
)


def version(number: int, table_id: str = "a") -> TableVersion:
    return TableVersion(table_id, number)


PUBLISHED = Watermark(
    view="daily",
    sequence=7,
    epoch=2,
    fingerprint="now",
    rule="full",
    vector=VersionVector({ORDERS: version(41), USERS: version(3)}),
    tick="t",
    attempt="x",
    clock=NOON,
)


def seen(table: TableName, number: int, **change: object) -> InputObservation:
    same = InputObservation(
        table=table,
        before=version(number),
        pinned=version(number),
        current=version(number),
        movement=Movement(rows_changed=False),
    )
    return replace(same, **change)


FED = Movement(fed=True, rows=5, total=100_000)
STILL = ViewObservation(
    published=PUBLISHED, intruder=None, epoch=2, inputs=(seen(ORDERS, 41), seen(USERS, 3))
)
MOVED = replace(
    STILL,
    inputs=(
        seen(ORDERS, 41, pinned=version(44), current=version(45), movement=FED),
        seen(USERS, 3),
    ),
)


MAINTAINED = ENTRY.model_copy(
    update={"maintenance": Maintenance(rule=MaintenanceStrategy.AFFECTED_GROUP_RECOMPUTE)}
)


KEYED = MAINTAINED.model_copy(
    update={
        "fingerprint": "next",
        "maintenance": Maintenance(rule=MaintenanceStrategy.AFFECTED_GROUP_RECOMPUTE, key=("k",)),
        "parts": Parts(rows="r", columns={"k": "1", "a": "2", "b": "3"}),
    }
)
BEFORE = Parts(rows="r", columns={"k": "1", "a": "2"})


def moved(**movement: object) -> ViewObservation:
    """silver.orders moved so."""
    change = replace(FED, **movement)
    return orders(pinned=version(44), current=version(45), movement=change)


def orders(**change: object) -> ViewObservation:
    return replace(STILL, inputs=(seen(ORDERS, 41, **change), seen(USERS, 3)))


def redefined(entry: GoldEntry, parts: Parts | None, **change: object) -> RefreshPlan:
    """The plan after a definition with these parts was published; an input moved since."""
    observed = replace(MOVED, published=replace(PUBLISHED, parts=parts), readable=True)
    return plan_refresh(entry, replace(observed, **change), tick="t", clock=NOON)


def test_columns_alone_are_computed_at_the_published_versions() -> None:
    plan = redefined(KEYED, BEFORE)
    assert plan.line == "full: columns b are new or differ, the others stay"
    assert scope_of(plan.decision) == {"columns": ["b"]}
    assert plan.vector == PUBLISHED.vector


@pytest.mark.parametrize(
    ("update", "parts", "change"),
    [
        ({}, None, {}),
        ({}, BEFORE.model_copy(update={"rows": "others"}), {}),
        ({}, BEFORE.model_copy(update={"columns": {"k": "other", "a": "2"}}), {}),
        ({"reads_clock": True}, BEFORE, {}),
        ({"parts": None}, BEFORE, {}),
        ({"strategy": Strategy.FULL}, BEFORE, {}),
        ({}, BEFORE, {"readable": False}),
        # A new column may be one that the published version of the input lacks.
        ({}, BEFORE, {"inputs": moved(reshaped=True).inputs}),
        ({}, BEFORE, {"inputs": (seen(ORDERS, 41), seen(USERS, 3, before=None))}),
        ({}, BEFORE, {"inputs": (seen(ORDERS, 41), seen(USERS, 3, before=version(3, "b")))}),
    ],
)
def test_otherwise_a_new_definition_computes_all(
    update: dict[str, Any], parts: Parts | None, change: dict[str, Any]
) -> None:
    plan = redefined(KEYED.model_copy(update=update), parts, **change)
    assert plan.line == "full: definition changed"
    assert scope_of(plan.decision) is None


@pytest.mark.parametrize(
    ("observed", "line"),
    [
        (STILL, "skip: no upstream change since silver.orders@41, silver.users@3"),
        (
            orders(pinned=version(43), current=version(43)),
            "skip: no upstream change since silver.orders@41, silver.users@3",
        ),
        (MOVED, "full: silver.orders@41→@44 changed and the view has no maintenance strategy"),
        (replace(STILL, published=None), "full: first build"),
        (
            replace(STILL, published=replace(PUBLISHED, fingerprint="then")),
            "full: definition changed",
        ),
        (
            replace(STILL, epoch=3),
            "full: epoch 3 was begun after epoch 2 was published",
        ),
        (
            replace(STILL, intruder=Intruder(9, "DELETE")),
            "full: somebody else wrote version 9 (DELETE)",
        ),
        (
            replace(STILL, intruder=Intruder(9, "RESTORE")),
            "full: the published table was restored in version 9",
        ),
        (
            orders(pinned=version(0, "b"), current=version(0, "b")),
            "full: silver.orders was recreated",
        ),
        (
            orders(pinned=version(12), current=version(12)),
            "full: silver.orders lost versions that were published from",
        ),
        (orders(before=None), "full: new input silver.orders"),
        (
            orders(pinned=None, current=None),
            "skip: silver.orders does not exist yet, or no longer",
        ),
        (
            orders(current=version(0, "b")),
            "skip: silver.orders does not exist yet, or no longer",
        ),
        (
            orders(pinned=version(40), current=version(45)),
            "skip: a later tick has published silver.orders@41",
        ),
    ],
)
def test_the_reason_is_printed(observed: ViewObservation, line: str) -> None:
    assert plan_refresh(ENTRY, observed, tick="t", clock=NOON).line == line


def test_force_builds_again_but_never_goes_back() -> None:
    forced = plan_refresh(ENTRY, STILL, tick="t", clock=NOON, force=True)
    assert forced.line == "full: forced"
    older = orders(pinned=version(40), current=version(45))
    assert plan_refresh(ENTRY, older, tick="t", clock=NOON, force=True).skips


def test_a_view_that_reads_the_clock_is_never_up_to_date() -> None:
    entry = ENTRY.model_copy(update={"reads_clock": True})
    assert plan_refresh(entry, STILL, tick="t", clock=NOON).reason.code is ReasonCode.CLOCK_MOVED


@pytest.mark.parametrize(
    ("observed", "strategy", "line"),
    [
        (moved(), "auto", "incremental: silver.orders@41→@44; affected-group recompute"),
        (moved(rows=None), "auto", "incremental: silver.orders@41→@44; affected-group recompute"),
        (
            moved(rows=60_000),
            "auto",
            (
                "full: silver.orders@41→@44 changed and 60% of an input changed, "
                "incremental pays up "
                "to 30%"
            ),
        ),
        (
            moved(rows=60_000),
            "incremental",
            "incremental: silver.orders@41→@44; affected-group recompute",
        ),
        (
            moved(fed=False),
            "incremental",
            (
                "full: silver.orders@41→@44 changed and silver.orders has no change feed "
                "for all of "
                "these versions"
            ),
        ),
        (
            moved(reshaped=True),
            "strict",
            "full: silver.orders@41→@44 changed and the columns of silver.orders changed",
        ),
        (
            moved(),
            "full",
            "full: silver.orders@41→@44 changed and the view declares strategy full",
        ),
    ],
)
def test_a_maintained_view_follows_its_inputs_unless_something_forbids_it(
    observed: ViewObservation, strategy: str, line: str
) -> None:
    entry = MAINTAINED.model_copy(update={"strategy": Strategy(strategy)})
    assert plan_refresh(entry, observed, tick="t", clock=NOON).line == line


def test_the_strategy_that_was_faster_in_the_past_is_used() -> None:
    past = tuple(
        PastRefresh(incremental=followed, seconds=seconds, changed=None, total=None)
        for followed, seconds in ((True, 2.5), (False, 1.2))
    )
    plan = plan_refresh(MAINTAINED, replace(moved(), past=past), tick="t", clock=NOON)
    assert plan.reason.code is ReasonCode.FULL_IS_FASTER
    assert "a full refresh takes some 1.2 s, following the changes 2.5 s" in plan.line
    insisting = MAINTAINED.model_copy(update={"strategy": Strategy.INCREMENTAL})
    plan = plan_refresh(insisting, replace(moved(), past=past), tick="t", clock=NOON)
    assert isinstance(plan.decision, Incremental)


def test_a_full_refresh_that_may_be_faster_is_tried() -> None:
    known = PastRefresh(incremental=True, seconds=2.5, changed=5, total=9, in_process=True)
    counted = replace(moved(), inputs=moved().inputs[:1], past=(known, known))
    plan = plan_refresh(MAINTAINED, counted, tick="t", clock=NOON)
    assert plan.reason.code is ReasonCode.FULL_IS_TRIED
    assert "was not tried yet and may take 0.1 s, following the changes 2.5 s" in plan.line
    insisting = MAINTAINED.model_copy(update={"strategy": Strategy.INCREMENTAL})
    plan = plan_refresh(insisting, counted, tick="t", clock=NOON)
    assert isinstance(plan.decision, Incremental)


def test_the_clock_alone_can_be_followed() -> None:
    entry = MAINTAINED.model_copy(update={"reads_clock": True})
    plan = plan_refresh(entry, STILL, tick="t", clock=NOON)
    assert isinstance(plan.decision, Incremental)
    assert plan.line == "incremental: the clock moved; affected-group recompute"


def test_an_obstacle_is_reported() -> None:
    refused = Maintenance(rule=MaintenanceStrategy.FULL, obstacle="X", detail="a thing has no rule")
    entry = ENTRY.model_copy(update={"maintenance": refused})
    line = plan_refresh(entry, MOVED, tick="t", clock=NOON).line
    assert line == "full: silver.orders@41→@44 changed and a thing has no rule"


def test_a_watermark_survives_a_round_trip() -> None:
    assert Watermark.from_metadata(PUBLISHED.as_metadata()) == PUBLISHED


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ("changed_rows", MaintenanceStrategy.ROW_DELTAS),
        ("affected_groups", MaintenanceStrategy.AFFECTED_GROUP_RECOMPUTE),
        ("kept_groups", MaintenanceStrategy.AGGREGATE_STATE),
        ("aggregate_state", MaintenanceStrategy.AGGREGATE_STATE),
        ("full", MaintenanceStrategy.FULL),
    ],
)
def test_a_strategy_is_read_as_an_older_release_stored_it(
    stored: str, now: MaintenanceStrategy
) -> None:
    found = Watermark.from_metadata({**PUBLISHED.as_metadata(), "rule": stored})
    assert found is not None
    assert found.rule == now
    assert Maintenance.model_validate({"rule": stored}).rule is now
    assert Watermark.from_metadata(None) is None
    assert Watermark.from_metadata({"view": "daily"}) is None
    plan = plan_refresh(ENTRY, MOVED, tick="t", clock=NOON)
    assert VersionVector.from_dict(plan.as_dict()["vector"]) == plan.vector
    assert str(plan.vector) == "silver.orders@44, silver.users@3"
