"""The maintenance program of a view: the SQL of the change of its published rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from spark_jobs.graph.functions import reads_clock
from spark_jobs.graph.last_step import RowStep
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Constant,
    Filter,
    Node,
    Project,
    TopK,
    Window,
    children,
    expressions,
)
from spark_jobs.graph.maintenance.builder import Built, Outputs
from spark_jobs.graph.maintenance.clauses import aliased, union_all
from spark_jobs.graph.maintenance.delta import (
    AnyStep,
    Deltas,
    StateUpdate,
    Step,
    group_keys,
)
from spark_jobs.graph.maintenance.keys import Keys, restricted
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.maintenance.relation import WEIGHT, Tables, When, Writer
from spark_jobs.graph.maintenance.scope import named
from spark_jobs.graph.maintenance.states import State
from spark_jobs.graph.maintenance.weights import netted, number


@dataclass(frozen=True)
class Program:
    """The SQL of a view's change.

    Attributes:
        steps: relations to compute, and aggregate state to read and to update, in order.
        change: the view's columns and ``__w``: the difference in a row's number of copies, never 0.
            None if the inputs' changes cannot affect the view.
        last: how the change gets into the published table.
    """

    steps: tuple[AnyStep, ...]
    change: exp.Query | None
    last: RowStep

    @property
    def tables(self) -> int:
        """Tables that a refresh reads if its aggregate state is stored, as often as it does."""
        queries = [self.change]
        for step in self.steps:
            match step:
                case Step():
                    queries.append(step.query)
                case StateUpdate():
                    queries.append(step.change or step.update)
        return sum(1 for one in queries if one is not None for _ in one.find_all(exp.Table))


def derive(
    built: Built,
    tables: Tables,
    clocks: Mapping[When, datetime],
    *,
    last: RowStep,
    states: Sequence[State] = (),
    prefix: str = "_",
    types: Mapping[str, Mapping[str, str]] | None = None,
) -> Program:
    """Derive the program of a view for the tables that changed.

    Args:
        built: operators and outputs of the view.
        tables: resolves contents and changes to relations.
        clocks: values of CURRENT_TIMESTAMP before and after; empty if the view does not read it.
        last: how the change gets into the published table.
        states: aggregate state that the operators read, in the order of computation.
        prefix: prefix of the steps' names.
        types: column types, by table and lower-case name, as far as they are known.

    Raises:
        NotIncrementalError: the view reads the clock where no rule supports it.
    """
    root, outputs = built
    check_clock(root)
    deltas = Deltas(Writer(tables, clocks), prefix=prefix, types=types or {})
    for state in states:
        deltas.keep(state)
    change = _of_published(deltas, root, outputs)
    names = tuple(name for name, _ in outputs)
    result = None if change is None else netted(change, names)
    return Program(tuple(deltas.steps), result, last)


def check_clock(node: Node) -> None:
    """Refuse reads of the clock outside of filters.

    Raises:
        NotIncrementalError: an expression other than a filter reads the clock.
    """
    parts = [node.query] if isinstance(node, Constant) else expressions(node)
    for one in () if isinstance(node, Filter) else parts:
        if reads_clock(one):
            text = "the clock is read outside of WHERE and HAVING"
            raise NotIncrementalError(Obstacle.CLOCK_OUTSIDE_WHERE, text, one)
    for child in children(node):
        check_clock(child)


def _of_published(deltas: Deltas, root: Node, outputs: Outputs) -> exp.Query | None:
    """The change; old rows are read from the published table if possible."""
    grouping = _grouping(root)
    if grouping is None:
        change = deltas.delta(root)
        return None if change is None else _called(change, outputs)
    if isinstance(grouping, TopK):
        return None if deltas.net(grouping.child) is None else _exchange(deltas, root, outputs)
    keys = deltas.affected(grouping, "groups")
    if keys is None:
        return None
    visible = _visible(root, grouping, keys, outputs)
    if not visible:
        if group_keys(grouping):
            change = deltas.delta(root)
            return None if change is None else _called(change, outputs)
        return _exchange(deltas, root, outputs)
    by_tree = Keys(keys.relation, tuple((named(at), key) for _, at, key in visible))
    by_name = Keys(keys.relation, tuple((named(name), key) for name, _, key in visible))
    return _exchange(deltas, root, outputs, by_tree, by_name)


def _exchange(
    deltas: Deltas,
    root: Node,
    outputs: Outputs,
    new: Keys | None = None,
    old: Keys | None = None,
) -> exp.Query:
    """Delete rows of the published table, and insert those that the SQL returns now.

    With keys, only rows of these groups; ``new`` in the tree's names, ``old`` in the table's.
    """
    writer = deltas.writer
    names = tuple(name for name, _ in outputs)
    published = exp.select(*map(named, names)).from_(writer.tables.published())
    fresh = writer.relation(root, When.NEW, new)
    return union_all(
        [
            exp.select(
                *(exp.alias_(named(at), name) for name, at in outputs),
                exp.alias_(number(1), WEIGHT),
            ).from_(aliased(fresh, "t")),
            exp.select(*map(named, names), exp.alias_(number(-1), WEIGHT)).from_(
                aliased(restricted(published, names, old), "t")
            ),
        ]
    )


def _called(change: exp.Query, outputs: Outputs) -> exp.Query:
    """A change with the names of the view's columns."""
    columns = [exp.alias_(named(at), name) for name, at in outputs]
    return exp.select(*columns, named(WEIGHT)).from_(aliased(change, "t"))


def _grouping(node: Node) -> Aggregate | Window | TopK | None:
    """The operator that computes rows in groups, if only row-wise ones are above it."""
    while isinstance(node, Project | Filter):
        if isinstance(node, Filter) and reads_clock(node.condition):
            return None
        node = node.child
    return node if isinstance(node, Aggregate | Window | TopK) else None


def _visible(
    root: Node, grouping: Aggregate | Window | TopK, keys: Keys, outputs: Outputs
) -> list[tuple[str, str, str]]:
    """Group keys in the view's output: the view's name, the tree's name, the key's column."""
    at_grouping: dict[str, str] = {}
    if isinstance(grouping, Aggregate):
        columns = [name for name, _ in grouping.row_keys]
    else:
        columns = [one.name if isinstance(one, exp.Column) else "" for one, _ in keys.pairs]
    for column, (_, key) in zip(columns, keys.pairs, strict=True):
        at_grouping[column] = key
    reach = {name: name for name in at_grouping}
    chain: list[Project] = []
    node = root
    while isinstance(node, Project | Filter):
        if isinstance(node, Project):
            chain.append(node)
        node = node.child
    for project in reversed(chain):
        reach = {
            name: reach[value.name]
            for name, value in project.outputs
            if isinstance(value, exp.Column) and value.name in reach
        }
    return [(name, at, at_grouping[reach[at]]) for name, at in outputs if at in reach]
