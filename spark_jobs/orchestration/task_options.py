"""Common arguments of the tasks of the operators' DAGs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import WeightRule

from spark_jobs.orchestration.blueprint import RETRIES, RETRY_DELAY_SECONDS

OWNER = "operations"
# Airflow's default pool, for tasks that only read logs and reports, or wait for approvals.
CONTROL = "default_pool"


def operator_task(task_id: str, *, timeout_seconds: float, pool: str = CONTROL) -> dict[str, Any]:
    """The keyword arguments of an operator, for a task that retries and ends in time.

    Args:
        task_id: id of the task.
        timeout_seconds: time limit of one try.
        pool: the pool that limits how many such tasks run.
    """
    return {
        "task_id": task_id,
        "retries": RETRIES,
        "retry_delay": timedelta(seconds=RETRY_DELAY_SECONDS),
        "execution_timeout": timedelta(seconds=timeout_seconds),
        "pool": pool,
        "weight_rule": WeightRule.ABSOLUTE,
    }
