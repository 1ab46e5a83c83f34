"""The SQL of a refresh: SELECT statements that anyone can run, and what publishing commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.base.publications import Publication, latest_publication
from spark_jobs.gold.compute.increment import change_of
from spark_jobs.gold.compute.pinned import pinned_sql
from spark_jobs.gold.compute.ranges import range_condition
from spark_jobs.gold.compute.relations import PREFIX, Relations
from spark_jobs.gold.explain.publish_sql import RESULT, Publish, publish_sql
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.maintenance.delta import StateRead, StateUpdate
from spark_jobs.graph.maintenance.relation import WEIGHT, When
from spark_jobs.graph.sql import Query, Relation, delta_relation, text_literal
from spark_jobs.planning.decision import Full, Incremental, Promotion, Range, Rollback, Skip
from spark_jobs.planning.last_step import last_step
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.ranges import RowRange
from spark_jobs.storage import log
from spark_jobs.storage.columns import quoted


@dataclass(frozen=True)
class Statement:
    """One statement of a refresh.

    Attributes:
        comment: what it computes, in one line.
        name: the temporary view that later statements read.
        query: a SELECT.
    """

    comment: str
    name: str
    query: str

    @property
    def text(self) -> str:
        """The statement with its comment."""
        head = f"CREATE OR REPLACE TEMPORARY VIEW {self.name} AS"
        return f"-- {self.comment}\n{head}\n{self.query};"


@dataclass(frozen=True)
class RefreshSql:
    """The SQL of a refresh.

    Attributes:
        statements: the last one computes the result: all rows, or the change.
        publish: how the result gets into the published table; None if the refresh is skipped.
    """

    statements: tuple[Statement, ...]
    publish: Publish | None

    @property
    def result(self) -> Statement:
        """The statement that computes the result."""
        return self.statements[-1]

    @property
    def text(self) -> str:
        """A script that shows the result and writes no table."""
        parts = [*(one.text for one in self.statements), f"SELECT * FROM {RESULT};"]
        return "\n\n".join(parts if self.publish is None else [*parts, self.publish.text])


def refresh_sql(context: GoldContext, plan: RefreshPlan) -> RefreshSql:
    """The SQL of a plan, with every table at its version.

    Raises:
        ViewUnknownError: the project has no such view.
        BaseMovedError: another publication was committed after the plan.
    """
    match plan.decision:
        case Skip():
            return RefreshSql((_whole(context, plan),), None)
        case Incremental():
            return _incremental(context, plan, _base(context, plan))
        case Range(rows=rows):
            base = _base(context, plan)
            result = _of_range(context, plan, rows, base)
            return RefreshSql((result,), _published(context, plan, base.version))
        case Full() | Rollback() | Promotion():
            return RefreshSql((_whole(context, plan),), _published(context, plan, None))
        case _:
            assert_never(plan.decision)


def _base(context: GoldContext, plan: RefreshPlan) -> Publication:
    base = latest_publication(context.published_at(plan.view))
    if base is None:
        raise BaseMovedError(plan.view, "nothing is published any more")
    return base


def _published(context: GoldContext, plan: RefreshPlan, base: int | None) -> Publish:
    entry = context.entry(plan.view)
    return publish_sql(context, entry, last_step(plan.decision, entry.maintenance), base=base)


def _whole(context: GoldContext, plan: RefreshPlan) -> Statement:
    comment = "the view, with its tables at their versions"
    return Statement(comment, RESULT, _pinned(context, plan))


def _pinned(context: GoldContext, plan: RefreshPlan) -> str:
    entry = context.entry(plan.view)
    return pinned_sql(context, entry, vector=plan.vector, clock=plan.clock)


def _of_range(
    context: GoldContext, plan: RefreshPlan, rows: RowRange, base: Publication
) -> Statement:
    """The rows of a range whose number of copies differs from the published one."""
    location = context.published_at(plan.view)
    published = to_sql(delta_relation(location, base.version))
    names = ", ".join(quoted(one.name) for one in log.schema(location, base.version))
    where = f"WHERE {range_condition(rows, rows.time)}"
    query = (
        f"SELECT {names}, SUM({WEIGHT}) AS {WEIGHT}\nFROM (\n"
        f"SELECT {names}, 1 AS {WEIGHT}\nFROM (\n{_pinned(context, plan)}\n) AS v\n{where}\n"
        f"UNION ALL\nSELECT {names}, -1 AS {WEIGHT}\nFROM {published} AS v\n{where}\n"
        f") AS t\nGROUP BY {names}\nHAVING SUM({WEIGHT}) <> 0"
    )
    comment = f"{rows}: to delete (-) from and insert (+) into gold.{plan.view}@{base.version}"
    return Statement(comment, RESULT, query)


def _incremental(context: GoldContext, plan: RefreshPlan, base: Publication) -> RefreshSql:
    entry = context.entry(plan.view)
    change = change_of(context, entry, vector=plan.vector, clock=plan.clock, base=base)
    program, relations = change.program, change.relations
    statements = [_change_of(relations, table) for table in sorted(relations.changed)]
    for step in program.steps:
        match step:
            case StateRead():
                statements.append(_state_before(relations, step))
            case StateUpdate():
                statements.append(_state_after(relations, step))
            case _:
                statements.append(Statement(_meaning(step.name), step.name, _pretty(step.query)))
    if program.change is None:
        published = _everything(delta_relation(context.published_at(plan.view), base.version))
        comment = "nothing of what changed bears on the view: no row is deleted or inserted"
        query = f"{published} WHERE FALSE"
    else:
        comment = f"the rows to delete (-) from and insert (+) into gold.{plan.view}@{base.version}"
        query = _pretty(program.change)
    publish = publish_sql(
        context, entry, program.last, base=base.version, empty=program.change is None
    )
    return RefreshSql((*statements, Statement(comment, RESULT, query)), publish)


def _meaning(step: str) -> str:
    """What a step of a program computes, by the word in its name."""
    words = step.removeprefix(f"{PREFIX}_").split("_")
    match words[0]:
        case "change":
            return "what changed below the next operator, without what cancels out"
        case "groups":
            return "the groups that the change touches"
        case "compared":
            return "counts, sums and extremes, as far as the stored ones and the change show them"
        case "deleted":
            return "a row if a stored extreme may have been deleted"
        case "extremes":
            return "the same; an extreme that may have been deleted is found among all rows"
        case "touched":
            return "rows of a join's left side that changes of its right side touch"
        case "state":
            return f"what changed in the aggregate state state.{words[1]}"
        case _:
            return step


def _change_of(relations: Relations, table: str) -> Statement:
    one = relations.ranges[table]
    location = relations.content(table, When.NEW).name
    came = "_change_type IN ('insert', 'update_postimage')"
    return Statement(
        f"what changed in {table} after version {one.before.version}, up to {one.after.version}",
        relations.change(table).name,
        f"SELECT *, IF({came}, 1, -1) AS {WEIGHT}\n"
        f"FROM TABLE_CHANGES_BY_PATH({text_literal(location)}, "
        f"{one.before.version + 1}, {one.after.version})",
    )


def _state_before(relations: Relations, step: StateRead) -> Statement:
    name = step.state.table
    groups = relations.groups(name)
    old = relations.content(name, When.OLD).name
    if groups.known is None:
        query = _pretty(step.content)
        return Statement(f"the aggregate state {name} before, from nothing", old, query)
    parts = "parts of the aggregate state" if groups.in_parts else "the aggregate state"
    query = _everything(delta_relation(groups.location, groups.known.version))
    return Statement(f"{parts} {name} before", old, query)


def _state_after(relations: Relations, step: StateUpdate) -> Statement:
    name = step.state.table
    old, new = (relations.content(name, when).name for when in (When.OLD, When.NEW))
    if step.update is None:
        return Statement(f"{name} does not change", new, f"SELECT * FROM {old}")
    comment = f"{name} after; a refresh writes them to a version of their own"
    return Statement(comment, new, _pretty(step.update))


def _everything(relation: Relation) -> str:
    return f"SELECT * FROM {to_sql(relation)}"


def _pretty(query: Query) -> str:
    return to_sql(query, pretty=True)
