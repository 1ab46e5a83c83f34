"""What every step of a refresh needs: settings, manifest, control state, places and a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from spark_jobs.gold.errors import ViewUnknownError
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
    """The surroundings of a refresh. Spark starts when it is first asked for.

    Attributes:
        announces: whether whoever publishes is a task of Airflow's, which emits the events.
    """

    settings: Settings
    manifest: Manifest
    store: ControlStore
    session_factory: Callable[[Settings], SparkSession] = field(default=open_session)
    announces: bool = False
    # Where tables lie: in production, unless an environment says otherwise.
    places: Callable[[Lake, Manifest], TableLocations] = field(default=TableLocations)

    @cached_property
    def spark(self) -> SparkSession:
        return self.session_factory(self.settings)

    def close(self) -> None:
        """Stop the session, where one was opened; a server forgets an idle one after an hour."""
        if "spark" in self.__dict__:
            self.spark.stop()

    @cached_property
    def lake(self) -> Lake:
        return Lake(self.settings.lake)

    @cached_property
    def locations(self) -> TableLocations:
        return self.places(self.lake, self.manifest)

    def entry(self, view: str) -> GoldEntry:
        """The view's declaration.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        found = self.manifest.gold.get(view)
        if found is None:
            raise ViewUnknownError(view, sorted(self.manifest.gold))
        return found

    def published_at(self, view: str) -> str:
        """Where the view's published table lies."""
        return self.locations.of(gold_table(view))


def gold_table(view: str) -> TableName:
    """A gold view as SQL names it."""
    return TableName(Layer.GOLD, view)
