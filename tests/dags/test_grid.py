"""What Airflow's grid shows of a run: the state of its group of tasks, by Airflow's own rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from airflow.api_fastapi.core_api.services.ui.grid import agg_state
from airflow.api_fastapi.core_api.services.ui.task_group import task_group_to_dict_grid
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from spark_jobs.orchestration.airflow import TICK, gold_dags
from spark_jobs.sections import ExecutorMode

pytestmark = pytest.mark.filterwarnings("default")


def in_the_grid(dag: DAG) -> list[dict[str, Any]]:
    """The nodes of the grid, as Airflow's page gets them: closed groups hide their children."""
    stored = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    return list(task_group_to_dict_grid(stored.task_group)["children"])


@pytest.mark.parametrize(
    ("mode", "tasks"),
    [
        (ExecutorMode.CONNECT, ["plan", "stage", "audit", "publish"]),
        (ExecutorMode.SUBMIT, ["plan", "refresh", "report"]),
    ],
)
def test_a_run_of_a_view_is_one_square_until_it_is_opened(project, mode, tasks) -> None:
    airflow = project.settings.airflow.model_copy(update={"executor_mode": mode})
    dag = gold_dags(project.settings.model_copy(update={"airflow": airflow}))["gold__order_totals"]
    (only,) = in_the_grid(dag)
    assert only["id"] == TICK
    assert [one["id"] for one in only["children"]] == tasks
    assert "nothing changed" in dag.task_group.children[TICK].tooltip


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        (["skipped"] * 4, "skipped"),
        (["success"] * 4, "success"),
        (["success"] * 3 + ["skipped"], "success"),
        (["success", "success", "failed", "upstream_failed"], "failed"),
        (["success", "running", None, None], "running"),
    ],
)
def test_the_grid_distinguishes_skipped_published_and_failed_ticks(states, shown) -> None:
    assert agg_state(Counter(states)) == shown


def test_a_verification_is_a_task_without_a_group(project) -> None:
    project.compile(verify_seconds=86400)
    (only,) = in_the_grid(gold_dags(project.settings)["verify__order_totals"])
    assert only["id"] == "verify"
