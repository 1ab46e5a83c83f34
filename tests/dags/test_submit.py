"""The DAGs' shape for a cluster without a Connect server, and its application on real tables."""

from __future__ import annotations

from decimal import Decimal

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

from spark_jobs.gold.recover.recompute import Recomputer
from spark_jobs.gold.refresh import submit
from spark_jobs.gold.refresh.again import newest_attempt, stage_on_newest
from spark_jobs.graph.manifest import Manifest
from spark_jobs.orchestration import steps as tasks
from spark_jobs.orchestration.airflow import gold_dags
from spark_jobs.orchestration.steps import refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.recompute import Recompute
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.store import ControlStore
from tests.unit.gold.test_refreshes_here import PLAIN, table
from tests.unit.gold.test_refreshes_here import Project as Local

pytestmark = pytest.mark.filterwarnings("default")


def test_each_refresh_is_one_application_between_plan_and_report(project, monkeypatch) -> None:
    monkeypatch.setenv("TIDEMARK_AIRFLOW__EXECUTOR_MODE", "submit")
    monkeypatch.setenv("TIDEMARK_AIRFLOW__SPARK_CONNECTION", "cluster")
    dag = gold_dags()["gold__order_totals"]
    assert [task.task_id for task in dag.tasks] == ["plan", "refresh", "report"]
    plan, refresh, report = dag.tasks
    assert refresh.operator_name == "SparkSubmitOperator"
    assert refresh.upstream_task_ids == {"plan"}
    assert report.upstream_task_ids == {"plan", "refresh"}
    assert refresh._conn_id == "cluster"
    assert refresh.application == submit.__file__
    extensions = refresh.conf["spark.sql.extensions"].split(",")
    assert extensions == ["io.delta.sql.DeltaSparkSessionExtension", "tidemark.Guard"]
    assert refresh.env_vars["TIDEMARK_PROJECT"] == str(project.directory)
    assert refresh.max_active_tis_per_dag == 1
    assert [one.name for one in report.outlets] == ["gold.order_totals"]
    assert not plan.outlets


def plan(view: str, tick: str) -> str:
    with refresher() as steps:
        return steps.plan(view, tick=tick).attempt_id


def attempt(attempt_id: str):
    with ControlStore.open(load_settings().control_url) as store:
        return store.attempt(attempt_id)


def test_the_application_publishes_and_a_held_result_is_an_outcome_in_the_ledger(
    project, revenue_is_positive
) -> None:
    project.compile(suite=revenue_is_positive)
    assert Manifest.read(project.settings.manifest_file).gold
    project.order("ada", "5.00")
    first = plan("order_totals", "1")
    submit.main([first])
    submit.main([first])
    assert attempt(first).status is AttemptStatus.PUBLISHED
    assert project.totals() == {"ada": Decimal("5.00")}

    project.order("bob", "-1.00")
    second = plan("order_totals", "2")
    submit.main([second])
    assert attempt(second).status is AttemptStatus.BLOCKED
    assert project.totals() == {"ada": Decimal("5.00")}


def test_what_was_planned_again_is_reported(tmp_path, monkeypatch) -> None:
    local = Local(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    with local.opened() as refresher:
        first = refresher.plan("v", tick="t").attempt_id
    local.define("SELECT a.k, a.x * 2 AS x FROM bronze.a AS a")
    monkeypatch.setattr(tasks, "refresher", local.opened)
    with local.opened() as refresher:
        second = stage_on_newest(refresher, first)
        refresher.audit(second)
        refresher.publish(second)
        (event,) = tasks.report(first, Asset("gold.v"))
        assert event.extra["attempt"] == second
        refresher.context.store.update_attempt(second, status=AttemptStatus.BLOCKED, error="no")
        with pytest.raises(AirflowFailException, match="no"):
            list(tasks.report(first, Asset("gold.v")))


def test_a_backfill_that_is_overtaken_stays_a_backfill(tmp_path, monkeypatch) -> None:
    local = Local(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    local.refresh()
    local.append("a", k=[2], x=[20])
    with local.opened() as refresher:
        asked = Recompute(code=ReasonCode.BACKFILLED)
        first = Recomputer(refresher).plan("v", tick="b", asked=asked).attempt_id
        local.refresh()
        monkeypatch.setattr(submit, "load_settings", lambda: refresher.context.settings)
        monkeypatch.setattr(submit, "Refresher", lambda *_, **__: refresher)
        submit.main([first])
        done = newest_attempt(refresher.context.store, first)
        assert (done.reason_code, done.status) == ("BACKFILLED", AttemptStatus.PUBLISHED)
