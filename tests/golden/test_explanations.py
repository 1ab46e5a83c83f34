"""What ``tidemark explain`` says about views of every kind, word by word."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from rich.console import Console
from typer.testing import CliRunner

from spark_jobs.cli.explain import script
from spark_jobs.cli.impact import impact_table
from spark_jobs.cli.main import app
from spark_jobs.gold.explain.explanation import explained
from spark_jobs.gold.explain.impact import impact
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.impact import VersionRange
from spark_jobs.sections import Engine
from spark_jobs.serving.report.explanations import explanation
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import policy
from spark_jobs.storage.policy import Limit
from tests.golden.maintained_shop import NOON, VIEWS, move_on, opened, publish_all, write_shop

TEXTS = Path(__file__).with_name("explanations.txt")
IMPACTS = Path(__file__).with_name("impacts.txt")
SCRIPTS = Path(__file__).with_name("refresh_sql")
SCRIPTED = (
    "joined",
    "outer_joined",
    "not_in",
    "sums",
    "extremes",
    "ranked",
    "united",
    "best",
    "numbered",
    "new",
)
WIDTH = 110


@pytest.fixture
def refresher(tmp_path: Path) -> Iterator[Refresher]:
    settings = write_shop(tmp_path)
    with ControlStore.open(settings.control_url) as store:
        found = opened(settings, store)
        publish_all(found)
        move_on(tmp_path)
        yield found


def compare(text: str, golden: Path, project: Path) -> None:
    text = text.replace(str(project), "PROJECT")
    text = re.sub(r"_state/(\w+)/[0-9a-f]{16}/", r"_state/\1/DEFINITION/", text)
    # How many bytes a file has is the writer's choice.
    text = re.sub(r"[\d,]+ bytes", "N bytes", text)
    if os.environ.get("REWRITE"):
        golden.write_text(text, encoding="utf-8")

    assert text == golden.read_text(encoding="utf-8")


def test_every_explanation_is_as_reviewed(tmp_path: Path, refresher: Refresher) -> None:
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, highlight=False)
    for view in VIEWS:
        console.print(explanation(explained(refresher.context, refresher.explain(view))))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    compare("\n".join(lines).rstrip() + "\n", TEXTS, tmp_path)


def test_every_impact_is_as_reviewed(tmp_path: Path, refresher: Refresher) -> None:
    orders = DeltaTable(tmp_path / "data" / "orders")
    orders.update(updates={"weight": "9.5"}, predicate="order_id = 3")
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, highlight=False)
    for versions in (None, VersionRange(1, 2)):
        found = impact(refresher.context, "bronze.orders", versions=versions, now=NOON)
        console.print(impact_table(found))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    compare("\n".join(lines).rstrip() + "\n", IMPACTS, tmp_path)


@pytest.mark.parametrize("view", SCRIPTED)
def test_every_refresh_is_compiled_as_reviewed(
    tmp_path: Path, refresher: Refresher, view: str
) -> None:
    text = script(refresher.context, refresher.explain(view))
    compare(text.rstrip() + "\n", SCRIPTS / f"{view}.sql", tmp_path)


def test_the_engine_is_that_of_the_planned_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = write_shop(tmp_path).with_engine(Engine.AUTO)
    with ControlStore.open(settings.control_url) as store:
        refresher = opened(settings, store)
        publish_all(refresher)
        move_on(tmp_path)
        # Two files are too many for DuckDB to read a table whole, and the change has one.
        monkeypatch.setattr(policy, "SCANNED", Limit(files=1))
        sums, everything = (
            explained(refresher.context, refresher.explain(view)).engine
            for view in ("sums", "everything")
        )
    assert sums == "DuckDB, in the process of the refresh"
    assert everything == "Spark, for the files of bronze.orders, which Delta's reader must read"


def test_json_contains_everything(
    tmp_path: Path, refresher: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    words = ["--project", str(tmp_path), "explain", "best", "everything", "--json", "--sql"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    kept, full = json.loads(result.stdout)

    assert kept["decision"] == "incremental"
    assert kept["maintenance"]["rule"] == "aggregate_state"
    assert kept["maintenance"]["key"] == ["user_id"]
    assert kept["kept_groups"][0]["version"] == 1
    assert kept["estimates"]["incremental"]["rows"] == 1
    assert kept["estimates"]["full"]["rows"] == 4
    assert kept["statements"][-1]["sql"] == kept["sql"]
    assert (kept["publish"]["step"], kept["publish"]["key"]) == ("merge", ["user_id"])
    assert kept["publish"]["sql"].startswith("MERGE INTO delta.")
    assert (full["publish"]["step"], full["publish"]["key"]) == ("overwrite", None)
    assert full["publish"]["sql"].startswith("INSERT OVERWRITE delta.")
    assert full["decision"] == "full"
    assert full["maintenance"]["obstacle"] == "DEPENDS_ON_EVERY_ROW"
    assert full["maintenance"]["place"] == "sql/gold/everything.sql:8:3"
    assert full["estimates"]["incremental"] is None
    assert "VERSION AS OF 1" in full["sql"]


def test_all_views_have_a_line_each(
    tmp_path: Path, refresher: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    # As where a program reads: pytest-xdist gives its workers a width.
    monkeypatch.delenv("COLUMNS", raising=False)
    result = CliRunner().invoke(app, ["--project", str(tmp_path), "explain", "--all"])

    assert result.exit_code == 0
    head, *lines = result.stdout.splitlines()
    assert head.split() == ["view", "decision", "strategy", "reason"]
    assert sorted(line.split()[0] for line in lines) == sorted(VIEWS)
    assert not [line for line in lines if line.rstrip().endswith("; aggregate state")]
    assert not [line for line in lines if "no upstream change since" in line]
