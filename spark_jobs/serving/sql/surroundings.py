"""The tables that a session reads: production's, or those with an environment's views in them."""

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
    """What a query can name, where it lies, and what of it is hidden.

    Attributes:
        hidden: columns that are hidden beside those that the manifest marks, by table.
    """

    manifest: Manifest
    locations: TableLocations
    hidden: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _ReadableLocations(EnvironmentLocations):
    """Locations of tables that are there; ``absent`` says of views why they are not."""

    absent: Mapping[str, str]

    def of(self, table: TableName) -> str:
        """The location of a table that SQL can name.

        Raises:
            EnvironmentNotBuiltError: a view of the environment that is not there.
        """
        if table.layer is Layer.GOLD and table.name in self.absent:
            raise EnvironmentNotBuiltError(self.environment, table.name, self.absent[table.name])
        return super().of(table)


def surroundings(settings: Settings, in_force: Manifest, environment: str | None) -> Surroundings:
    """The tables of production, or those that an environment has in their place.

    Args:
        settings: of the project.
        in_force: production's declarations.
        environment: its name; None for production.

    Raises:
        EnvironmentNameError: nothing can have that name.
        EnvironmentUnknownError: nothing has it.
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
