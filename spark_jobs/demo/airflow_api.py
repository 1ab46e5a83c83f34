"""The runs of a gold view in Airflow, over REST, as the administrator."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
        token = self._answer("POST", "/auth/token", json=credentials).json()["access_token"]
        self._client.headers["Authorization"] = f"Bearer {token}"

    def unpause(self, view: str) -> None:
        """Unpause a view's DAG.

        Raises:
            AirflowUnreachableError: Airflow does not answer, or has no such DAG.
        """
        self._answer("PATCH", _path(view), json={"is_paused": False})

    def start(self, view: str) -> str:
        """Start a run of a view, and return its id.

        Raises:
            AirflowUnreachableError: Airflow does not answer, or has no such DAG.
        """
        asked = self._answer("POST", f"{_path(view)}/dagRuns", json={"logical_date": None})
        return str(asked.json()["dag_run_id"])

    def state(self, view: str, run_id: str) -> str:
        """Airflow's state of a run.

        Raises:
            AirflowUnreachableError: Airflow does not answer, or has no such run.
        """
        return str(self._answer("GET", f"{_path(view)}/dagRuns/{run_id}").json()["state"])

    def scheduled_runs(self, view: str, *, limit: int = 50) -> list[ScheduledRun]:
        """The newest scheduled runs of a view; none if Airflow has not parsed its DAG yet.

        Raises:
            AirflowUnreachableError: Airflow does not answer.
        """
        wanted = {"run_type": "scheduled", "order_by": "-run_after", "limit": limit}
        answer = self._answer("GET", f"{_path(view)}/dagRuns", unknown=True, params=wanted)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        return [
            ScheduledRun(
                one["dag_run_id"], one["state"], datetime.fromisoformat(one["data_interval_end"])
            )
            for one in answer.json()["dag_runs"]
            if one["data_interval_end"]
        ]

    def _answer(
        self, method: str, path: str, *, unknown: bool = False, **more: Any
    ) -> httpx.Response:
        """Ask, and check the status; with ``unknown``, 404 is an answer too."""
        try:
            answer = self._client.request(method, path, **more)
            if not (unknown and answer.status_code == httpx.codes.NOT_FOUND):
                answer.raise_for_status()
        except httpx.HTTPError as error:
            raise AirflowUnreachableError(str(error) or type(error).__name__) from error
        return answer


def _path(view: str) -> str:
    return f"/api/v2/dags/{dag_id(view)}"
