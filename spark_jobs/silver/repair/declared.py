"""Builds a silver table from bronze by edited declarations, to be compared with the live one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.repair.rebuild import Rebuilder
from spark_jobs.silver.repair.shadow import ShadowTable
from spark_jobs.storage.history import discard_table, remove_table
from spark_jobs.storage.log import existing_table, table_version


@dataclass(frozen=True)
class DeclaredTable:
    """A silver table as edited declarations make it of the records in bronze.

    Attributes:
        location: where it is, until the block that built it ends.
        live: version of the live table that has the same records; None if there is no live table.
    """

    location: str
    live: int | None


@contextmanager
def beside(rebuilder: Rebuilder, declared: BatchApplier) -> Iterator[DeclaredTable]:
    """Build a table next to the live one over the same source.

    Args:
        rebuilder: rebuilds the live table.
        declared: has the edited declarations.

    Raises:
        LakehouseError: any error of ``Rebuilder.run``.
    """
    edited = replace(rebuilder, source=declared.source, entry=declared.entry)
    with edited.beside() as (live, shadow):
        yield DeclaredTable(shadow.tables.table, live.version)


@contextmanager
def alone(
    spark: SparkSession, declared: BatchApplier, *, bronze: str, folder: str
) -> Iterator[DeclaredTable]:
    """Build a table that no query keeps over this source.

    Args:
        spark: any classic session.
        declared: has the edited declarations, and the locations of a live table.
        bronze: location of the source's records.
        folder: where the table is built; contains nothing else.

    Raises:
        TableMissingError: there is no bronze table.
    """
    version = existing_table(bronze).version()
    live = table_version(declared.tables.table)
    remove_table(folder)
    try:
        shadow = ShadowTable(
            spark=spark,
            source=declared.source,
            entry=declared.entry,
            bronze=bronze,
            live=None,
            tables=declared.tables.below(folder),
            max_bytes=declared.max_bytes,
            placeholder=declared.placeholder,
            decided=None,
            began=declared.clock(),
            few=declared.few,
        )
        shadow.apply_up_to(version)
        shadow.expire()
        yield DeclaredTable(shadow.tables.table, None if live is None else live.version)
    finally:
        discard_table(folder)
