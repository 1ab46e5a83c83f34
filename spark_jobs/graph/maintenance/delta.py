"""Derives the SQL of an operator's change: rows with a weight, positive for inserted rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from sqlglot import exp

from spark_jobs.graph.functions import reads_clock
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Constant,
    Filter,
    Generate,
    Join,
    LeftJoin,
    Node,
    Project,
    Scan,
    TopK,
    Union,
    Window,
    conjuncts,
    equality,
    scans,
    used,
)
from spark_jobs.graph.maintenance.clauses import (
    aliased,
    join_all,
    left_join,
    next_tied,
    union_all,
)
from spark_jobs.graph.maintenance.extremes import with_extremes
from spark_jobs.graph.maintenance.keys import Keys, right_keys
from spark_jobs.graph.maintenance.relation import WEIGHT, When, Writer, scanned
from spark_jobs.graph.maintenance.scope import named
from spark_jobs.graph.maintenance.states import State
from spark_jobs.graph.maintenance.weights import negated, netted, number
from spark_jobs.graph.maintenance.zeros import signed_columns


@dataclass(frozen=True)
class Step:
    """A named relation that later SQL reads, computed once."""

    name: str
    query: exp.Query


@dataclass(frozen=True)
class StateRead:
    """Aggregate state at the old versions of the tables; later steps may read it.

    Attributes:
        state: the state to read.
        content: the state computed from all rows, if it is not stored.
    """

    state: State
    content: exp.Query


@dataclass(frozen=True)
class StateUpdate:
    """An update of aggregate state from the old versions of the tables to the new ones.

    Attributes:
        state: the state to update.
        update: the new state, computed from the old one and earlier steps; None if it does not
            change.
        change: rows to add to the old state for the same result; None with ``update``, and if the
            state is always rewritten.
    """

    state: State
    update: exp.Query | None = None
    change: exp.Query | None = None


AnyStep = Step | StateRead | StateUpdate


@dataclass
class Deltas:
    """Derives changes, and collects the steps that they read, in order.

    Attributes:
        prefix: prefix of the steps' names.
        kept: states that change, by table.
        types: types of the tables' columns, as far as they are known.
    """

    writer: Writer
    steps: list[AnyStep] = field(default_factory=list)
    prefix: str = "_"
    kept: set[str] = field(default_factory=set)
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def delta(  # noqa: C901, PLR0911 - one case for each operator
        self, node: Node
    ) -> exp.Query | None:
        """The change of an operator: its columns and ``__w``; None if nothing changes."""
        match node:
            case Scan():
                if node.table not in self.writer.tables.changed | self.kept:
                    return None
                relation = self.writer.tables.change(node.table)
                return exp.select(*scanned(node, WEIGHT)).from_(relation)
            case Constant():
                return None
            case Filter():
                return self._filter(node)
            case Project():
                return self._over(node.child, self.writer.outputs(node.outputs, When.NEW))
            case Generate():
                child = self.delta(node.child)
                if child is None:
                    return None
                return self.writer.generate(node, child, When.NEW, WEIGHT)  # type: ignore[arg-type]
            case Join():
                return self._join(node)
            case LeftJoin():
                return self._left_join(node)
            case Union():
                return self._union(node)
            case Aggregate() | Window() | TopK():
                return self._recomputed(node)
            case _:
                assert_never(node)

    def keep(self, state: State) -> None:
        """Add an update of aggregate state, and register its change for later steps."""
        child = state.node.child
        change = self._net_rows(child) if state.has_extremes else self.delta(child)
        tables = self.writer.tables
        content = state.content(self.writer.relation(child, When.OLD))
        self.steps.append(StateRead(state, content))
        if change is None:
            self.steps.append(StateUpdate(state))
            return
        groups = self.step("groups", state.change(change, WEIGHT))
        if state.has_extremes:
            row = with_extremes(self.writer, self.step, state, groups)
            only = exp.select(*map(named, state.columns)).from_(exp.to_table(row))
            self.steps.append(StateUpdate(state, only))
        else:
            added = exp.select(*map(named, state.columns)).from_(exp.to_table(groups))
            merged = state.merged(tables.content(state.table, When.OLD), exp.to_table(groups))
            self.steps.append(StateUpdate(state, merged, added))
        pairs = tuple((named(key), key) for key in state.keys)
        keys = Keys(groups, pairs) if pairs else None
        parts = [
            exp.select(*map(named, state.columns), exp.alias_(number(weight), WEIGHT)).from_(
                aliased(self.writer.relation(state.scan, when, keys), "t")
            )
            for when, weight in ((When.NEW, 1), (When.OLD, -1))
        ]
        self.steps.append(Step(tables.change(state.table).name, union_all(parts)))
        self.kept.add(state.table)

    def affected(self, node: Aggregate | Window, name: str) -> Keys | None:
        """The groups that a change affects, as a step; None if nothing changes.

        Without keys the relation has one row and restricts nothing.
        """
        change = self.net(node.child)
        if change is None:
            return None
        keys = group_keys(node)
        columns = [f"k{index}" for index in range(len(keys))]
        outputs = [
            exp.alias_(self.writer.at(value, When.NEW), column)
            for value, column in zip(keys, columns, strict=True)
        ]
        if not outputs:
            return Keys(change, ())
        query = exp.select(*outputs).distinct().from_(exp.to_table(change))
        relation = self.step(name, query)
        return Keys(
            relation,
            tuple((key.copy(), column) for key, column in zip(keys, columns, strict=True)),
        )

    def net(self, node: Node) -> str | None:
        """The net change of an operator, as a step."""
        change = self.delta(node)
        if change is None:
            return None
        signed = signed_columns(node, self.types)
        return self.step("change", netted(change, node.columns, signed=signed))

    def _net_rows(self, node: Node) -> exp.Query | None:
        """The net change of an operator: no inserted row was deleted again."""
        name = self.net(node)
        if name is None:
            return None
        return exp.select(*map(named, (*node.columns, WEIGHT))).from_(exp.to_table(name))

    def step(self, name: str, query: exp.Query) -> str:
        """Name a relation; the same SQL gets the same name."""
        for one in self.steps:
            if isinstance(one, Step) and one.query == query:
                return one.name
        full = f"{self.prefix}_{name}_{len(self.steps) + 1}"
        self.steps.append(Step(full, query))
        return full

    def _over(self, child: Node, outputs: list[exp.Expr]) -> exp.Select | None:
        change = self.delta(child)
        if change is None:
            return None
        return exp.select(*outputs, named(WEIGHT)).from_(aliased(change, "t"), copy=False)

    def _filter(self, node: Filter) -> exp.Query | None:
        writer = self.writer
        parts: list[exp.Query] = []
        rows = self._over(node.child, [*map(named, node.columns)])
        if rows is not None:
            parts.append(rows.where(writer.at(node.condition, When.NEW), copy=False))
        if reads_clock(node.condition):
            # Old rows that enter or leave the result because time has passed.
            new = writer.at(node.condition, When.NEW)
            old = writer.at(node.condition, When.OLD)
            for weight, inside, outside in ((1, new, old), (-1, old, new)):
                false = exp.Coalesce(this=outside.copy(), expressions=[exp.false()])
                parts.append(
                    exp.select(*map(named, node.columns), exp.alias_(number(weight), WEIGHT))
                    .from_(aliased(writer.relation(node.child, When.OLD), "t"))
                    .where(inside.copy(), exp.Not(this=false))
                )
        return union_all(parts) if parts else None

    def _join(self, node: Join) -> exp.Query | None:
        parts: list[exp.Query] = []
        for at, one in enumerate(node.inputs):
            name = self.net(one)
            if name is None:
                continue
            outputs = (*node.columns, WEIGHT)
            joined = aliased(self._with_others(node, at, name), "t")
            parts.append(exp.select(*map(named, outputs)).from_(joined))
        return union_all(parts) if parts else None

    def _with_others(self, node: Join, at: int, name: str) -> exp.Select:
        """The change of an input joined with the other inputs.

        Before a join with a large table the intermediate change becomes a step: the engine then
        knows that it is small, and broadcasts it instead of shuffling the table.
        """
        columns = (*node.inputs[at].columns, WEIGHT)
        joined = [(columns, exp.select(*map(named, columns)).from_(exp.to_table(name)))]
        left = [
            (other, When.NEW if n < at else When.OLD)
            for n, other in enumerate(node.inputs)
            if n != at
        ]
        pending = list(node.conditions)
        while left:
            known = {column for names, _ in joined for column in names}
            ties = next_tied([other.columns for other, _ in left], known, pending)
            other, when = left.pop(ties)
            if len(joined) > 1 and any(map(self.writer.tables.large, scans(other))):
                ready = [one for one in pending if used(one) <= known]
                pending = [one for one in pending if one not in ready]
                columns = tuple(column for names, _ in joined for column in names)
                name = self.step("joined", join_all(joined, ready))
                joined = [(columns, exp.select(*map(named, columns)).from_(exp.to_table(name)))]
            joined.append((other.columns, self.writer.relation(other, when)))
        return join_all(joined, pending)

    def _left_join(self, node: LeftJoin) -> exp.Query | None:
        parts: list[exp.Query] = []
        left = self.net(node.left)
        if left is not None:
            parts.append(self._unmatched_left(node, left, When.NEW))
        right = self.net(node.right)
        if right is not None:
            rows = self.writer.relation(node.left, When.OLD, self._touching(node, right))
            columns = [exp.column(name, table="l") for name in node.left.columns]
            touched = (
                exp.select(*columns, exp.alias_(number(1), WEIGHT))
                .from_(aliased(rows, "l"))
                .join(
                    exp.to_table(right).as_("r"),
                    on=self.writer.at(node.condition, When.NEW),
                    join_type="left semi",
                )
            )
            name = self.step("touched", touched)
            parts.append(self._unmatched_left(node, name, When.NEW))
            parts.append(negated(self._unmatched_left(node, name, When.OLD), node.columns))
        return union_all(parts) if parts else None

    def _unmatched_left(self, node: LeftJoin, left: str, when: When) -> exp.Query:
        """Weighted rows of the left side, with the right side before or after the change."""
        keys = right_keys(
            node, Keys(left, tuple((named(name), name) for name in self._matched(node)))
        )
        right = self.writer.relation(node.right, when, keys)
        rows = exp.select(*map(named, (*node.left.columns, WEIGHT))).from_(exp.to_table(left))
        return left_join(node, rows, right, self.writer.at(node.condition, when), WEIGHT)

    def _touching(self, node: LeftJoin, right: str) -> Keys | None:
        """Keys of left rows that a change of the right side may match, from equality conditions."""
        if isinstance(node.left, Scan):
            # Joining with the change itself restricts the scan as much.
            return None
        pairs = []
        for left, other in filter(None, map(equality, conjuncts(node.condition))):
            for mine, its in ((left, other), (other, left)):
                if mine in node.left.columns and its in node.right.columns:
                    pairs.append((named(mine), its))
        return Keys(right, tuple(pairs)) if pairs else None

    def _matched(self, node: LeftJoin) -> list[str]:
        """Columns of the left side that the condition equates with one of the right side."""
        found = [pair for one in conjuncts(node.condition) if (pair := equality(one))]
        names = [name for pair in found for name in pair if name in node.left.columns]
        return list(dict.fromkeys(names))

    def _union(self, node: Union) -> exp.Query | None:
        parts: list[exp.Query] = []
        changes = False
        for one in node.inputs:
            outputs: list[exp.Expr] = [
                exp.alias_(named(at), name)
                for name, at in zip(node.columns, one.columns, strict=True)
            ]
            change = self._over(one, outputs)
            changes = changes or change is not None
            if change is None and not node.alike:
                # No rows, so that those of the other inputs get the types of the union.
                old = aliased(self.writer.relation(one, When.OLD), "t")
                none = exp.select(*outputs, exp.alias_(number(1), WEIGHT)).from_(old, copy=False)
                change = none.where(exp.false(), copy=False)
            if change is not None:
                parts.append(change)
        return union_all(parts) if changes else None

    def _recomputed(self, node: Aggregate | Window | TopK) -> exp.Query | None:
        """Delete the affected groups' old rows, and insert their new ones."""
        keys = None
        if isinstance(node, TopK):
            if self.net(node.child) is None:
                return None
        else:
            keys = self.affected(node, "groups")
            if keys is None:
                return None
        parts = [
            self._weighted(node, When.NEW, keys, 1),
            self._weighted(node, When.OLD, keys, -1),
        ]
        return union_all(parts)

    def _weighted(
        self, node: Aggregate | Window | TopK, when: When, keys: Keys | None, weight: int
    ) -> exp.Query:
        writer = self.writer
        match node:
            case Aggregate():
                child = writer.relation(node.child, when, keys)
                query = writer.aggregate(node, child, when)
            case Window():
                query = writer.window(node, writer.relation(node.child, when, keys), when)
            case TopK():
                query = writer.relation(node, when)
        return exp.select(*map(named, node.columns), exp.alias_(number(weight), WEIGHT)).from_(
            aliased(query, "t")
        )


def group_keys(node: Aggregate | Window) -> tuple[exp.Expr, ...]:
    """The expressions that define a row's group."""
    if isinstance(node, Window):
        return node.partition
    return tuple(value for _, value in node.row_keys)
