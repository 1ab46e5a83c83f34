"""Derives the program of an incremental refresh, and finds the publication it starts from."""

from __future__ import annotations

from datetime import datetime

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.base.publications import Publication, latest_publication
from spark_jobs.gold.compute.relations import Relations, ranges_of
from spark_jobs.graph.maintenance.derived import derived_program, remembered_program
from spark_jobs.graph.maintenance.program import Program
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.planning.last_step import incremental_step
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.work import WorkItem


def base_of(context: GoldContext, work: WorkItem) -> Publication:
    """The publication that an incremental attempt applies its change to.

    Raises:
        BaseMovedError: the newest publication is not the planned one, or has another definition.
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
    """The SQL of the change from a publication to a version vector, and the relations it reads.

    Args:
        context: settings, manifest and locations of the project.
        entry: the view.
        vector: the input versions after the change.
        clock: the value of CURRENT_TIMESTAMP after the change.
        base: the publication before the change.
        prefix: prefix of all relation names.
        by_name: see ``Relations``.
        remembered: whether a cached program may be used; it has the default prefix and names.

    Raises:
        BaseMovedError: the publication was computed from another set of inputs.
    """
    ranges = ranges_of(base, vector)
    if ranges is None:
        raise BaseMovedError(entry.name, f"version {base.version} comes from other inputs")
    relations = Relations(context, entry.name, base, ranges, prefix, by_name)
    clocks = {When.OLD: base.watermark.clock, When.NEW: clock} if entry.reads_clock else {}
    derive = remembered_program if remembered else derived_program
    program = derive(
        entry.query,
        relations,
        clocks,
        types=relations.types(),
        last=incremental_step(entry.maintenance),
        prefix=prefix,
    )
    return program, relations
