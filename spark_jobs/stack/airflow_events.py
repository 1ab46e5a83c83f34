"""A client for asset events: of the configured Airflow, or of the local stack's."""

from __future__ import annotations

from spark_jobs.access.airflow import ANNOUNCER, AssetEvents
from spark_jobs.access.secrets import AIRFLOW_ANNOUNCER, read_secret, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.airflow_config import airflow_address


def airflow_events(settings: Settings) -> AssetEvents | None:
    """A client; None if there is no password of the user who emits events."""
    if not secret_path(settings, AIRFLOW_ANNOUNCER).exists():
        return None
    password = read_secret(settings, AIRFLOW_ANNOUNCER)
    url = settings.airflow.url or airflow_address(settings)
    return AssetEvents(url, user=ANNOUNCER, password=password)
