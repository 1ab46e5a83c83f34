"""Runs the program of an incremental refresh on an engine, and writes its aggregate state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spark_jobs.gold.compute.aggregate_state import (
    append_groups,
    takes,
    write_groups,
    written_groups,
)
from spark_jobs.gold.compute.increment import Change
from spark_jobs.gold.compute.protocol import Engine, Prepared
from spark_jobs.gold.compute.relations import Relations
from spark_jobs.graph.maintenance.delta import AnyStep, StateRead, StateUpdate
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.names import TableVersion
from spark_jobs.planning.work import WorkItem
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage.rows import Rows

_States = Mapping[str, TableVersion]
# Runs a step for an attempt; returns the versions of the aggregate state that it wrote.
_Step = Callable[[WorkItem], _States]


@dataclass(frozen=True)
class StagedChange:
    """The result of an incremental refresh.

    Attributes:
        rows: the view's columns and ``__operation``: ``leaves`` deletes all copies of a row,
            ``enters`` inserts one. Readable while the engine is open.
        states: the versions of the aggregate state that belong to this result.
        counted: whether aggregate state had to be computed from all rows.
        engine: name of the engine that computed it.
    """

    rows: Rows
    states: _States
    counted: bool
    engine: str


def run(change: Change, engine: Engine, work: WorkItem) -> StagedChange:
    """Compute the rows to delete and to insert, and update the aggregate state.

    All steps are prepared before one runs: an unsupported step fails before any write.

    Raises:
        NotTranslatedError: this engine cannot compute the refresh. State that it has written
            belongs to no publication and is ignored.
        TableMovedError: another process wrote aggregate state at the same time.
    """
    return prepared(change, engine, work.view)(work)


def prepared(change: Change, engine: Engine, view: str) -> Callable[[WorkItem], StagedChange]:
    """Prepare all steps, without computing a row.

    Returns:
        a function that runs them for an attempt.

    Raises:
        NotTranslatedError: this engine cannot compute the refresh.
    """
    program, relations = change.program, change.relations
    published = relations.published().name
    for name, (location, version) in relations.contents.items():
        engine.table(name, location, version)
    for table in sorted(relations.changed):
        one = relations.ranges[table]
        name, location = relations.change(table).name, relations.location(table)
        engine.changes(name, location, after=one.before.version, upto=one.after.version)
    steps = [_prepared(step, engine, relations) for step in program.steps]
    rows = engine.change(program.change, view=view, published=published, step=program.last)
    updates = [one for one in program.steps if isinstance(one, StateUpdate)]
    counted = any(relations.groups(one.state.table).known is None for one in updates)

    def run_steps(work: WorkItem) -> StagedChange:
        states: dict[str, TableVersion] = {}
        for step in steps:
            states |= step(work)
        return StagedChange(rows(), states, counted, engine.name)

    return run_steps


def _prepared(step: AnyStep, engine: Engine, relations: Relations) -> _Step:
    match step:
        case StateRead():
            compute = _read(step, engine, relations)
        case StateUpdate():
            return _update(step, engine, relations)
        case _:
            compute = engine.computed(step.name, step.query)

    def run_step(work: WorkItem) -> _States:
        del work
        compute()
        return {}

    return run_step


def _read(step: StateRead, engine: Engine, relations: Relations) -> Prepared[None]:
    """Register aggregate state as it was."""
    table = step.state.table
    old, groups = relations.content(table, When.OLD).name, relations.groups(table)
    if groups.known is None:
        return engine.computed(old, step.content, large=True)
    engine.table(old, groups.location, groups.known.version)
    return lambda: None


def _update(step: StateUpdate, engine: Engine, relations: Relations) -> _Step:
    """Register aggregate state as it will be, and write it if it changes."""
    table = step.state.table
    old, new = (relations.content(table, when).name for when in (When.OLD, When.NEW))
    groups = relations.groups(table)
    # Until the new state is written, its name is an alias of the old one.
    unchanged = engine.same(new, old)
    update, change = (
        None if query is None else engine.typed(query, like=old)
        for query in (step.update, step.change)
    )

    def run_update(work: WorkItem) -> _States:
        if update is None:
            unchanged()
            return {} if groups.known is None else {table: groups.known}
        if change is not None and takes(groups, work):
            append_groups(groups, change(), work)
        else:
            write_groups(groups, update(), work)
        failpoint("gold.stage.groups_written")
        written = written_groups(groups.location, work)
        engine.table(new, groups.location, written.version)
        return {table: written}

    return run_update
