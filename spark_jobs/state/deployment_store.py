"""The part of the control database that deployments are kept in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager

from sqlalchemy import Connection

from spark_jobs.state import deployments
from spark_jobs.state.deployments import Deployment, DeploymentStatus


class DeploymentStore:
    """What ``ControlStore`` knows of deployments; each method is one transaction."""

    @abstractmethod
    def _read(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _write(self) -> AbstractContextManager[Connection]: ...

    def begin_deployment(self, deployment: Deployment) -> None:
        """See ``deployments.begin``: of two with one number, the second is refused."""
        with self._write() as connection:
            deployments.begin(connection, deployment)

    def deployment(self, deployment_id: str) -> Deployment | None:
        """A deployment, or None."""
        with self._read() as connection:
            return deployments.get(connection, deployment_id)

    def deployment_in_force(self) -> Deployment | None:
        """The newest deployment that the parts were told of, or None."""
        with self._read() as connection:
            return deployments.in_force(connection)

    def number_in_force(self) -> int | None:
        """The number of the deployment in force, or None."""
        with self._read() as connection:
            return deployments.number_in_force(connection)

    def newest_deployment(self) -> Deployment | None:
        """The deployment with the highest number, or None."""
        with self._read() as connection:
            return deployments.newest(connection)

    def deployments(self, *, limit: int = 20) -> list[Deployment]:
        """Deployments, the newest first."""
        with self._read() as connection:
            return deployments.history(connection, limit=limit)

    def put_in_force(self, deployment_id: str) -> None:
        """From now on the streams run what this deployment says."""
        with self._write() as connection:
            deployments.change(connection, deployment_id, {"in_force": 1})

    def step_done(self, deployment_id: str, step: str) -> None:
        """Note that a step of a deployment is done."""
        with self._write() as connection:
            deployments.step_done(connection, deployment_id, step)

    def end_deployment(
        self, deployment_id: str, *, status: DeploymentStatus, error: str | None = None
    ) -> None:
        """Note how a deployment ended, or that it goes on."""
        with self._write() as connection:
            deployments.change(connection, deployment_id, {"status": status, "error": error})

    def note_settings(self, deployment_id: str, settings: Mapping[str, str]) -> None:
        """Note with which settings the parts were started."""
        with self._write() as connection:
            deployments.change(connection, deployment_id, {"settings": dict(settings)})

    def keep_tables(self, deployment_id: str, kept: Mapping[str, str]) -> None:
        """Replace the list of tables that are declared no more and still there."""
        with self._write() as connection:
            deployments.change(connection, deployment_id, {"kept": dict(kept)})
