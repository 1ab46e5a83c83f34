"""``tidemark refresh`` beside other refreshes of the same view."""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.progress import Progress
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.cli.refresh import TRIES, ViewResult, _refresh_one
from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.errors import BaseMovedError, ViewUnknownError
from spark_jobs.gold.refresh import steps
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.state.attempts import AttemptStatus
from tests.golden.declaration_cases import RIGHT, write_project

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


@dataclass
class Fragile(Beaten):
    """A refresher of which one method fails for the view ``broken``."""

    broken: str = ""
    error: Exception = field(default_factory=lambda: RuntimeError("a defect"))
    context: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(close=lambda: None))

    def fail(self, view: str, method: str) -> None:
        if view == "broken" and method == self.broken:
            raise self.error

    def plan(self, view: str, *, tick: str, **_: Any) -> SimpleNamespace:
        self.fail(view, "plan")
        return super().plan(view, tick=tick)

    def carry_out(self, plan: SimpleNamespace, **_: Any) -> None:
        self.fail(plan.view, "carry_out")

    def outcome(self, plan: SimpleNamespace, **_: Any) -> SimpleNamespace:
        self.fail(plan.view, "outcome")
        found = super().outcome(plan)
        found.as_dict = lambda: {"view": plan.view}
        return found


@pytest.mark.parametrize("broken", ["plan", "carry_out", "outcome"])
@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (RuntimeError("a defect"), ("INTERNAL_ERROR", 70)),
        (OSError(errno.ENOSPC, "No space left on device"), ("DISK_FULL", 1)),
        (ViewUnknownError("broken", known=()), ("VIEW_UNKNOWN", 1)),
    ],
)
def test_an_error_of_one_view_leaves_the_others(
    broken: str,
    error: Exception,
    ended: tuple[str, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    spend = RIGHT["sql/gold/spend.sql"]
    root = write_project(tmp_path / "project", {"sql/gold/broken.sql": spend})
    refresher = Fragile(times=0, broken=broken, error=error)
    monkeypatch.setattr(steps, "Refresher", lambda *_: refresher)
    done = CliRunner().invoke(app, ["--project", str(root), "refresh", "--all", "--json"])
    found = {one["view"]: one["error"] for one in json.loads(done.stdout)}
    assert found.keys() == {"broken", "spend"}
    assert (found["broken"]["condition"], done.exit_code) == ended
    assert found["spend"] is None
