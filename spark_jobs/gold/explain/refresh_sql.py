"""The SQL of a refresh as SELECT statements that anyone can run."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.gold.compute.increment import program_of
from spark_jobs.gold.compute.pinned import pinned_sql
from spark_jobs.gold.compute.relations import Relations
from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.publications import latest_publication
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.maintenance.delta import StateUpdate
from spark_jobs.graph.maintenance.relation import WEIGHT, When
from spark_jobs.graph.sql import Query, Relation, delta_relation, text_literal
from spark_jobs.planning.decision import Incremental
from spark_jobs.planning.plan import RefreshPlan


@dataclass(frozen=True)
class Statement:
    """One statement of a refresh.

    Attributes:
        comment: what it computes, in one line.
        name: the temporary view that later statements read; None for the last statement.
        query: a SELECT.
    """

    comment: str
    name: str | None
    query: str

    @property
    def text(self) -> str:
        """The statement with its comment."""
        head = "" if self.name is None else f"CREATE OR REPLACE TEMPORARY VIEW {self.name} AS\n"
        return f"-- {self.comment}\n{head}{self.query};"


def refresh_sql(context: GoldContext, plan: RefreshPlan) -> list[Statement]:
    """The statements of a plan: its incremental program, or the view's SQL at pinned versions.

    Raises:
        ViewUnknownError: the project has no such view.
        BaseMovedError: another publication was committed after the plan.
    """
    entry = context.entry(plan.view)
    base = latest_publication(context.published_at(plan.view))
    if base is None or not isinstance(plan.decision, Incremental):
        query = pinned_sql(context, entry, vector=plan.vector, clock=plan.clock)
        return [Statement("the view, with its tables at their versions", None, query)]
    program, relations = program_of(context, entry, vector=plan.vector, clock=plan.clock, base=base)
    statements = [_change_of(relations, table) for table in sorted(relations.changed)]
    for step in program.steps:
        if isinstance(step, StateUpdate):
            statements += _aggregate_state(relations, step)
        else:
            statements.append(Statement(_meaning(step.name), step.name, _pretty(step.query)))
    if program.change is None:
        published = _everything(delta_relation(context.published_at(plan.view), base.version))
        comment = "nothing of what changed bears on the view: no row is deleted or inserted"
        return [*statements, Statement(comment, None, f"{published} WHERE FALSE")]
    key = ", ".join(entry.maintenance.key) if entry.maintenance is not None else ""
    how = f"merged by {key}" if key else "merged as multisets"
    comment = (
        f"the rows to delete (-) from and insert (+) into gold.{plan.view}@{base.version}, {how}"
    )
    return [*statements, Statement(comment, None, _pretty(program.change))]


def _meaning(step: str) -> str:
    """What a step of a program computes, by the word in its name."""
    words = step.removeprefix("__refresh_").split("_")
    match words[0]:
        case "change":
            return "what changed below the next operator, without what cancels out"
        case "groups":
            return "the groups that the change touches"
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


def _aggregate_state(relations: Relations, step: StateUpdate) -> list[Statement]:
    name = step.state.table
    groups = relations.groups(name)
    old = relations.content(name, When.OLD).name
    if groups.known is not None:
        parts = "parts of the aggregate state" if groups.in_parts else "the aggregate state"
        query = _everything(delta_relation(groups.location, groups.known.version))
        before = Statement(f"{parts} {name} before", old, query)
    else:
        query = _pretty(step.content)
        before = Statement(f"the aggregate state {name} before, from nothing", old, query)
    new = relations.content(name, When.NEW).name
    if step.update is None:
        return [before, Statement(f"{name} does not change", new, f"SELECT * FROM {old}")]
    comment = f"{name} after; a refresh writes them to a version of their own"
    return [before, Statement(comment, new, _pretty(step.update))]


def _everything(relation: Relation) -> str:
    return f"SELECT * FROM {to_sql(relation)}"


def _pretty(query: Query) -> str:
    return to_sql(query, pretty=True)
