"""An incremental refresh without Spark: the same program, computed by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.gold.compute.aggregate_state import (
    append_groups,
    takes,
    write_groups,
    written_groups,
)
from spark_jobs.gold.compute.in_process import database, unless_declined
from spark_jobs.gold.compute.increment import base_of, program_of
from spark_jobs.gold.compute.pinned import check_inputs
from spark_jobs.gold.compute.relations import Relations
from spark_jobs.gold.context import GoldContext
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.queries import Translated
from spark_jobs.graph.duck.remembered import remembered_translation as translated
from spark_jobs.graph.duck.staged import OPERATION, keyed, unkeyed
from spark_jobs.graph.duck.typed import quoted
from spark_jobs.graph.maintenance.delta import StateUpdate, Step
from spark_jobs.graph.maintenance.program import Program
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.names import TableVersion
from spark_jobs.planning.work import WorkItem
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import small
from spark_jobs.storage.duck import Columns, Duck

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ComputedChange:
    """What a refresh computed; see ``increment.StagedChange``.

    Attributes:
        rows: the view's columns and ``__operation``.
        states: the versions of the aggregate state that belong to it.
        counted: whether aggregate state had to be counted from all rows.
    """

    rows: pa.Table
    states: Mapping[str, TableVersion]
    counted: bool


def computed_change(context: GoldContext, work: WorkItem) -> ComputedChange | None:
    """The rows to delete and insert; brings the aggregate state up to date.

    Returns:
        None where Spark is to compute it. Groups that were written then are nobody's.

    Raises:
        BaseMovedError: somebody published in between.
        InputReplacedError: another table lies where the plan pinned one.
        TableMovedError: somebody else wrote aggregate state at the same moment.
    """

    def computed() -> ComputedChange:
        base = base_of(context, work)
        vector = work.vector
        check_inputs(context, work.view, vector)
        program, relations = program_of(
            context,
            context.entry(work.view),
            vector=vector,
            clock=work.clock,
            base=base,
            by_name=True,
            # A connection's names are its own, so that they can be those of the last refresh.
            remembered=True,
        )
        with database(context) as duck:
            return _change(duck, relations, work, program)

    return unless_declined(context, work.view, computed)


def _change(duck: Duck, relations: Relations, work: WorkItem, program: Program) -> ComputedChange:
    """First all of the program is translated, and only then anything is written."""
    published = relations.published()
    _name_tables(duck, relations)
    known = dict(duck.known)
    steps = [_translated(duck, relations, step, known) for step in program.steps]
    types = relations.published_types()
    entry = relations.context.entry(work.view)
    key = entry.maintenance.key if entry.maintenance is not None else ()
    if not small.compared(types, key):
        raise NotTranslatedError("columns that only Spark can compare")
    text = f"SELECT *, '' AS {OPERATION} FROM {quoted(published.name)} WHERE FALSE"
    if program.change is not None:
        change = translated(program.change, known)
        text = keyed(change, types) if key else unkeyed(change, types, published.name)
    states: dict[str, TableVersion] = {}
    for step in steps:
        states |= step.run(duck, relations, work)
    return ComputedChange(duck.fetch(text), states, relations.counted)


def _name_tables(duck: Duck, relations: Relations) -> None:
    for name, (location, version) in relations.contents.items():
        if not duck.content(name, location, version):
            raise NotTranslatedError(f"the files of {location}, which Delta's reader must read")
    for table in sorted(relations.changed):
        one, location = relations.ranges[table], relations.location(table)
        name = relations.change(table).name
        after, upto = one.before.version, one.after.version
        if not duck.changes(name, location, after=after, upto=upto):
            raise NotTranslatedError(f"the changes of {table}, which Delta's reader must read")


@dataclass(frozen=True)
class _Computed:
    """A relation that later steps read."""

    name: str
    query: Translated

    def run(self, duck: Duck, relations: Relations, work: WorkItem) -> dict[str, TableVersion]:
        del relations, work
        duck.compute(self.name, self.query)
        return {}


@dataclass(frozen=True)
class _Kept:
    """Aggregate state.

    Attributes:
        content: the groups from nothing; None where a version of them is known.
        update: all groups after, in the types of the groups; None where they stay.
        change: what is to be added; None with ``update``.
    """

    step: StateUpdate
    content: Translated | None
    update: str | None
    change: str | None

    def run(self, duck: Duck, relations: Relations, work: WorkItem) -> dict[str, TableVersion]:
        table = self.step.state.table
        old, new = (relations.content(table, when).name for when in (When.OLD, When.NEW))
        groups = relations.groups(table)
        if self.content is not None:
            duck.compute(old, self.content)
            relations.counted = True
        if self.update is None or self.change is None:
            duck.same(new, old)
            return {} if groups.known is None else {table: groups.known}
        if takes(groups, work):
            append_groups(groups, duck.fetch(self.change), work)
        else:
            write_groups(groups, duck.fetch(self.update), work)
        failpoint("gold.stage.groups_written")
        written = written_groups(groups.location, work)
        duck.content(new, groups.location, written.version)
        return {table: written}


def _translated(
    duck: Duck, relations: Relations, step: Step | StateUpdate, known: dict[str, Columns]
) -> _Computed | _Kept:
    if isinstance(step, Step):
        query = translated(step.query, known)
        known[step.name.lower()] = dict(query.columns)
        return _Computed(step.name, query)
    table = step.state.table
    old, new = (relations.content(table, when).name for when in (When.OLD, When.NEW))
    groups, content = relations.groups(table), None
    if groups.known is None:
        content = translated(step.content, known)
        known[old.lower()] = dict(content.columns)
    elif duck.content(old, groups.location, groups.known.version):
        known[old.lower()] = duck.known[old.lower()]
    else:
        raise NotTranslatedError(f"the files of {table}, which Delta's reader must read")
    known[new.lower()] = known[old.lower()]
    types = {name: str(kind) for name, kind in known[old.lower()].items()}
    after = (
        None if one is None else translated(one, known).typed_as(types)
        for one in (step.update, step.change)
    )
    return _Kept(step, content, *after)
