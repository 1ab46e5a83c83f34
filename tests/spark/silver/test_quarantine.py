"""Quarantined records of batches, as the command line shows them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from spark_jobs.cli.main import app
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.silver.errors import SilverTableUnknownError
from spark_jobs.storage.lake import Lake
from tests.compiling import put_compiled
from tests.spark.silver.world import CLICKS, EVENTS, ORDERS, Record, applier, bronze, event

RECORDS: list[Record] = [
    event(event_id="a", user_id=1),
    event(event_id="b", user_id="x"),
    (b"key", b"\xff" * 300),
    event(event_id="c", user_id="y"),
]


@pytest.fixture
def run(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command line over a project with two silver tables."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(settings.state))
    manifest = Manifest(project="p", silver={"clicks": CLICKS, "orders": ORDERS})
    put_compiled(settings, manifest)

    def invoke(*arguments: str) -> Result:
        project = str(settings.project_dir)
        return CliRunner().invoke(app, ["--project", project, "quarantine", *arguments])

    return invoke


def test_counts_and_records(spark: SparkSession, settings: Settings, run: Any) -> None:
    assert "Nothing is in quarantine" in run("list").stdout
    assert "No such record" in run("show", "clicks").stdout
    clicks = applier(Lake(settings.lake), EVENTS, CLICKS)
    clicks.tables.create(spark, EVENTS)
    clicks.apply(bronze(spark, RECORDS), 0)
    counted = json.loads(run("list", "--json").stdout)
    assert [(one["silver"], one["reason"], one["records"]) for one in counted] == [
        ("clicks", "TYPE_MISMATCH", 2),
        ("clicks", "NOT_UTF8", 1),
    ]
    assert "2026-01-02 03:04:05 UTC" in run("list").stdout
    newest = json.loads(run("show", "silver.clicks", "--limit", "2", "--json").stdout)
    assert [(one["offset"], one["reason"], one["detail"]) for one in newest] == [
        (3, "TYPE_MISMATCH", "user_id"),
        (2, "NOT_UTF8", None),
    ]
    assert newest[1]["value"].endswith("... (300 bytes)")
    [raw] = json.loads(run("show", "clicks", "--reason", "NOT_UTF8", "--raw", "--json").stdout)
    assert base64.b64decode(raw["value_base64"]) == RECORDS[2][1]
    assert base64.b64decode(raw["key_base64"]) == b"key"
    shown = run("show", "clicks", "--reason", "TYPE_MISMATCH").stdout
    assert "t partition 0 offset 1: TYPE_MISMATCH user_id" in shown


def test_a_table_that_is_not_declared(run: Any) -> None:
    error = run("show", "click").exception
    assert isinstance(error, SilverTableUnknownError)
    assert error.hint == 'Did you mean "clicks"?'
