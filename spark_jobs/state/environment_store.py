"""The virtual environments in the control database."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager

from sqlalchemy import Connection

from spark_jobs.state import environments
from spark_jobs.state.environments import Environment


class EnvironmentStore:
    """The methods of ``ControlStore`` for environments; each is one transaction."""

    @abstractmethod
    def _read(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _write(self) -> AbstractContextManager[Connection]: ...

    def save_environment(self, environment: Environment) -> None:
        """Insert or replace an environment."""
        with self._write() as connection:
            environments.save(connection, environment)

    def environment(self, name: str) -> Environment | None:
        """An environment, or None."""
        with self._read() as connection:
            return environments.get(connection, name)

    def environments(self) -> list[Environment]:
        """All environments, by name."""
        with self._read() as connection:
            return environments.every(connection)

    def remove_environment(self, name: str) -> None:
        """Delete an environment's record, after its files."""
        with self._write() as connection:
            environments.remove(connection, name)
