"""Where an environment's views lie, and who may work on it."""

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
    """Locations with an environment's own views in it, for a ``GoldContext``."""
    return partial(EnvironmentLocations, environment=name, views=frozenset(views))


def known_environment(store: ControlStore, name: str) -> Environment:
    """An environment that is there.

    Raises:
        EnvironmentNameError: nothing can have that name.
        EnvironmentUnknownError: nothing has it.
    """
    found = store.environment(checked_name(name))
    if found is None:
        raise EnvironmentUnknownError(name, [one.name for one in store.environments()])
    return found


@contextmanager
def only_writer(settings: Settings, name: str) -> Iterator[None]:
    """Keep any other command off an environment.

    Raises:
        EnvironmentBusyError: one works on it.
    """
    with ExitStack() as held:
        try:
            locks = lock_directory(settings.lake, settings.state)
            held.enter_context(table_lock(locks, f"environment.{name}"))
        except TableLockedError as error:
            raise EnvironmentBusyError(name, error.detail) from error
        yield
