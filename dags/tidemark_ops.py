"""Airflow finds the operators' DAGs here: forms to replay gold views and to take them back."""

from __future__ import annotations

from spark_jobs.orchestration.operations import operations_dags

globals().update(operations_dags())
