"""``tidemark reconcile``: does everything that came in have an end, and do the ends agree?"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.cli.project import OpenProject, open_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.cli.reconcile_report import Line, Reconciliation
    from spark_jobs.settings import Settings

PAUSE_SECONDS = 3


def reconcile(
    context: typer.Context,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait until everything has arrived.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Count records from Kafka to silver and compare silver with its source database."""
    from spark_jobs.cli.reconcile_report import examples_tables, reconciliation_table
    from spark_jobs.storage.session import open_session

    with open_project(context) as project:
        spark = open_session(project.settings)
        try:
            with Console(stderr=True).status("counting records"):
                found = reconcile_project(project, spark, wait=wait)
        finally:
            spark.stop()
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        console = Console(highlight=False)
        for table in (reconciliation_table(found), *examples_tables(found)):
            console.print(table)
        for line in found.problems:
            console.print(line, style="red", markup=False)
    if not found.balanced:
        raise typer.Exit(1)


def reconcile_project(project: OpenProject, spark: SparkSession, *, wait: float) -> Reconciliation:
    """All counts; asked again until they balance or the time is up.

    Raises:
        KafkaUnreachableError: no broker answers.
        TopicMissingError: a source's topic does not exist.
        SourceDatabaseError: the source database cannot be read.
    """
    from spark_jobs.cli.reconcile_report import Reconciliation

    deadline = time.monotonic() + wait
    while True:
        found = Reconciliation(tuple(_lines(project, spark)))
        if found.balanced or time.monotonic() > deadline:
            return found
        time.sleep(PAUSE_SECONDS)


def _lines(project: OpenProject, spark: SparkSession) -> list[Line]:
    from spark_jobs.bronze.reconcile import reconcile_bronze
    from spark_jobs.bronze.topics import Topics
    from spark_jobs.cli.reconcile_report import Line
    from spark_jobs.definitions.vocabulary import SourceFormat
    from spark_jobs.silver.reconcile import reconcile_silver
    from spark_jobs.silver.source_database import comparable, compare_with_source
    from spark_jobs.storage.lake import Lake

    settings, manifest, store = project.settings, project.manifest, project.store
    lake = Lake(settings.lake)
    sources = [one for one in manifest.sources.values() if one.format is not SourceFormat.DELTA]
    bronze = {
        count.source: count
        for count in reconcile_bronze(spark, lake, sources, topics=Topics(settings.kafka))
    }
    entries = list(manifest.silver.values())
    totals = {
        entry.name: store.silver_totals(entry.name, epoch=store.epoch(str(entry.table_name)))
        for entry in entries
    }
    rows = {name: count.bronze for name, count in bronze.items()}
    counts = reconcile_silver(spark, lake, entries, bronze=rows, totals=totals)
    dsn = source_dsn(settings)
    lines = []
    for count in counts:
        source = manifest.sources[count.entry.source]
        compared = (
            compare_with_source(spark, lake, count.entry, source=source, dsn=dsn)
            if dsn and comparable(count.entry, source)
            else None
        )
        lines.append(Line(bronze[source.name], count, compared))
    read = {entry.source for entry in entries}
    lines += [Line(count, None, None) for name, count in bronze.items() if name not in read]
    return lines


def source_dsn(settings: Settings) -> str:
    """The database that changes come from; the local stack's shop where no other is named."""
    from spark_jobs.local.postgres import DEBEZIUM, SHOP, dsn, secret_name

    if settings.source_database:
        return settings.source_database
    here = (settings.secrets_dir / secret_name(DEBEZIUM)).exists()
    return dsn(settings, database=SHOP, role=DEBEZIUM) if here else ""
