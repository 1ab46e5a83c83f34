"""The tables of a session: those of production, or with an environment's views in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_jobs.deploy.environment_errors import EnvironmentNotBuiltError
from spark_jobs.deploy.environments import hidden_columns, with_views
from spark_jobs.gold.environment.surroundings import known_environment
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Layer, TableName
from spark_jobs.settings import Settings
from spark_jobs.state.environments import EnvironmentStatus
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import EnvironmentLocations, Lake, TableLocations


@dataclass(frozen=True)
class Surroundings:
    """The tables that a query can use, their locations, and masked columns.

    Attributes:
        hidden: masked columns in addition to those that the manifest marks, by table.
    """

    manifest: Manifest
    locations: TableLocations
    hidden: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _ReadableLocations(EnvironmentLocations):
    """Locations of existing tables; ``absent`` has the reason for missing views."""

    absent: Mapping[str, str]

    def of(self, table: TableName) -> str:
        """The location of a table, by its name in SQL.

        Raises:
            EnvironmentNotBuiltError: a view of the environment is not built.
        """
        if table.layer is Layer.GOLD and table.name in self.absent:
            raise EnvironmentNotBuiltError(self.environment, table.name, self.absent[table.name])
        return super().of(table)


def surroundings(settings: Settings, in_force: Manifest, environment: str | None) -> Surroundings:
    """The tables of production or of an environment.

    Args:
        settings: project settings.
        in_force: the running manifest.
        environment: its name; None for production.

    Raises:
        EnvironmentNameError: the name is not valid.
        EnvironmentUnknownError: there is no environment of that name.
    """
    lake = Lake(settings.lake)
    if environment is None:
        return Surroundings(in_force, TableLocations(lake, in_force))
    with ControlStore.open(settings.control_url) as store:
        found = known_environment(store, environment)
    stored = Manifest.stored(found.manifest)
    if stored is None:
        absent = dict.fromkeys(found.views, "another release built it")
        return Surroundings(
            in_force, _ReadableLocations(lake, in_force, found.name, set(found.views), absent)
        )
    dropped = found.status is EnvironmentStatus.DROPPING
    absent = {
        view: "the environment is being dropped" if dropped else one.problem or "it is not built"
        for view, one in found.views.items()
        if dropped or not one.there
    }
    manifest = with_views(in_force, stored, found.views)
    locations = _ReadableLocations(lake, manifest, found.name, set(found.views), absent)
    return Surroundings(manifest, locations, hidden_columns(in_force, found))
