"""Deletes tables of environments that hold data which production has deleted or expired."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from spark_jobs.deploy.environment_errors import EnvironmentBusyError
from spark_jobs.deploy.environments import reading
from spark_jobs.gold.environment.surroundings import only_writer
from spark_jobs.settings import Settings
from spark_jobs.state.environments import (
    Environment,
    EnvironmentStatus,
    EnvironmentView,
    ViewState,
)
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log
from spark_jobs.storage.cleaning import last_written
from spark_jobs.storage.history import remove_table
from spark_jobs.storage.lake import Lake

FAILPOINTS = ("environment.copies.marked",)


def delete_copies(
    settings: Settings, store: ControlStore, tables: Collection[str], *, why: str
) -> list[str]:
    """Delete, in every environment, the views that hold data of some tables.

    Args:
        settings: project settings.
        store: the control database.
        tables: names as in SQL.
        why: reason shown to users; ``apply --env`` builds the views again.

    Returns:
        the deleted views, as ``environment: gold.view``.

    Raises:
        EnvironmentBusyError: another command is working on such an environment.
    """
    found: list[str] = []
    for name in [one.name for one in store.environments() if reading(one, tables)]:
        with only_writer(settings, name):
            environment = store.environment(name)
            if environment is not None:
                views = reading(environment, tables)
                found += delete_views(settings, store, environment, views, why=why)
    return found


def delete_expired_copies(
    settings: Settings, store: ControlStore, expiring: Mapping[str, str]
) -> list[str]:
    """Delete views that were built before rows of a table that they read expired.

    An environment that another command is working on is skipped until the next run.

    Args:
        settings: project settings.
        store: the control database.
        expiring: location of each table that has a ``ttl``, by name.

    Returns:
        the deleted views, as ``environment: gold.view``.
    """
    times = {table: at for table, place in expiring.items() if (at := _expired_at(place))}
    found: list[str] = []
    for known in store.environments() if times else ():
        if not _outlived(settings, known, times):
            continue
        with suppress(EnvironmentBusyError), only_writer(settings, known.name):
            environment = store.environment(known.name)
            if environment is not None:
                views = _outlived(settings, environment, times)
                why = "some of its rows have expired"
                found += delete_views(settings, store, environment, views, why=why)
    return found


def _outlived(
    settings: Settings, environment: Environment, times: Mapping[str, datetime]
) -> frozenset[str]:
    """The views that were built before a table's rows expired, and the views that read those."""
    older = {
        f"gold.{view}"
        for table, at in times.items()
        for view in reading(environment, {table})
        if _built_before(environment.views[view], at)
        and (environment.views[view].there or _remains(settings, environment, view))
    }
    return reading(environment, older) if older else frozenset()


def _built_before(view: EnvironmentView, at: datetime) -> bool:
    return view.clock is not None and datetime.fromisoformat(view.clock) <= at


def _remains(settings: Settings, environment: Environment, view: str) -> bool:
    """Whether a deletion was killed or failed before all files were gone."""
    location = Lake(settings.lake).environment(environment.name, view)
    deleted = environment.views[view].state is ViewState.DELETED
    return deleted and last_written(location) is not None


def _expired_at(location: str) -> datetime | None:
    """When rows of a table last expired, as far back as its log goes."""
    if log.table_version(location) is None:
        return None
    return next(
        (one.timestamp for one in log.commits(location) if "expiry" in (one.metadata or {})), None
    )


def delete_views(
    settings: Settings,
    store: ControlStore,
    environment: Environment,
    views: Collection[str],
    *,
    why: str,
) -> list[str]:
    """Mark views as deleted, then remove their files; safe to repeat after a kill.

    Args:
        settings: project settings.
        store: the control database.
        environment: its stored record; the caller holds its lock.
        views: names of views of the environment.
        why: reason shown to users.

    Returns:
        the deleted views, as ``environment: gold.view``.
    """
    doomed = [view for view in environment.views if view in views]
    for view in doomed:
        gone = replace(environment.views[view], state=ViewState.DELETED, table=None, problem=why)
        environment = environment.with_view(view, gone)
    if environment.status is EnvironmentStatus.BUILT:
        environment = replace(environment, status=EnvironmentStatus.OPEN)
    # Pinned versions may still contain the expired rows.
    store.save_environment(replace(environment, pins={}))
    failpoint("environment.copies.marked")
    for view in doomed:
        remove_table(Lake(settings.lake).environment(environment.name, view))
    return [f"{environment.name}: gold.{view}" for view in doomed]
