"""Airflow finds the DAGs here that maintain the lake: maintenance, reconciling, watching."""

from __future__ import annotations

from spark_jobs.orchestration.maintenance import maintenance_dags

globals().update(maintenance_dags())
