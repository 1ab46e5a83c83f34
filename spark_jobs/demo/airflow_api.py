"""Queries the runs of a gold view in Airflow, as its administrator, and unpauses its DAG."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

import httpx

from spark_jobs.demo.errors import AirflowUnreachableError
from spark_jobs.orchestration.blueprint import dag_id
from spark_jobs.settings import Settings
from spark_jobs.stack.airflow_config import airflow_address
from spark_jobs.stack.secrets import airflow_users

ADMINISTRATOR = "admin"


@dataclass(frozen=True)
class ScheduledRun:
    """A DAG run that the scheduler created.

    Attributes:
        state: Airflow's state, for instance ``success``.
        interval_end: the end of the run's data interval.
    """

    run_id: str
    state: str
    interval_end: datetime


class AirflowApi(AbstractContextManager["AirflowApi"]):
    """Airflow's REST API, with a token of the administrator."""

    def __init__(self, settings: Settings) -> None:
        self._password = airflow_users(settings)[ADMINISTRATOR]["password"]
        self._client = httpx.Client(base_url=airflow_address(settings), timeout=20, trust_env=False)

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def log_in(self) -> None:
        """Get a token, which is valid for hours.

        Raises:
            AirflowUnreachableError: Airflow does not answer, or refuses the password.
        """
        credentials = {"username": ADMINISTRATOR, "password": self._password}
        try:
            answer = self._client.post("/auth/token", json=credentials)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise AirflowUnreachableError(str(error)) from error
        self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def unpause(self, view: str) -> None:
        """Unpause a view's DAG.

        Raises:
            AirflowUnreachableError: Airflow does not answer, or has no such DAG.
        """
        try:
            answer = self._client.patch(f"/api/v2/dags/{dag_id(view)}", json={"is_paused": False})
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise AirflowUnreachableError(str(error)) from error

    def scheduled_runs(self, view: str, *, limit: int = 50) -> list[ScheduledRun]:
        """The newest scheduled runs of a view; none if Airflow has not parsed its DAG yet.

        Raises:
            AirflowUnreachableError: Airflow does not answer.
        """
        try:
            answer = self._client.get(
                f"/api/v2/dags/{dag_id(view)}/dagRuns",
                params={"run_type": "scheduled", "order_by": "-run_after", "limit": limit},
            )
            if answer.status_code == httpx.codes.NOT_FOUND:
                return []
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise AirflowUnreachableError(str(error)) from error
        return [
            ScheduledRun(
                one["dag_run_id"], one["state"], datetime.fromisoformat(one["data_interval_end"])
            )
            for one in answer.json()["dag_runs"]
            if one["data_interval_end"]
        ]
