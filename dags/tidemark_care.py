"""Airflow finds the DAGs here that care for the lake: maintenance, reconciling, watching."""

from __future__ import annotations

from spark_jobs.orchestration.care import care_dags

globals().update(care_dags())
