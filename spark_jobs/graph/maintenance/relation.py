"""Writes the SQL of an operator's content before or after a change, optionally for some keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sqlglot import exp

from spark_jobs.graph.clock import freeze_clock
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.functions import reads_clock
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Constant,
    Filter,
    Generate,
    Join,
    LeftJoin,
    Named,
    Node,
    Project,
    Scan,
    TopK,
    Union,
    Window,
)
from spark_jobs.graph.maintenance.clauses import (
    aliased,
    join_all,
    left_join,
    selected,
    union_all,
)
from spark_jobs.graph.maintenance.keys import (
    Keys,
    plain,
    reaching,
    rename,
    restricted,
    right_keys,
    split,
)
from spark_jobs.graph.maintenance.scope import named

WEIGHT = "__w"
# The column of aggregate state with the number of rows.
COUNT = "n"


class When(StrEnum):
    """Before or after the change."""

    OLD = "old"
    NEW = "new"


class Tables(Protocol):
    """Resolves the tables of a program to relations."""

    @property
    def changed(self) -> frozenset[str]:
        """The tables that changed."""

    def content(self, table: str, when: When) -> exp.Table:
        """A table at its version before or after."""

    def change(self, table: str) -> exp.Table:
        """The inserted and deleted rows of a table, with a weight of 1 or -1 in ``__w``."""

    def published(self) -> exp.Table:
        """The view's table before the change."""

    def large(self, table: str) -> bool:
        """Whether shuffling the table is more expensive than a separate query."""

    def part_types(self, table: str) -> Mapping[str, str] | None:
        """Column types by name, if the table is aggregate state stored in parts; otherwise None."""


@dataclass(frozen=True)
class Writer:
    """Writes the relations of a refresh.

    Attributes:
        clocks: values of CURRENT_TIMESTAMP before and after; empty if the query does not read it.
    """

    tables: Tables
    clocks: Mapping[When, datetime]

    def at(self, expression: exp.Expr, when: When) -> exp.Expr:
        """An expression with the clock replaced by a literal."""
        if not reads_clock(expression):
            return expression.copy()
        return parse(freeze_clock(to_sql(expression), self.clocks[when]))

    def outputs(self, outputs: Iterable[Named], when: When) -> list[exp.Expr]:
        """Expressions with their names, as of a time."""
        return [exp.alias_(self.at(value, when), name, copy=False) for name, value in outputs]

    def relation(  # noqa: C901, PLR0911, PLR0912 - one case for each operator
        self, node: Node, when: When, keys: Keys | None = None
    ) -> exp.Select:
        """The rows of an operator; with keys, only those that match."""
        match node:
            case Scan():
                return self._scan(node, when, keys)
            case Constant():
                query = exp.select(*map(named, node.columns)).from_(aliased(node.query, "t"))
                return restricted(query, node.columns, keys)
            case Filter():
                query = self.select(node.child, when, keys)
                return query.where(self.at(node.condition, when), copy=False)
            case Project():
                return self._project(node, when, keys)
            case Generate():
                below, rest = split(keys, node.child.columns)
                return restricted(
                    self.generate(node, self.relation(node.child, when, below), when),
                    node.columns,
                    rest,
                )
            case Join():
                return self._join(node, when, keys)
            case LeftJoin():
                return self._left_join(node, when, keys)
            case Aggregate():
                return self._aggregate(node, when, keys)
            case Union():
                return self._union(node, when, keys)
            case Window():
                return self._window(node, when, keys)
            case TopK():
                child = self.select(node.child, when)
                child.set("order", exp.Order(expressions=[one.copy() for one in node.order]))
                if node.limit is not None:
                    child = child.limit(node.limit.copy(), copy=False)
                if node.offset is not None:
                    child = child.offset(node.offset.copy(), copy=False)
                return restricted(child, node.columns, keys)

    def select(self, node: Node, when: When, keys: Keys | None = None) -> exp.Select:
        """All columns of an operator, as a SELECT to be extended."""
        relation = aliased(self.relation(node, when, keys), "t")
        return exp.select(*selected(node.columns)).from_(relation, copy=False)

    def generate(self, node: Generate, child: exp.Select, when: When, *more: str) -> exp.Select:
        """LATERAL VIEW over a child's rows."""
        lateral = exp.Lateral(
            this=self.at(node.generator, when),
            view=True,
            outer=node.outer,
            alias=exp.TableAlias(
                this=exp.to_identifier("g"),
                columns=[exp.to_identifier(name) for name in node.generated],
            ),
        )
        query = exp.select(*map(named, (*node.columns, *more))).from_(aliased(child, "t"))
        query.set("laterals", [lateral])
        return query

    def _scan(self, node: Scan, when: When, keys: Keys | None) -> exp.Select:
        query = exp.select(*scanned(node)).from_(self.tables.content(node.table, when))
        types = self.tables.part_types(node.table)
        if types is None or node.key is None:
            return restricted(query, node.columns, keys)
        # Restrict before summing up parts.
        below, rest = split(keys, tuple(node.key))
        parts = restricted(query, node.columns, below)
        added = whole_groups(node, parts, types)
        return restricted(added, node.columns, keys if rest else None)

    def _project(self, node: Project, when: When, keys: Keys | None) -> exp.Select:
        if keys is None:
            child = aliased(self.relation(node.child, when), "t")
            return exp.select(*self.outputs(node.outputs, when)).from_(child, copy=False)
        values = dict(node.outputs)
        below: list[tuple[exp.Expr, str]] = []
        above: list[tuple[exp.Expr, str]] = []
        for one, key in keys.pairs:
            value = values.get(one.name) if isinstance(one, exp.Column) else None
            if isinstance(value, exp.Column):
                below.append((value, key))
            else:
                above.append((one, key))
        pushed = Keys(keys.relation, tuple(below))
        child = aliased(self.relation(node.child, when, pushed), "t")
        query = exp.select(*self.outputs(node.outputs, when)).from_(child, copy=False)
        # The keys pushed down may let more rows through than all keys together.
        return restricted(query, node.columns, keys) if above else query

    def _join(self, node: Join, when: When, keys: Keys | None) -> exp.Select:
        conditions = [self.at(one, when) for one in node.conditions]
        if keys is None:
            inputs = [(one.columns, self.relation(one, when)) for one in node.inputs]
            return join_all(inputs, conditions)
        parts = [reaching(keys, node.conditions, one.columns) for one in node.inputs]
        inputs = [
            (one.columns, self.relation(one, when, part))
            for one, part in zip(node.inputs, parts, strict=True)
        ]
        query = join_all(inputs, conditions)
        return query if any(map(keys.are_in, parts)) else restricted(query, node.columns, keys)

    def _left_join(self, node: LeftJoin, when: When, keys: Keys | None) -> exp.Select:
        below, rest = split(keys, node.left.columns)
        left = self.relation(node.left, when, below)
        right = self.relation(node.right, when, right_keys(node, below))
        query = left_join(node, left, right, self.at(node.condition, when))
        return restricted(query, node.columns, keys if rest else None)

    def _aggregate(self, node: Aggregate, when: When, keys: Keys | None) -> exp.Select:
        by_name = dict(node.row_keys)
        below: list[tuple[exp.Expr, str]] = []
        above: list[tuple[exp.Expr, str]] = []
        for one, key in keys.pairs if keys else ():
            value = by_name.get(one.name) if isinstance(one, exp.Column) else None
            (above if value is None else below).append((one if value is None else value, key))
        pushed = Keys(keys.relation, tuple(below)) if keys else None
        return restricted(
            self.aggregate(node, self.relation(node.child, when, pushed), when),
            node.columns,
            keys if above else None,
        )

    def aggregate(self, node: Aggregate, child: exp.Select, when: When) -> exp.Select:
        """The groups of a child's rows."""
        outputs = self.outputs((*node.keys, *node.aggregates), when)
        query = exp.select(*outputs).from_(aliased(child, "t"), copy=False)
        return query.group_by(*(self.at(value, when) for _, value in node.keys), copy=False)

    def _union(self, node: Union, when: When, keys: Keys | None) -> exp.Select:
        columns = node.columns
        # An expression may have another value before the union widens the types of its columns.
        below = keys if keys is None or node.alike else plain(keys)
        parts = []
        for one in node.inputs:
            renamed = dict(zip(columns, one.columns, strict=True))
            parts.append(
                exp.select(*(exp.alias_(named(at), name) for name, at in renamed.items())).from_(
                    aliased(self.relation(one, when, rename(below, renamed)), "t")
                )
            )
        query = exp.select(*map(named, columns)).from_(aliased(union_all(parts), "t"))
        return query if below == keys else restricted(query, columns, keys)

    def _window(self, node: Window, when: When, keys: Keys | None) -> exp.Select:
        partition = {one.name for one in node.partition if isinstance(one, exp.Column)}
        below, rest = split(keys, tuple(partition))
        return restricted(
            self.window(node, self.relation(node.child, when, below), when),
            node.columns,
            keys if rest else None,
        )

    def window(self, node: Window, child: exp.Select, when: When) -> exp.Select:
        """The window functions over a child's rows."""
        columns: list[exp.Expr] = [*map(named, node.child.columns)]
        return exp.select(*columns, *self.outputs(node.functions, when)).from_(
            aliased(child, "t"), copy=False
        )


def whole_groups(node: Scan, parts: exp.Query, types: Mapping[str, str]) -> exp.Select:
    """Sum up the parts of aggregate state by key; empty groups are dropped.

    Args:
        node: the aggregate state.
        parts: rows of the state.
        types: column types by name in the table; a sum may have a wider type.
    """
    keys = [name for name in node.columns if node.key and name in node.key]
    sums = [
        exp.alias_(exp.cast(exp.Sum(this=named(name)), types[old]), f"{name}_all")
        for name, old in node.names
        if name not in keys
    ]
    query = exp.select(*map(named, keys), *sums).from_(aliased(parts, "t"), copy=False)
    query = query.group_by(*map(named, keys), copy=False)
    columns = [
        named(one) if one in keys else exp.alias_(named(f"{one}_all"), one) for one in node.columns
    ]
    count = next(name for name, old in node.names if old == COUNT)
    empty = exp.EQ(this=named(f"{count}_all"), expression=exp.Literal.number(0))
    whole = exp.select(*columns).from_(aliased(query, "t"), copy=False)
    # Without keys there is always one group.
    return whole.where(exp.Not(this=empty), copy=False) if keys else whole


def scanned(node: Scan, *more: str) -> list[exp.Expr]:
    """The columns of a table under their names in the tree."""
    columns: list[exp.Expr] = [exp.alias_(named(old), new) for new, old in node.names]
    columns += map(named, more)
    return columns or selected(())
