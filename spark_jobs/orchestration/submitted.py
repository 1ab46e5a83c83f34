"""The refresh as a single Spark application, for clusters without a Connect server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator

import spark_jobs
from spark_jobs.settings import Settings
from spark_jobs.storage.conf import session_conf

APPLICATION = Path(spark_jobs.__file__).parent / "gold/refresh/submit.py"


def submitted_refresh(settings: Settings, attempt_id: Any, options: dict[str, Any]) -> BaseOperator:
    """The task that stages, audits and publishes an attempt.

    Args:
        settings: with the Spark configuration of the application.
        attempt_id: the result of the previous task.
        options: keyword arguments of the operator: the task's id, retries and limits.

    Raises:
        JarsMissingError: Delta's jars are not in the configured directory.
        StoreJarsMissingError: the lake is in S3, and the jars for S3 are missing.
    """
    return SparkSubmitOperator(
        **options,
        application=str(APPLICATION),
        application_args=[attempt_id],
        name="tidemark",
        conn_id=settings.airflow.spark_connection,
        conf=session_conf(settings),
        env_vars={"TIDEMARK_PROJECT": str(settings.project_dir)},
    )
