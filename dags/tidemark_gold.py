"""Airflow finds its DAGs here: one for each gold view in the project's compiled manifest."""

from __future__ import annotations

from spark_jobs.orchestration.airflow import gold_dags

globals().update(gold_dags())
