"""A refresh that is far larger than usual, planned over real logs and the real ledger."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.gold.base.freshness import view_status
from spark_jobs.gold.explain.impact import impact
from spark_jobs.gold.recover.recompute import Recomputer
from spark_jobs.gold.refresh.observe import newest
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.recompute import Recompute
from spark_jobs.sections import BreakerSettings
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from tests.unit.gold.conftest import NOON, Shop

TICK = "2026-01-02T12:00:00Z"


@pytest.fixture
def refresher(shop: Shop) -> Refresher:
    """A view whose refreshes usually follow two rows, and now has 60 to follow."""
    for number in range(4):
        remember(shop, number, decision="incremental", changed=2)
    # Of these nothing is usual: a first build, and what somebody asked for.
    for number, code in enumerate(("FIRST_BUILD", "FORCED", "REPLAYED"), start=4):
        remember(shop, number, decision="full", changed=None, reason_code=code)
    shop.update("amount", "amount + 1", "order_id < 60")
    context = shop.context
    settings = context.settings.model_copy(update={"breaker": BreakerSettings(rows=50, times=10)})
    return Refresher(settings, context.manifest, context.store, now=lambda: NOON)


def remember(shop: Shop, number: int, *, decision: str, changed: int | None, **facts: Any) -> None:
    attempt = RefreshAttempt(
        attempt_id=f"past-{number}",
        view="sums",
        tick=f"past-{number}",
        status=AttemptStatus.PUBLISHED,
        decision=decision,
        epoch=1,
        estimate={"rows": 100, "changed": changed},
        started_at=NOON - timedelta(days=1, minutes=number),
        updated_at=NOON - timedelta(days=1),
        **{"reason_code": "INPUT_CHANGED_RULE", **facts},
    )
    shop.context.store.create_attempt(attempt)


def test_it_waits_in_the_ledger_until_a_person_lets_it_pass_once(refresher: Refresher) -> None:
    store = refresher.context.store
    stopped = refresher.plan("sums", tick=TICK)
    row = store.attempt(stopped.attempt_id)
    assert (row.status, row.reason_code) == (AttemptStatus.SKIPPED, "WAITS_FOR_PERSON")
    assert (row.estimate or {})["changed"] == 60
    assert "it reads 60 rows where 2 are usual" in (row.reason or "")
    assert view_status(refresher.context, "sums", now=NOON).waits

    passed = refresher.plan("sums", tick="by hand", let_pass="let pass by ann: corrected")
    row = store.attempt(passed.attempt_id)
    assert (row.status, row.decision) == (AttemptStatus.PLANNED, "incremental")
    assert (row.reason or "").endswith("; let pass by ann: corrected")
    assert not view_status(refresher.context, "sums", now=NOON).waits
    assert refresher.plan("sums", tick="later").reason.code is ReasonCode.WAITS_FOR_PERSON


def test_the_impact_is_shown_before_a_person_allows_it(refresher: Refresher) -> None:
    found = {
        one.plan.view: one
        for one in impact(refresher.context, "bronze.orders", versions=None, now=NOON).views
    }
    assert (found["sums"].waits, found["sums"].plan.word) == (True, "incremental")
    assert found["best"].untouched is None, "it follows once the view below it was let pass"
    assert not found["notes"].waits


def test_a_forced_refresh_or_a_replay_does_not_wait(refresher: Refresher) -> None:
    assert refresher.plan("sums", tick=TICK, force=True).reason.code is ReasonCode.FORCED
    replay = Recompute(code=ReasonCode.REPLAYED)
    assert Recomputer(refresher).plan("sums", tick="replay-1", asked=replay).word == "full"


def test_a_view_without_a_history_passes(refresher: Refresher) -> None:
    assert refresher.plan("notes", tick=TICK).word == "incremental"


def test_passes_over_a_continuous_view_are_recorded_once(refresher: Refresher) -> None:
    found = [refresher.follow("sums", pin=newest) for _ in range(3)]
    assert {one.reason.code for one in found} == {ReasonCode.WAITS_FOR_PERSON}
    rows = refresher.context.store.attempts("sums", statuses=(AttemptStatus.SKIPPED,))
    assert len(rows) == 1


def test_a_waiting_refresh_is_in_the_status_and_needs_a_reason(
    shop: Shop, refresher: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresher.plan("sums", tick=TICK)
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(shop.project / "state"))
    monkeypatch.setenv("TIDEMARK_BREAKER__ROWS", "50")
    monkeypatch.setenv("COLUMNS", "250")

    def tidemark(*words: str) -> Any:
        return CliRunner().invoke(app, ["--project", str(shop.project), *words])

    assert "waits; skipped; skip: waits for a person" in tidemark("status").stdout
    refused = tidemark("refresh", "sums")
    assert (refused.exit_code, "it reads 60 rows where 2 are usual" in refused.stdout) == (1, True)
    without = tidemark("refresh", "sums", "--let-pass", "because")
    assert getattr(without.exception, "condition", None) == "REPLAY_REQUEST"
    named = tidemark("status", "--check")
    assert named.exit_code == 1
    assert "gold.sums: waits for a person" in named.stdout
    assert "see docs/runbooks/refresh-waits.md" in named.stdout
