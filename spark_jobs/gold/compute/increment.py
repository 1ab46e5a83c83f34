"""What a refresh computes: a decision of the plan, or the program of an incremental refresh."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import AttemptStateError, BaseMovedError
from spark_jobs.gold.base.publications import Publication, latest_publication
from spark_jobs.gold.compute.pinned import check_inputs
from spark_jobs.gold.compute.relations import PREFIX, Relations, ranges_of
from spark_jobs.graph.maintenance.derived import derived_program, remembered_program
from spark_jobs.graph.maintenance.program import Program
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.planning.decision import Full, Incremental, Promotion, Range, Rollback, Skip
from spark_jobs.planning.last_step import incremental_step
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.work import WorkItem
from spark_jobs.state.attempts import AttemptStatus


@dataclass(frozen=True)
class Change:
    """The program of an incremental refresh, and the relations that it reads."""

    program: Program
    relations: Relations


Computation = Change | Full | Range | Rollback | Promotion


def computation(context: GoldContext, work: WorkItem) -> Computation:
    """What a refresh computes, whatever the engine.

    Raises:
        AttemptStateError: the plan was to skip.
        BaseMovedError: another definition was applied after the plan; or another publication was
            committed after the plan of an incremental refresh.
        InputReplacedError: an input of an incremental refresh was dropped or recreated.
    """
    check_definition(context, work)
    match work.decision:
        case Incremental():
            base = base_of(context, work)
            check_inputs(context, work.view, work.vector)
            entry = context.entry(work.view)
            return change_of(
                context, entry, vector=work.vector, clock=work.clock, base=base, by_name=True
            )
        case Skip():
            raise AttemptStateError(work.attempt_id, status=AttemptStatus.SKIPPED, step="stage")
        case decision:
            return decision


def check_definition(context: GoldContext, work: WorkItem) -> None:
    """Check that the view's SQL is still the one that a refresh was planned for.

    Otherwise rows of one definition would be published under the fingerprint of another.

    Raises:
        BaseMovedError: another definition was applied since.
    """
    computes = isinstance(work.decision, Incremental | Full | Range)
    if computes and work.fingerprint != context.entry(work.view).fingerprint:
        raise BaseMovedError(work.view, "its definition changed after the plan")


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


def change_of(
    context: GoldContext,
    entry: GoldEntry,
    *,
    vector: VersionVector,
    clock: datetime,
    base: Publication,
    by_name: bool = False,
) -> Change:
    """The change from a publication to a version vector.

    Args:
        context: settings, manifest and locations of the project.
        entry: the view.
        vector: the input versions after the change.
        clock: the value of CURRENT_TIMESTAMP after the change.
        base: the publication before the change.
        by_name: see ``Relations``; the program may then come from the cache.

    Raises:
        BaseMovedError: the publication was computed from another set of inputs.
    """
    ranges = ranges_of(context, base, vector)
    if ranges is None:
        raise BaseMovedError(entry.name, f"version {base.version} comes from other inputs")
    relations = Relations(context, entry.name, base, ranges, by_name)
    clocks = {When.OLD: base.watermark.clock, When.NEW: clock} if entry.reads_clock else {}
    derive = remembered_program if by_name else derived_program
    program = derive(
        entry.query,
        relations,
        clocks,
        types=relations.types(),
        last=incremental_step(entry.maintenance),
        prefix=PREFIX,
    )
    return Change(program, relations)
