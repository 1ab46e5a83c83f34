"""The DAGs that maintain the lake: what they run, when, and what turns them red."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction

from spark_jobs.cli.main import app
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.orchestration import maintenance
from spark_jobs.orchestration.alerts import VerbCrashedError, alert_of
from spark_jobs.orchestration.maintenance import CONTROL, MAINTENANCE, maintenance_dags, run_verb
from spark_jobs.sections import Pools
from spark_jobs.settings import load_settings
from spark_jobs.stack.airflow_config import airflow_home
from spark_jobs.stack.airflow_history import HIDING, clean_database
from spark_jobs.state.progress import StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from tests.dags.test_parsing import parse

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]

REPOSITORY = Path(__file__).parents[2]
FILE = REPOSITORY / "dags/tidemark_maintenance.py"
POOLS = {CONTROL, *Pools.model_fields}


@pytest.fixture
def dags(project) -> dict[str, DAG]:
    bag = DagBag(dag_folder=str(FILE), known_pools=POOLS)
    assert bag.import_errors == {}
    return dict(bag.dags)


def test_each_is_one_at_a_time_with_an_owner_a_limit_and_a_pool_that_exists(dags) -> None:
    assert set(dags) == {"ops__maintenance", "ops__logs", "ops__reconcile", "ops__stream_watch"}
    for dag in dags.values():
        assert (dag.owner, dag.max_active_runs, dag.catchup) == ("operations", 1, False)
        assert dag.is_paused_upon_creation is False
        for task in dag.tasks:
            assert (task.retries, task.has_retry_policy) == (2, True)
            assert [type(one).__name__ for one in task.on_failure_callback] == ["AlertNotifier"]
            assert timedelta() < task.execution_timeout <= timedelta(hours=4)
            assert task.pool in POOLS
    assert dags["ops__stream_watch"].get_task("watch").pool == CONTROL
    assert dags["ops__maintenance"].get_task("maintain").pool == "maintenance"


def test_parsing_imports_nothing_heavy_and_is_the_same_every_time(project) -> None:
    found = parse(FILE)
    assert (found["count"], found["same"]) == (4, True)


def test_nothing_is_made_up_for_the_first_run_is_the_next_of_the_schedule(dags) -> None:
    for dag in dags.values():
        timetable = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
        never = TimeRestriction(earliest=dag.start_date, latest=None, catchup=False)
        first = timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=never)
        assert first.run_after > datetime.now(UTC)


def test_where_only_some_views_are_scheduled_at_first_only_the_watch_is_on(project) -> None:
    gold = project.settings.gold.model_copy(update={"scheduled_at_first": ("order_totals",)})
    made = maintenance_dags(project.settings.model_copy(update={"gold": gold}))
    on = [name for name, dag in made.items() if not dag.is_paused_upon_creation]
    assert on == ["ops__stream_watch"]


@pytest.mark.parametrize("one", MAINTENANCE, ids=lambda one: one.dag_id)
def test_the_page_names_verbs_and_runbooks_that_exist(one) -> None:
    assert {verb.runbook for verb in one.verbs} <= set(one.runbooks)
    for name in one.runbooks:
        assert (REPOSITORY / f"docs/runbooks/{name}.md").exists()
        assert f"docs/runbooks/{name}.md" in one.doc_md
    command: Any = typer.main.get_command(app)
    for verb in one.verbs:
        context = command.make_context("tidemark", list(verb.words))
        name, found, rest = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        found.make_context(name, rest, parent=context)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of the tasks' logs."""
    lines: list[str] = []
    monkeypatch.setattr(maintenance.log, "info", lambda form, *words: lines.append(form % words))
    return lines


def run(dag_id: str) -> str:
    dag = maintenance_dags()[dag_id]
    for one in dag.tasks:
        one.retries = 0
    return str(dag.test().state)


def test_maintenance_is_the_verb(project, said) -> None:
    assert run("ops__maintenance") == "success"
    left = (
        "0 attempts, 0 verifications, 0 silver batches and 0 incidents left the control database."
    )
    assert said[-1] == left


def test_a_silent_view_fails_the_watch_and_is_on_the_page(project, said) -> None:
    project.compile(refresh=RefreshPolicy.CONTINUOUS, every_seconds=None)
    with ControlStore.open(load_settings().control_url) as store:
        seen = utc_now() - timedelta(minutes=5)
        store.record_heartbeat("gold.order_totals", at=seen, state=StreamState.RUNNING)
    assert run("ops__stream_watch") == "failed"
    [line] = [line for line in said if line.startswith("gold.order_totals:")]
    assert line.startswith("gold.order_totals: silent, last seen 5 min")
    assert line.endswith("; see docs/runbooks/continuous-view.md")
    assert "<li>gold.order_totals: silent, last" in load_settings().status_page.read_text()
    [alert] = (load_settings().state / "alerts.jsonl").read_text().splitlines()
    told = json.loads(alert)
    assert line in told["message"]
    assert (told["condition"], told["runbook"]) == (
        "TASK_FAILED",
        "docs/runbooks/continuous-view.md",
    )


def test_a_failed_verification_is_not_retried_but_maintenance_is(project) -> None:
    with pytest.raises(AirflowFailException):
        run_verb(("verify", "no_such_view"), judges=True)
    with pytest.raises(RuntimeError):
        run_verb(("maintain", "no.such_table"), judges=False)


def test_a_verb_s_condition_and_remedy_are_those_of_its_alert(project) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_CONTROL_DB", "postgresql://nobody@127.0.0.1:1/none")
        with pytest.raises(VerbCrashedError) as raised:
            run_verb(("maintain",), judges=False)
    told = alert_of(
        {"ti": SimpleNamespace(dag_id="d", task_id="t", run_id="r"), "exception": raised.value},
        table=None,
        runbook="lake-grows",
        settings=project.settings,
    )
    assert told.condition == "CONTROL_UNREACHABLE"
    assert told.runbook == "docs/runbooks/server-unreachable.md"
    assert told.todo == "Check that the database runs and that the setting control_db names it."


def test_old_runs_of_airflow_are_deleted_by_its_own_command(
    project, airflow_database, tmp_path
) -> None:
    """Tasks go with their run; a newer run, and the last scheduled one of a DAG, stay."""
    database = tmp_path / "airflow.db"
    shutil.copy(airflow_database, database)
    runs = [
        ("m1", "manual", "2026-02-01 00:00:00"),
        ("m2", "manual", "2026-11-01 00:00:00"),
        ("s1", "scheduled", "2026-01-01 00:00:00"),
        ("s2", "scheduled", "2026-03-01 00:00:00"),
    ]
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("DELETE FROM dag_run")
        for run_id, kind, started in runs:
            opened.execute(
                "INSERT INTO dag_run (dag_id, run_id, run_type, start_date, run_after, state, "
                "log_template_id, clear_number, updated_at) "
                "VALUES ('gold__spend', ?, ?, ?, ?, 'success', 1, 0, ?)",
                (run_id, kind, started, started, started),
            )
    settings = load_settings()
    home = airflow_home(settings)
    home.mkdir(parents=True)
    address = f"sqlite:///{database}"
    (home / "airflow.cfg").write_text(f"[database]\nsql_alchemy_conn = {address}\n")
    with pytest.MonkeyPatch.context() as patch:
        # As in a task of Airflow.
        for name in HIDING:
            patch.setenv(name, "airflow-db-not-allowed:///")
        clean_database(settings, datetime(2026, 10, 1, tzinfo=UTC))
    with closing(sqlite3.connect(database)) as opened:
        left = {one for (one,) in opened.execute("SELECT run_id FROM dag_run")}
        tables = {one for (one,) in opened.execute("SELECT name FROM sqlite_master")}
    assert left == {"m2", "s2"}
    assert not [one for one in tables if one.startswith("_airflow_deleted")]
