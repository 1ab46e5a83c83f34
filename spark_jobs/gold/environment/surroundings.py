"""The locations of an environment's views, and the lock of an environment."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from spark_jobs.deploy.environment_errors import EnvironmentBusyError, EnvironmentUnknownError
from spark_jobs.deploy.environments import checked_name
from spark_jobs.settings import Settings
from spark_jobs.state.environments import Environment
from spark_jobs.state.errors import TableLockedError
from spark_jobs.state.locks import table_lock
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import EnvironmentLocations, lock_directory


def places_of(name: str, views: Collection[str]) -> partial[EnvironmentLocations]:
    """Table locations with an environment's own views, for a ``GoldContext``."""
    return partial(EnvironmentLocations, environment=name, views=frozenset(views))


def known_environment(store: ControlStore, name: str) -> Environment:
    """The stored record of an environment.

    Raises:
        EnvironmentNameError: the name is not allowed.
        EnvironmentUnknownError: there is no environment of that name.
    """
    found = store.environment(checked_name(name))
    if found is None:
        raise EnvironmentUnknownError(name, [one.name for one in store.environments()])
    return found


@contextmanager
def only_writer(settings: Settings, name: str) -> Iterator[None]:
    """Hold the environment's lock while the context lasts.

    Raises:
        EnvironmentBusyError: another command holds it.
    """
    with ExitStack() as held:
        try:
            locks = lock_directory(settings.lake, settings.state)
            held.enter_context(table_lock(locks, f"environment.{name}"))
        except TableLockedError as error:
            raise EnvironmentBusyError(name, error.detail) from error
        yield
