"""Aggregate state: stored sums, counts and extremes per group, to which changes are added.

COUNT, SUM and AVG of exact types can be maintained without reading a group's rows, and MIN and MAX
unless the stored extreme may have been deleted: Mumick, Quass and Mumick, "Maintenance of Data
Cubes and Summary Tables in a Warehouse", 1997. Each sum has a count of its non-NULL values, because
the sum of no values is NULL and not 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Constant,
    Identity,
    Join,
    LeftJoin,
    Named,
    Node,
    Project,
    Scan,
    TopK,
    Union,
    identity,
    scans,
)
from spark_jobs.graph.maintenance.clauses import aliased, each_copy, union_all
from spark_jobs.graph.maintenance.column_types import (
    Types,
    column_types,
    expression_types,
    is_alike,
    is_exact,
    is_ordered,
    of_one_type,
)
from spark_jobs.graph.maintenance.distinct import apart
from spark_jobs.graph.maintenance.eager import eager
from spark_jobs.graph.maintenance.exact_sums import has_exact_mean, has_exact_negative
from spark_jobs.graph.maintenance.relation import COUNT
from spark_jobs.graph.maintenance.scope import named
from spark_jobs.graph.maintenance.terms import STORED, Stored, Term, extremes_of

LAYER = "state"
# Starts the names of columns that an eager aggregation adds.
EAGER = "__eager"
# Added to the number of state that is computed before a join. A release without it has another
# table under the number itself, and all others under the same numbers.
_BEFORE_A_JOIN = 100
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class State:
    """The state of one aggregate operator.

    Attributes:
        table: its table name in a program.
        node: the aggregate.
        terms: the stored columns of its arguments.
    """

    table: str
    node: Aggregate
    terms: tuple[Term, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"k{index}" for index, _ in enumerate(self.node.keys))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table."""
        return (*self.keys, COUNT, *(name for term in self.terms for name in term.columns))

    @property
    def extreme_columns(self) -> tuple[str, ...]:
        """The columns of each MIN and MAX."""
        return tuple(term.column(one) for term in self.terms for one in term.extremes)

    @property
    def has_extremes(self) -> bool:
        """Whether a MIN or MAX is stored; the state then has no keys, and one row."""
        return bool(self.extreme_columns)

    @property
    def scan(self) -> Scan:
        """A scan of the stored groups."""
        return Scan(self.table, tuple((c, c) for c in self.columns), frozenset(self.keys))

    def content(self, child: exp.Query) -> exp.Select:
        """The groups computed from all rows of the child."""
        columns: list[exp.Expr] = [exp.alias_(exp.Count(this=exp.Star(), big_int=True), COUNT)]
        for term in self.terms:
            present = exp.Count(this=term.argument.copy(), big_int=True)
            columns.append(exp.alias_(present, term.present))
            if Stored.SUM in term.stored:
                total = exp.Sum(this=term.argument.copy())
                columns.append(exp.alias_(total, term.column(Stored.SUM)))
            columns += extremes_of(term)
        return self._grouped(child, columns)

    def extremes(self, child: exp.Query) -> exp.Select:
        """The extremes computed from all rows of the child."""
        return self._grouped(child, [one for term in self.terms for one in extremes_of(term)])

    def change(self, child: exp.Query, weight: str) -> exp.Select:
        """The groups of a change; counts and sums may be negative.

        Of the argument of a stored extreme, there are the extremes of the inserted rows (``_in``)
        and of the deleted rows (``_out``).
        """
        one, sign = exp.Literal.number(1), named("__sign")
        copies = each_copy(exp.func("ABS", named(weight)))
        signed = exp.select(
            "*",
            exp.alias_(
                exp.func("IF", named(weight) > 0, one.copy(), exp.Neg(this=one.copy())), "__sign"
            ),
            exp.alias_(copies, "__copy"),
        ).from_(aliased(child, "t"))
        columns: list[exp.Expr] = [exp.alias_(_long(exp.Sum(this=sign.copy())), COUNT)]
        for term in self.terms:
            value = exp.paren(term.argument.copy())
            missing = exp.Is(this=value.copy(), expression=exp.null())
            present = exp.Sum(this=exp.func("IF", missing, exp.Literal.number(0), sign.copy()))
            columns.append(exp.alias_(_long(present), term.present))
            if Stored.SUM in term.stored:
                total = exp.Sum(
                    # Negate inside of SUM: the negative of a type's minimum may overflow.
                    this=exp.func(
                        "IF",
                        sign > 0,
                        value.copy(),
                        exp.Sub(this=exp.Literal.number(0), expression=value.copy()),
                    )
                )
                columns.append(exp.alias_(total, term.column(Stored.SUM)))
            for suffix, side in (("_in", sign > 0), ("_out", sign < 0)):
                rows = exp.func("IF", side, value.copy(), exp.null())
                columns += extremes_of(term, rows, suffix)
        return self._grouped(signed, columns)

    def merged(self, old: exp.Table, change: exp.Table) -> exp.Select:
        """The groups after a change, without extremes; groups without rows are dropped."""
        keys = [*map(named, self.keys)]
        others = {*self.keys, *self.extreme_columns}
        rest = [name for name in self.columns if name not in others]
        both = union_all(
            [exp.select(*map(named, (*self.keys, *rest))).from_(one) for one in (old, change)]
        )
        sums = [exp.alias_(exp.Sum(this=named(name)), f"{name}_new") for name in rest]
        query = exp.select(*keys, *sums).from_(aliased(both, "t"), copy=False)
        query = query.group_by(*map(named, self.keys), copy=False)
        outer = exp.select(
            *map(named, self.keys), *(exp.alias_(named(f"{name}_new"), name) for name in rest)
        ).from_(aliased(query, "t"), copy=False)
        if keys:
            outer = outer.where(
                exp.NEQ(this=named(f"{COUNT}_new"), expression=exp.Literal.number(0)), copy=False
            )
        return outer

    def _grouped(self, child: exp.Query, columns: list[exp.Expr]) -> exp.Select:
        keys = [value for _, value in self.node.keys]
        outputs = [
            exp.alias_(value.copy(), name) for name, value in zip(self.keys, keys, strict=True)
        ]
        query = exp.select(*outputs, *columns).from_(aliased(child, "t"), copy=False)
        return query.group_by(*(value.copy() for value in keys), copy=False)


def is_state(table: str) -> bool:
    """Whether a table of a program is aggregate state."""
    return table.startswith(f"{LAYER}.")


@dataclass
class Cutter:
    """Replaces aggregates by scans of aggregate state, bottom-up.

    Attributes:
        tables: column types of the tables, to know whether sums are exact.
        states: the created states, in the order of computation.
    """

    tables: Mapping[str, Mapping[str, str]]
    states: list[State] = field(default_factory=list)
    _done: dict[int, Node] = field(default_factory=dict)
    _written: dict[int, Node] = field(default_factory=dict)

    def cut(self, node: Node) -> Node:
        """The operator, with aggregates replaced by state where possible."""
        found = self._done.get(id(node))
        if found is None:
            found = self._done[id(node)] = self._cut(node)
            self._written[id(found)] = node
        return found

    def uncut(self, node: Node) -> Node:
        """The original operator of a result of ``cut``."""
        return self._written.get(id(node), node)

    def _cut(self, node: Node) -> Node:
        match node:
            case Scan() | Constant():
                return node
            case Join():
                inputs = tuple(self.cut(one) for one in node.inputs)
                kinds = column_types(node, self.tables)
                return Join(inputs, tuple(of_one_type(one, kinds) for one in node.conditions))
            case Union():
                # The types of stored columns are not among those of the tables.
                alike = node.alike or is_alike(node, self.tables)
                return Union(tuple(self.cut(one) for one in node.inputs), alike)
            case LeftJoin():
                condition = of_one_type(node.condition, column_types(node, self.tables))
                left, right = self.cut(node.left), self.cut(node.right)
                return LeftJoin(left, right, condition, node.side)
            case Aggregate():
                below = replace(node, child=self.cut(node.child))
                return self._eager(node) or self._kept(below) or self._apart(below) or below
            case TopK():
                child = self.cut(node.child)
                kept = all(map(is_state, scans(child)))
                return replace(node, child=child if kept else self._kept_rows(child))
            case _:
                return replace(node, child=self.cut(node.child))

    def _kept_rows(self, child: Node) -> Node:
        """Store the rows themselves, counted, if any of them may become a top row."""
        prefix = f"r{len(self.states)}_"
        keys = tuple((prefix + name, named(name)) for name in child.columns)
        count: Named = (f"{prefix}copies", exp.Count(this=exp.Star(), big_int=True))
        kept = self._kept(Aggregate(child, keys, (count,)))
        if kept is None:
            return child
        copies = each_copy(named(count[0]))
        each = tuple((name, named(key)) for name, (key, _) in zip(child.columns, keys, strict=True))
        repeated = Project(kept, (*each, (f"{prefix}copy", copies)), multiplies=True)
        return Project(repeated, tuple((name, named(name)) for name in child.columns))

    def _eager(self, node: Aggregate) -> Node | None:
        """A grouping above a left join, with the right side's groups as state."""
        prefix = f"{EAGER}{len(self.states)}_"
        found = eager(node, self.tables, prefix)
        if found is None:
            return None
        right = self._kept(
            replace(found.right, child=self.cut(found.right.child)), first=_BEFORE_A_JOIN
        )
        if right is None:
            return None
        return found.joined(replace(found.left, child=self.cut(found.left.child)), right)

    def _apart(self, node: Aggregate) -> Node | None:
        """Without GROUP BY: aggregates of distinct values over state of these values."""
        # Over groups that are stored it is computed from these, as by releases without this rule.
        kept_below = all(map(is_state, scans(node)))
        found = None if kept_below else apart(node, f"d{len(self.states)}_")
        if found is None:
            return None
        before = len(self.states)
        inputs: list[Node] = []
        for part in found:
            of = part.values
            kept = self._kept(part.whole) if of is None else self._of_values(of, part.whole)
            if kept is None:
                del self.states[before:]
                return None
            inputs.append(kept)
        joined = Join(tuple(inputs), ()) if len(inputs) > 1 else inputs[0]
        return Project(joined, tuple((name, named(name)) for name in node.columns))

    def _of_values(self, values: Aggregate, whole: Aggregate) -> Node | None:
        """An aggregate over groups, which are stored."""
        stored = self._kept(values)
        if stored is None:
            return None
        # The types of stored columns are not among those of the tables.
        kinds = column_types(values, self.tables)
        whole = replace(whole, child=stored)
        return self._kept(whole, kinds=kinds) or whole

    def _kept(self, node: Aggregate, first: int = 0, kinds: Types | None = None) -> Node | None:
        if node.sessions or not scans(node):
            return None
        kinds = column_types(node.child, self.tables) if kinds is None else kinds
        terms: dict[Identity, Term] = {}
        outputs: list[Named] = []
        index = len(self.states)
        for name, call in node.aggregates:
            value = _value(call, terms, kinds, f"s{index}_")
            if value is None:
                return None
            outputs.append((name, value))
        state = State(f"{LAYER}.{first + index}", node, tuple(terms.values()))
        if state.has_extremes and (node.keys or all(map(is_state, scans(node)))):
            # Reading the rows of the changed groups costs less than this state.
            return None
        names = tuple((f"s{index}_{column}", column) for column in state.columns)
        keys = [
            (name, named(f"s{index}_{column}"))
            for (name, _), column in zip(node.keys, state.keys, strict=True)
        ]
        self.states.append(state)
        scan = Scan(state.table, names, frozenset(f"s{index}_{key}" for key in state.keys))
        return Project(scan, (*keys, *outputs))


def _value(
    call: exp.Expr, terms: dict[Identity, Term], kinds: Mapping[str, str], prefix: str
) -> exp.Expr | None:
    """An aggregate computed from stored counts and sums; None if they are not enough."""
    plain = _plain(call)
    if plain is None:
        return None
    call, argument = plain
    if argument is None:
        return named(prefix + COUNT)
    stored = STORED.get(type(call))
    kind = _kind(argument, kinds) if isinstance(call, exp.Avg) else ""
    if kind == "bigint":
        # Spark adds these up as DOUBLE, which does not overflow.
        argument = exp.cast(argument, "decimal(20,0)")
    if stored is not None and not _is_stored(call, argument, kinds):
        return None
    which = identity(argument)
    known = terms.get(which) or Term(argument.copy(), len(terms))
    if stored is not None:
        known = replace(known, stored=known.stored | {stored})
    terms[which] = known
    present = named(prefix + known.present)
    if stored is None:
        return present
    value: exp.Expr = named(prefix + known.column(stored))
    if isinstance(call, exp.Avg):
        value = _mean(value, present.copy(), kind)
    none = exp.EQ(this=present, expression=exp.Literal.number(0))
    return exp.func("IF", none, exp.null(), value)


def _is_stored(call: exp.Expr, argument: exp.Expr, kinds: Mapping[str, str]) -> bool:
    """Whether what is stored of an argument of ``STORED`` does not depend on the order of rows."""
    exact = is_exact(argument, kinds)
    match call:
        case exp.Avg():
            return exact and has_exact_mean(_kind(argument, kinds))
        case exp.Sum():
            return exact and has_exact_negative(_kind(argument, kinds))
        case _:
            return exact or is_ordered(_kind(argument, kinds))


def _kind(argument: exp.Expr, kinds: Mapping[str, str]) -> str:
    return expression_types([argument], dict(kinds))[0]


def _plain(call: exp.Expr) -> tuple[exp.Expr, exp.Expr | None] | None:
    """An aggregate with its argument, FILTER included; without an argument it counts rows."""
    condition = None
    if isinstance(call, exp.Filter):
        condition, call = call.expression.this, call.this
    if isinstance(call, exp.CountIf):
        condition = exp.and_(condition, call.this)
        call = exp.Count(this=exp.Star())
    if type(call) not in {exp.Count, *STORED} or call.expressions:
        return None
    argument = call.this
    if isinstance(argument, exp.Distinct):
        return None
    if isinstance(argument, exp.Star):
        if condition is None:
            return call, None
        argument = exp.Literal.number(1)
    if condition is not None:
        argument = exp.func("IF", condition.copy(), argument.copy(), exp.null())
    return call, argument


def _mean(total: exp.Expr, present: exp.Expr, kind: str) -> exp.Expr:
    """AVG as in Spark: decimals get four more digits, integers become doubles."""
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return exp.Div(this=exp.cast(total, "double"), expression=present)
    precision, scale = (int(digits) + 4 for digits in decimal.groups())
    return exp.cast(exp.Div(this=total, expression=present), f"decimal({precision},{scale})")


def _long(value: exp.Expr) -> exp.Expr:
    return exp.cast(value, "bigint")
