"""``tidemark source resnapshot`` does the steps of an apply that wait for it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.settings import load_settings
from spark_jobs.stack import connect, resnapshot
from spark_jobs.state.deployments import OPEN, Deployment
from spark_jobs.state.store import ControlStore
from tests.golden.declaration_cases import write_project

RUN = ("source", "resnapshot", "--run", "--reason", "a table is captured now")
ANSWERS = {"connector": {"state": "RUNNING"}, "tasks": [{"state": "RUNNING"}]}


def test_the_steps_that_wait_for_it_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", "postgresql://x@127.0.0.1:1/shop")
    root = write_project(tmp_path / "project", {})
    asked: list[str] = []
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=ANSWERS))
    monkeypatch.setattr(
        connect, "client", lambda _: httpx.Client(base_url="http://connect", transport=transport)
    )
    monkeypatch.setattr("spark_jobs.silver.check.log_position.log_position", lambda _: 0)
    monkeypatch.setattr(resnapshot, "resnapshot", lambda _, dsn: asked.append(dsn))
    steps = {"snapshot orders": OPEN, "take up silver.orders": OPEN, "snapshot clicks": OPEN}
    waiting = Deployment(
        deployment_id="d2-x", number=2, who="tests", manifest="{}", in_force=True, steps=steps
    )
    with ControlStore.open(load_settings(root).control_url) as store:
        store.begin_deployment(waiting)
        done = CliRunner().invoke(app, ["--project", str(root), *RUN], catch_exceptions=False)
        found = store.deployment("d2-x")

    assert "Deployment d2-x needed it" in done.stdout
    # The connector's own role has no password here.
    assert asked == ["postgresql://x@127.0.0.1:1/shop"]
    assert found is not None
    assert found.open_steps == ("take up silver.orders",)
