"""The balance of every source, gathered over all layers, and how a terminal shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from spark_jobs.errors import LakehouseError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.bronze.reconcile import BronzeBalance
    from spark_jobs.cli.project import OpenProject
    from spark_jobs.graph.manifest import SilverEntry
    from spark_jobs.silver.reconcile import SilverBalance
    from spark_jobs.silver.source_database import SourceDifference


@dataclass(frozen=True)
class Balance:
    """One silver table and its source; parts that could not be told are None."""

    source: str
    silver: str
    kafka: BronzeBalance | None
    records: SilverBalance | None
    database: SourceDifference | None
    problems: tuple[str, ...]

    @property
    def pending(self) -> int:
        """Records that are on their way."""
        return (self.kafka.lag if self.kafka else 0) + (self.records.pending if self.records else 0)

    @property
    def verdict(self) -> str:
        """One of: balanced, in flight, differs."""
        if self.problems:
            return "differs"
        return "in flight" if self.pending else "balanced"

    def as_dict(self) -> dict[str, Any]:
        """The balance for programs."""
        return {**asdict(self), "pending": self.pending, "verdict": self.verdict}


def balances(
    project: OpenProject, *, session: Callable[[], SparkSession] | None, dsn: str | None
) -> Iterator[Balance]:
    """The balance of every silver table over a topic.

    Args:
        project: the open project.
        session: opens a Spark session for comparing rows with the source database.
        dsn: where the source database is; None leaves it out.
    """
    from spark_jobs.bronze.topics import Topics

    topics = Topics(project.settings.kafka)
    for entry in project.manifest.silver.values():
        if project.manifest.sources[entry.source].topic is not None:
            yield _balance(project, entry, topics=topics, session=session, dsn=dsn)


def _balance(
    project: OpenProject,
    entry: SilverEntry,
    *,
    topics: Any,
    session: Callable[[], SparkSession] | None,
    dsn: str | None,
) -> Balance:
    from spark_jobs.bronze.reconcile import reconcile_bronze
    from spark_jobs.silver.reconcile import reconcile_silver
    from spark_jobs.silver.source_database import compare_with_source
    from spark_jobs.silver.tables import SilverTables
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.tables import read

    source = project.manifest.sources[entry.source]
    lake = Lake(project.settings.lake)
    bronze = lake.location(source.table_name)
    tables = SilverTables.of(lake, entry)
    kafka: BronzeBalance | None = None
    records: SilverBalance | None = None
    database: SourceDifference | None = None
    problems: list[str] = []
    try:
        servers = project.settings.kafka
        records = reconcile_silver(lake, tables, store=project.store, source=bronze)
        problems += records.problems
        kafka = reconcile_bronze(topics, servers, source.topic or "", location=bronze)
        problems += kafka.problems
        pending = records.pending or kafka.lag
        if source.table and dsn and session is not None and not pending and not problems:
            spark = session()
            silver = read(spark, tables.table)
            database = compare_with_source(spark, silver, source, entry, dsn=dsn)
            problems += _differences(database)
    except LakehouseError as error:
        problems.append(f"{error.primary} [{error.condition}]")
    return Balance(source.name, entry.name, kafka, records, database, tuple(problems))


def _differences(database: SourceDifference) -> list[str]:
    if database.equal:
        return []
    head = (
        f"silver rows = source rows: {database.missing} rows are only in the source, "
        f"{database.unexpected} only in silver"
    )
    return [head, *(f"only in {side}: {row}" for side, row in database.examples)]


def balances_table(found: list[Balance]) -> Table:
    """Records in, where each ended, and the verdict."""
    table = Table(title="Records in and where each ended", title_justify="left")
    table.add_column("silver table", no_wrap=True)
    for name in (
        "kafka",
        "bronze",
        "applied",
        "superseded",
        "quarantined",
        "duplicate",
        "ignored",
        "silver rows",
        "postgres rows",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in found:
        totals = one.records.totals if one.records else None
        numbers = [
            one.kafka.kafka if one.kafka else None,
            one.kafka.bronze if one.kafka else None,
            *(
                getattr(totals, name, None)
                for name in ("applied", "superseded", "quarantined", "duplicate", "ignored")
            ),
            one.records.silver if one.records else None,
            one.database.source_rows if one.database else None,
        ]
        colour = {"balanced": "green", "in flight": "yellow"}.get(one.verdict, "red")
        shown = ("-" if number is None else f"{number:,}" for number in numbers)
        table.add_row(one.silver, *shown, f"[{colour}]{one.verdict}[/]")
    return table
