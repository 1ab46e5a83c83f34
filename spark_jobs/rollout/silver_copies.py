"""Builds edited silver tables from bronze, so that a preview can compare their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.silver.errors import SilverTableUnknownError
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.silver.repair.declared import DeclaredTable
from spark_jobs.state.locks import table_lock
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake, lock_directory
from spark_jobs.storage.log import table_version
from spark_jobs.storage.session import command_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _session(settings: Settings) -> AbstractContextManager[SparkSession]:
    return command_session(settings, "tidemark diff")


@dataclass(frozen=True)
class SilverCopies:
    """Builds silver tables by the edited files.

    Attributes:
        before: the manifest that the streams run with.
        after: the project.
        sessions: opens a classic session.
    """

    settings: Settings
    store: ControlStore
    before: Manifest
    after: Manifest
    sessions: Callable[[Settings], AbstractContextManager[SparkSession]] = _session

    def check(self, names: Sequence[str]) -> None:
        """Check that the project declares these silver tables.

        Raises:
            SilverTableUnknownError: it lacks one.
        """
        for name in names:
            if name not in self.after.silver:
                raise SilverTableUnknownError(name, sorted(self.after.silver))

    @contextmanager
    def built(
        self, names: Sequence[str], *, note: Callable[[str], None]
    ) -> Iterator[dict[str, DeclaredTable | None]]:
        """Build tables; they exist while the block runs.

        Args:
            names: silver tables of the project.
            note: called with what is done.

        Yields:
            the tables by their name in SQL; None if there are no records of its source yet.

        Raises:
            TableLockedError: a rebuild or another preview of such a table runs.
            LakehouseError: any error of ``Rebuilder.preview``.
        """
        found: dict[str, DeclaredTable | None] = {}
        lake = Lake(self.settings.lake)
        locks = lock_directory(self.settings.lake, self.settings.state)
        with ExitStack() as kept:
            for name in names:
                kept.enter_context(table_lock(locks, f"rebuild.{name}"))
            # What is built stays when the session ends, and the views may need another one.
            with self.sessions(self.settings) as spark:
                for name in names:
                    note(f"silver.{name} is built from bronze")
                    flow = self._flow(self.after, name)
                    bronze = lake.location(flow.source.table_name)
                    there = table_version(bronze) is not None
                    table = flow.declared(spark, self._running(name)) if there else None
                    found[f"silver.{name}"] = kept.enter_context(table) if table else None
            yield found

    def _running(self, name: str) -> SilverFlow | None:
        """The flow that keeps the table; None if it is new, or was not written yet."""
        if name not in self.before.silver:
            return None
        flow = self._flow(self.before, name)
        return None if table_version(flow.tables.table) is None else flow

    def _flow(self, manifest: Manifest, name: str) -> SilverFlow:
        entry = manifest.silver[name]
        return SilverFlow(manifest.sources[entry.source], entry, self.settings, self.store)
