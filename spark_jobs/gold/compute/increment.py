"""An incremental refresh: which rows to delete from the published table, and which to insert."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.gold.compute.aggregate_state import keep_groups
from spark_jobs.gold.compute.pinned import check_inputs
from spark_jobs.gold.compute.relations import Relations, prefix_of, ranges_of
from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.errors import BaseMovedError
from spark_jobs.gold.publications import Publication, latest_publication
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.staged import DELETE, INSERT, OPERATION
from spark_jobs.graph.maintenance.delta import StateUpdate
from spark_jobs.graph.maintenance.derived import derived_program, remembered_program
from spark_jobs.graph.maintenance.program import Program
from spark_jobs.graph.maintenance.relation import WEIGHT, When
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.sql import Query
from spark_jobs.names import TableVersion
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import policy, small, tables
from spark_jobs.storage.policy import Place
from spark_jobs.storage.tables import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def base_of(context: GoldContext, work: WorkItem) -> Publication:
    """The publication that an incremental attempt builds on.

    Raises:
        BaseMovedError: the newest one is not what the plan saw, or of another definition.
    """
    base = latest_publication(context.published_at(work.view))
    vector = work.vector
    if base is None:
        raise BaseMovedError(work.view, "nothing is published any more")
    mark = base.watermark
    if mark.fingerprint != work.fingerprint or mark.epoch != work.epoch:
        raise BaseMovedError(work.view, f"version {base.version} has another definition")
    for table, after in vector:
        before = mark.vector.get(table)
        if before is None or before.table_id != after.table_id or before.version > after.version:
            raise BaseMovedError(
                work.view, f"version {base.version} was computed from later data of {table}"
            )
    return base


def program_of(
    context: GoldContext,
    entry: GoldEntry,
    *,
    vector: VersionVector,
    clock: datetime,
    base: Publication,
    prefix: str = "__refresh",
    by_name: bool = False,
    remembered: bool = False,
) -> tuple[Program, Relations]:
    """The SQL of the change from a publication to a version vector.

    Args:
        context: of the project.
        entry: the view.
        vector: the versions after the change.
        clock: what the clock shows then.
        base: the publication.
        prefix: the names of all relations start with it.
        by_name: see ``Relations``.
        remembered: whether a program that was derived before may be taken; prefix and names are
            then those of every refresh of the view.

    Raises:
        BaseMovedError: the publication had other inputs.
    """
    ranges = ranges_of(base, vector)
    if ranges is None:
        raise BaseMovedError(entry.name, f"version {base.version} comes from other inputs")
    relations = Relations(context, entry.name, base, ranges, prefix, by_name)
    clocks = {When.OLD: base.watermark.clock, When.NEW: clock} if entry.reads_clock else {}
    derive = remembered_program if remembered else derived_program
    program = derive(entry.query, relations, clocks, types=relations.types(), prefix=prefix)
    return program, relations


@dataclass
class StagedChange:
    """What an incremental refresh computed.

    Attributes:
        rows: the view's columns and ``__operation``: ``leaves`` (as often as the table has the
            row) or ``enters``; to be read while the context of ``staged_change`` lasts.
        states: the versions of the aggregate state that belong to it.
        place: where the rows are to be written.
        counted: whether aggregate state had to be counted from all rows.
    """

    rows: DataFrame
    states: dict[str, TableVersion]
    place: Place
    counted: bool


@contextmanager
def staged_change(context: GoldContext, work: WorkItem) -> Iterator[StagedChange]:
    """Compute the rows to delete and insert, and bring the aggregate state up to date.

    Raises:
        BaseMovedError: somebody published in between.
        InputReplacedError: another table lies where the plan pinned one.
    """
    entry = context.entry(work.view)
    base = base_of(context, work)
    vector = work.vector
    check_inputs(context, entry.name, vector)
    program, relations = program_of(
        context,
        entry,
        vector=vector,
        clock=work.clock,
        base=base,
        prefix=prefix_of(work),
        by_name=True,
    )
    states: dict[str, TableVersion] = {}
    try:
        relations.register_changes()
        relations.register_contents()
        place = policy.CHANGE.place(rows=work.changed)
        for step in program.steps:
            if isinstance(step, StateUpdate):
                states |= keep_groups(relations, step, work, place=place)
                continue
            frame = context.spark.sql(to_sql(step.query))
            relations.register(_computed(frame, place=place), step.name)
        if program.change is None:
            yield StagedChange(_nothing(relations), states, place, relations.counted)
            return
        change = _typed(relations, program.change)
        if entry.maintenance is not None and entry.maintenance.key:
            yield StagedChange(_of_keyed(change, entry.name), states, place, relations.counted)
            return
        change = _computed(change, place=place)
        multiset = _without_key(change, relations.published_rows(), entry.name)
        yield StagedChange(multiset, states, place, relations.counted)
    finally:
        relations.forget()


def _computed(frame: DataFrame, *, place: Place) -> DataFrame:
    """The same rows, computed once, however often they are read."""
    rows = small.fetched(frame) if place is Place.LOCAL else None
    if rows is not None:
        return small.from_arrow(frame.sparkSession, rows, lambda: frame.schema)
    # Not persist: a cached DataFrame keeps its plan, and each step reads several of those before.
    return frame.localCheckpoint()


def _nothing(relations: Relations) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return relations.published_rows().limit(0).withColumn(OPERATION, F.lit(INSERT))


def _typed(relations: Relations, change: Query) -> DataFrame:
    """The change with the published table's types: a sum over the same columns may be wider."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    frame = relations.context.spark.sql(to_sql(change))
    like = relations.published_rows().withColumn(WEIGHT, F.lit(1).cast("long"))
    return tables.with_types_of(frame, like)


def _of_keyed(change: DataFrame, view: str) -> DataFrame:
    """Where a key tells rows apart, a row is deleted or inserted once."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    word = F.when(F.col(WEIGHT) == -1, DELETE).when(F.col(WEIGHT) == 1, INSERT)
    wrong = F.raise_error(F.lit(f"gold.{view}: a row of a unique key comes twice"))
    return change.withColumn(OPERATION, word.otherwise(wrong)).drop(WEIGHT)


def _without_key(change: DataFrame, published: DataFrame, view: str) -> DataFrame:
    """A table without a key: all copies of a row are deleted, and the rest inserted again."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    columns = published.columns
    names = [F.col(quoted(name)) for name in columns]
    fewer = change.where(F.col(WEIGHT) < 0).alias("c")
    here = published.withColumn("__here", F.lit(1)).alias("p")
    counted = (
        fewer.join(here, tables.same_row("p", "c", columns), "left_outer")
        .groupBy(
            *(F.col(f"c.{quoted(name)}").alias(name) for name in columns), F.col(f"c.{WEIGHT}")
        )
        .agg(F.count("__here").alias("__here"))
    )
    rest = F.col("__here") + F.col(WEIGHT)
    lacking = F.raise_error(F.lit(f"gold.{view}: a row to delete is not there"))
    deleted = counted.select(
        *names,
        F.lit(DELETE).alias(OPERATION),
        F.when(rest >= 0, F.col("__here")).otherwise(lacking).cast("int").alias("__copies"),
    )
    staying = counted.where(rest > 0).select(
        *names, F.lit(INSERT).alias(OPERATION), rest.cast("int").alias("__copies")
    )
    more = change.where(F.col(WEIGHT) > 0).select(
        *names, F.lit(INSERT).alias(OPERATION), F.col(WEIGHT).cast("int").alias("__copies")
    )
    every = deleted.unionAll(staying).unionAll(more)
    each = F.explode(F.array_repeat(F.lit(1), F.col("__copies")))
    return every.select(*names, F.col(OPERATION), each.alias("__copy")).drop("__copy")
