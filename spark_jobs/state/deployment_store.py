"""The deployments in the control database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager

from sqlalchemy import Connection

from spark_jobs.state import deployments
from spark_jobs.state.deployments import Deployment, DeploymentStatus


class DeploymentStore:
    """The methods of ``ControlStore`` for deployments; each is one transaction."""

    @abstractmethod
    def _read(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _write(self) -> AbstractContextManager[Connection]: ...

    def begin_deployment(self, deployment: Deployment) -> None:
        """See ``deployments.begin``.

        Raises:
            DeploymentOvertakenError: another deployment took the number.
        """
        with self._write() as connection:
            deployments.begin(connection, deployment)

    def deployment(self, deployment_id: str) -> Deployment | None:
        """A deployment, or None."""
        with self._read() as connection:
            return deployments.get(connection, deployment_id)

    def deployment_in_force(self) -> Deployment | None:
        """The newest deployment whose manifest is in force, or None."""
        with self._read() as connection:
            return deployments.in_force(connection)

    def number_in_force(self) -> int | None:
        """The number of the deployment in force, or None."""
        with self._read() as connection:
            return deployments.number_in_force(connection)

    def id_in_force(self) -> str | None:
        """The id of the deployment in force, or None."""
        with self._read() as connection:
            return deployments.id_in_force(connection)

    def newest_deployment(self) -> Deployment | None:
        """The deployment with the highest number, or None."""
        with self._read() as connection:
            return deployments.newest(connection)

    def deployments(self, *, limit: int = 20, before: int | None = None) -> list[Deployment]:
        """Deployments, newest first; only those with a number below ``before``."""
        with self._read() as connection:
            return deployments.history(connection, limit=limit, before=before)

    def put_in_force(self, deployment_id: str) -> None:
        """Put a deployment's manifest in force; the streams follow it from now on."""
        with self._write() as connection:
            deployments.change(connection, deployment_id, {"in_force": 1})

    def step_done(self, deployment_id: str, *steps: str) -> None:
        """Record that steps are done."""
        with self._write() as connection:
            deployments.step_done(connection, deployment_id, *steps)

    def end_deployment(
        self, deployment_id: str, *, status: DeploymentStatus, error: str | None = None
    ) -> None:
        """Record that a deployment ended, or that it continues."""
        with self._write() as connection:
            deployments.change(connection, deployment_id, {"status": status, "error": error})

    def note_settings(self, deployment_id: str, settings: Mapping[str, str]) -> None:
        """Record the settings with which the parts were started, as text by dotted key."""
        with self._write() as connection:
            deployments.change(connection, deployment_id, {"settings": dict(settings)})

    def keep_tables(self, deployment_id: str, kept: Mapping[str, str]) -> None:
        """Replace the times of removal, by name, of undeclared tables that still exist."""
        with self._write() as connection:
            deployments.change(connection, deployment_id, {"kept": dict(kept)})
