"""Writes files of tables again, as part of ``tidemark maintain``.

The files of clustered tables are arranged, and files with wrong bounds are replaced. Each table is
locked like by its writer. Spark starts for the first table that needs it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.graph.atomic import replace_file
from spark_jobs.serving.project import OpenProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.graph.manifest import GoldEntry, SilverEntry

logger = logging.getLogger(__name__)

# In the state directory.
_CHECKED = "checked-bounds.json"


def cluster_tables(project: OpenProject, names: Collection[str]) -> Iterator[str]:
    """Cluster the files of tables with ``cluster_by``; other tables lose old clustering columns.

    Args:
        project: the open project.
        names: names of the tables in SQL.

    Yields:
        the tables whose files were written.
    """
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.layout import Layout, cluster_files, clusterable, set_clustering

    lake = Lake(project.settings.lake)
    with _spark(project) as spark:
        for entry in _entries(project, names):
            location, layout = lake.location(entry.table_name), Layout.of(entry)
            if not (layout.cluster_by or clusterable(location)):
                continue
            with _sole_writer(project, entry):
                set_clustering(location, layout, spark)
                if layout.cluster_by and cluster_files(location, spark):
                    yield str(entry.table_name)


def correct_tables(project: OpenProject, names: Collection[str]) -> Iterator[str]:
    """Rewrite tables with files of earlier releases whose bounds lack NaN, once.

    A table that cannot be rewritten, as one whose writer is busy, is left for the next run.

    Args:
        project: the open project.
        names: names of the tables in SQL.

    Yields:
        the tables that were rewritten; a helper table counts as its table.
    """
    from spark_jobs.graph.manifest import SilverEntry
    from spark_jobs.silver.store.tables import SilverTables
    from spark_jobs.storage import writer
    from spark_jobs.storage.float_bounds import lack_nan
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.log import table_version

    lake, checked = Lake(project.settings.lake), _Checked(project.settings.state / _CHECKED)
    with _spark(project) as spark:
        for entry in _entries(project, names):
            places: tuple[str, ...] = (lake.location(entry.table_name),)
            if isinstance(entry, SilverEntry):
                places = SilverTables.of(lake, entry).places
            versions = {one: table_version(one) for one in places}
            ids = {one: found.table_id for one, found in versions.items() if found}
            wrong = [one for one in ids if ids[one] not in checked.ids and lack_nan(one)]
            checked.add(ids[one] for one in ids if one not in wrong)
            if not wrong:
                continue
            try:
                with _sole_writer(project, entry):
                    # Another run may have rewritten them meanwhile.
                    for location in filter(lack_nan, wrong):
                        writer.rewrite(spark(), location)
            except Exception as error:  # noqa: BLE001 - what else maintain does is not less needed
                logger.warning("files not rewritten table=%s error=%s", entry.table_name, error)
            else:
                checked.add(ids[one] for one in wrong)
                yield str(entry.table_name)


class _Checked:
    """The ids of tables that have no wrong bounds, and get none: their footers are read once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self.ids = frozenset(json.loads(file.read_text("utf-8")))
        except (OSError, ValueError):
            self.ids = frozenset[str]()

    def add(self, ids: Iterable[str]) -> None:
        more = self.ids.union(ids)
        if more != self.ids:
            self.ids = more
            # On a full disk, the footers are read once more next time.
            with suppress(OSError):
                replace_file(self._file, json.dumps(sorted(more)))


def _entries(project: OpenProject, names: Collection[str]) -> Iterator[SilverEntry | GoldEntry]:
    manifest = project.manifest
    entries: list[SilverEntry | GoldEntry] = [*manifest.silver.values(), *manifest.gold.values()]
    for entry in entries:
        if str(entry.table_name) in names:
            yield entry


@contextmanager
def _spark(project: OpenProject) -> Iterator[Callable[[], SparkSession]]:
    """A session that starts when it is first asked for."""
    with ExitStack() as opened:
        yield cache(lambda: _session(project, opened))


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
