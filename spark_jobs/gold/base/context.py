"""What each step of a refresh needs: settings, manifest, control store, locations, a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from spark_jobs.gold.base.errors import ViewUnknownError
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.manifest import GoldEntry, Manifest
from spark_jobs.names import Layer, TableName
from spark_jobs.settings import Settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake, TableLocations
from spark_jobs.storage.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class GoldContext:
    """The environment of a refresh. The Spark session is opened on first use.

    Attributes:
        announces: whether publications are made by an Airflow task, which emits the asset events
            itself.
        in_process: whether this process does all that a refresh needs, without a session, on rows
            that fit into memory; ``NotTranslatedError`` is raised for what only Spark can do.
    """

    settings: Settings
    manifest: Manifest
    store: ControlStore
    session_factory: Callable[[Settings], SparkSession] = field(default=open_session)
    announces: bool = False
    in_process: bool = False
    # Locations of tables: those of production, or those of an environment.
    places: Callable[[Lake, Manifest], TableLocations] = field(default=TableLocations)

    @cached_property
    def spark(self) -> SparkSession:
        if self.in_process:
            raise NotTranslatedError("a step that only Spark can do")
        return self.session_factory(self.settings)

    def close(self) -> None:
        """Stop the session if one was opened; a server drops idle sessions only after an hour."""
        if "spark" in self.__dict__:
            self.spark.stop()

    @cached_property
    def lake(self) -> Lake:
        return Lake(self.settings.lake)

    @cached_property
    def locations(self) -> TableLocations:
        return self.places(self.lake, self.manifest)

    def entry(self, view: str) -> GoldEntry:
        """The view's entry in the manifest.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        found = self.manifest.gold.get(view)
        if found is None:
            raise ViewUnknownError(view, sorted(self.manifest.gold))
        return found

    def published_at(self, view: str) -> str:
        """The location of the view's published table."""
        return self.locations.of(gold_table(view))


def gold_table(view: str) -> TableName:
    """The table name ``gold.<view>``."""
    return TableName(Layer.GOLD, view)
