"""``tidemark status VIEW``, whatever the view's newest attempts were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.gold.base.errors import ViewUnknownError
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from tests.golden.declaration_cases import RIGHT, write_project

# What a commit keeps of a verdict: no list, no time.
BRIEF = {"table": "gold.spend", "outcome": "passed", "expectations": 2, "failed": 0, "rows": 3}


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [(BRIEF, "passed, 2 of 2 expectations passed"), (None, "spend")],
)
def test_a_rolled_back_view_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: dict[str, Any] | None, shown: str
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    project = write_project(tmp_path / "project", {})
    (tmp_path / "state").mkdir()
    now = utc_now()
    with ControlStore.open(f"sqlite:///{tmp_path}/state/control.db") as store:
        store.create_attempt(
            RefreshAttempt(
                attempt_id="a1",
                view="spend",
                tick="replay-1",
                epoch=2,
                started_at=now,
                updated_at=now,
                status=AttemptStatus.PUBLISHED,
                decision="rollback",
                reason_code="ROLLED_BACK",
                verdict=verdict,
            )
        )
    words = ["--project", str(project), "status", "spend"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    assert shown in " ".join(done.stdout.split())


def test_a_table_of_another_layer_is_no_view(tmp_path: Path) -> None:
    project = write_project(tmp_path, {})
    error = (
        CliRunner().invoke(app, ["--project", str(project), "status", "silver.orders"]).exception
    )
    assert isinstance(error, ViewUnknownError)
    assert "sql/gold/silver.orders.sql" not in (error.hint or "")


def test_a_table_of_another_layer_resembles_no_view(tmp_path: Path) -> None:
    view = {"sql/gold/active_orders.sql": RIGHT["sql/gold/spend.sql"]}
    project = write_project(tmp_path, view)
    words = ["--project", str(project), "status", "silver.orders"]
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, ViewUnknownError)
    assert "active_orders" not in (error.hint or "")
    assert "`tidemark status` shows the streams" in (error.hint or "")
