"""``tidemark refresh`` beside other refreshes of the same view."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.progress import Progress

from spark_jobs.cli.refresh import TRIES, ViewResult, _refresh_one
from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.errors import BaseMovedError, ViewUnknownError
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.state.attempts import AttemptStatus

REASON = SimpleNamespace(code="INPUT_CHANGED")


@dataclass
class Beaten:
    """A refresher that another one is quicker than, some times."""

    times: int
    ticks: list[str] = field(default_factory=list)

    def plan(self, view: str, *, tick: str, **_: Any) -> SimpleNamespace:
        self.ticks.append(tick)
        return SimpleNamespace(view=view, tick=tick, attempt_id=tick, reason=REASON)

    def carry_out(self, plan: SimpleNamespace, **_: Any) -> None:
        if len(self.ticks) <= self.times:
            raise BaseMovedError(plan.view, "it was staged for version 2")

    def outcome(self, plan: SimpleNamespace, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(plan=plan, status=AttemptStatus.PUBLISHED)

    def supersede(self, attempt_id: str) -> None:
        assert attempt_id == self.ticks[-1]


def refreshed(refresher: Any, *, tries: int = TRIES) -> ViewResult:
    return _refresh_one(
        cast("Refresher", refresher),
        "totals",
        "cli-1",
        progress=Progress(disable=True),
        force=False,
        let_pass=None,
        asked_by="ann",
        tries=tries,
    )


def test_a_refresh_that_another_one_overtakes_is_planned_again() -> None:
    beaten = Beaten(times=2)
    found = refreshed(beaten)
    assert found.error is None
    assert beaten.ticks == ["cli-1", "cli-1/1", "cli-1/2"]
    assert found.outcome is not None
    assert found.outcome.plan.tick == "cli-1/2"


@pytest.mark.parametrize("tries", [1, TRIES])
def test_it_gives_up_in_the_end_and_at_once_for_a_given_tick(tries: int) -> None:
    beaten = Beaten(times=9)
    found = refreshed(beaten, tries=tries)
    assert isinstance(found.error, BaseMovedError)
    assert len(beaten.ticks) == tries


def test_other_errors_are_not_tried_again() -> None:
    class Unknown(Beaten):
        def plan(self, view: str, *, tick: str, **_: Any) -> SimpleNamespace:
            self.ticks.append(tick)
            raise ViewUnknownError(view, known=())

    unknown = Unknown(times=0)
    found = refreshed(unknown)
    assert isinstance(found.error, LakehouseError)
    assert (len(unknown.ticks), found.outcome) == (1, None)
