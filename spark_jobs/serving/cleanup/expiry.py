"""Deletes expired rows, as part of ``tidemark maintain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.serving.project import OpenProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.graph.manifest import Expiry, SilverEntry
    from spark_jobs.silver.repair.expiring import Expired, Expirer


def expire_tables(
    project: OpenProject, names: Iterable[str], *, dry_run: bool, now: datetime
) -> Iterator[Expired]:
    """Delete expired rows table by table; tables without a ``ttl`` are skipped.

    Spark starts for the first table with expired rows. A table whose stream was killed during a
    batch is left for the next run.

    Args:
        project: the open project.
        names: names of the tables in SQL.
        dry_run: only count.
        now: the current time.
    """
    from spark_jobs.silver.errors import UnsettledError
    from spark_jobs.silver.repair.expiring import expired_rows
    from spark_jobs.silver.store.tables import SilverTables
    from spark_jobs.storage.lake import Lake

    lake, wanted = Lake(project.settings.lake), set(names)
    with ExitStack() as opened:
        spark: SparkSession | None = None
        for entry in project.manifest.silver.values():
            if entry.expiry is None or str(entry.table_name) not in wanted:
                continue
            found = expired_rows(SilverTables.of(lake, entry), entry.expiry, now=now)
            if found.rows and not dry_run:
                spark = spark or _session(project, opened)
                try:
                    found = _expirer(project, entry, entry.expiry, spark).run(now=now)
                except UnsettledError as error:
                    found = replace(found, why=f"{error.primary} [{error.condition}]")
            yield found


def expired_words(one: Expired, *, dry_run: bool) -> str:
    """The result for a table, as a sentence."""
    rows = f"{one.rows:,} rows of {one.table} from before {one.before:%Y-%m-%d}"
    if one.why:
        return f"{rows} have expired and stay: {one.why}."
    if dry_run:
        return f"{rows} have expired and would be deleted."
    return f"{rows} expired and left with version {one.version}."


def _session(project: OpenProject, opened: ExitStack) -> SparkSession:
    from spark_jobs.storage.session import command_session

    return opened.enter_context(command_session(project.settings, "tidemark maintain"))


def _expirer(
    project: OpenProject, entry: SilverEntry, expiry: Expiry, spark: SparkSession
) -> Expirer:
    from spark_jobs.silver.flow import SilverFlow

    source = project.manifest.sources[entry.source]
    return SilverFlow(source, entry, project.settings, project.store).expirer(spark, expiry)
