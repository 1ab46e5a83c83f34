"""Arranges the files of clustered tables, as part of ``tidemark maintain``."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from typing import TYPE_CHECKING

from spark_jobs.serving.project import OpenProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.graph.manifest import GoldEntry, SilverEntry


def cluster_tables(project: OpenProject, names: Collection[str]) -> Iterator[str]:
    """Cluster the files of tables with ``cluster_by``; other tables lose old clustering columns.

    Each table is locked like by its writer. Spark starts for the first table that needs it.

    Args:
        project: the open project.
        names: names of the tables in SQL.

    Yields:
        the tables whose files were written.
    """
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.layout import Layout, cluster_files, clusterable, set_clustering

    lake = Lake(project.settings.lake)
    with ExitStack() as opened:

        @cache
        def spark() -> SparkSession:
            return _session(project, opened)

        entries: list[SilverEntry | GoldEntry] = [*project.manifest.silver.values()]
        for entry in (*entries, *project.manifest.gold.values()):
            table, location = str(entry.table_name), lake.location(entry.table_name)
            layout = Layout.of(entry)
            if table not in names or not (layout.cluster_by or clusterable(location)):
                continue
            with _sole_writer(project, entry):
                set_clustering(location, layout, spark)
                if layout.cluster_by and cluster_files(location, spark):
                    yield table


def _session(project: OpenProject, opened: ExitStack) -> SparkSession:
    from spark_jobs.storage.session import open_session

    spark = open_session(project.settings)
    opened.callback(spark.stop)
    return spark


def _sole_writer(
    project: OpenProject, entry: SilverEntry | GoldEntry
) -> AbstractContextManager[object]:
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.refresh.lease import sole_writer
    from spark_jobs.graph.manifest import SilverEntry
    from spark_jobs.silver.store.lock import table_guard

    settings, store = project.settings, project.store
    if isinstance(entry, SilverEntry):
        return table_guard(settings, store, entry.table_name)
    return sole_writer(
        GoldContext(settings, project.manifest, store), entry.name, attempt_id="maintain"
    )
