"""Relational operators. Column names are unique in a tree, so that no operator renames.

Expressions are sqlglot nodes whose columns are those names, without a table.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql

Named = tuple[str, exp.Expr]
Identity = tuple[type[exp.Expr], str]


@dataclass(frozen=True, eq=False)
class Scan:
    """A stored table.

    Attributes:
        table: ``layer.name``.
        names: pairs of a column's name in the tree and in the table.
        key: names of columns that identify a row, if known.
    """

    table: str
    names: tuple[tuple[str, str], ...]
    key: frozenset[str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.names)


@dataclass(frozen=True, eq=False)
class Constant:
    """Rows that do not come from a table."""

    query: exp.Query
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Filter:
    """The rows for which the condition is true."""

    child: Node
    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns


@dataclass(frozen=True, eq=False)
class Project:
    """Expressions over each row; one with ``EXPLODE`` may return several rows."""

    child: Node
    outputs: tuple[Named, ...]
    multiplies: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)


@dataclass(frozen=True, eq=False)
class Generate:
    """LATERAL VIEW: each row with each row that a generator makes of it."""

    child: Node
    generator: exp.Expr
    outer: bool
    generated: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, *self.generated)


@dataclass(frozen=True, eq=False)
class Join:
    """Inner join of any number of inputs; a cross join has no conditions."""

    inputs: tuple[Node, ...]
    conditions: tuple[exp.Expr, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for one in self.inputs for name in one.columns)


class Side(StrEnum):
    """How a left join treats a row of the left input."""

    OUTER = "LEFT"
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"


@dataclass(frozen=True, eq=False)
class LeftJoin:
    """A join whose result depends on each row of the left input."""

    left: Node
    right: Node
    condition: exp.Expr
    side: Side

    @property
    def columns(self) -> tuple[str, ...]:
        if self.side is Side.OUTER:
            return (*self.left.columns, *self.right.columns)
        return self.left.columns


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Grouping. Without keys it always returns one row; without aggregates it removes duplicates.

    Attributes:
        sessions: keys that depend on other rows of the group (``session_window``).
    """

    child: Node
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]
    sessions: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in (*self.keys, *self.aggregates))

    @property
    def row_keys(self) -> tuple[Named, ...]:
        """The keys that depend on a single row."""
        return tuple(one for one in self.keys if one[0] not in self.sessions)


@dataclass(frozen=True, eq=False)
class Union:
    """UNION ALL by position; the columns have the first input's names.

    Attributes:
        alike: whether the columns of all inputs are known to have the same types; SQL widens
            others.
    """

    inputs: tuple[Node, ...]
    alike: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inputs[0].columns


@dataclass(frozen=True, eq=False)
class Window:
    """Window functions of one partitioning, added to the child's columns."""

    child: Node
    partition: tuple[exp.Expr, ...]
    functions: tuple[Named, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, *(name for name, _ in self.functions))


@dataclass(frozen=True, eq=False)
class TopK:
    """ORDER BY with LIMIT or OFFSET."""

    child: Node
    order: tuple[exp.Expr, ...]
    limit: exp.Expr | None
    offset: exp.Expr | None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns


Node = (
    Scan
    | Constant
    | Filter
    | Project
    | Generate
    | Join
    | LeftJoin
    | Aggregate
    | Union
    | Window
    | TopK
)


def children(node: Node) -> tuple[Node, ...]:
    """The inputs of an operator."""
    match node:
        case Scan() | Constant():
            return ()
        case Join() | Union():
            return node.inputs
        case LeftJoin():
            return (node.left, node.right)
        case _:
            return (node.child,)


def expressions(node: Node) -> list[exp.Expr]:
    """The expressions that an operator computes over the rows of its inputs."""
    found: list[exp.Expr] = []
    for value in () if isinstance(node, Constant) else vars(node).values():
        for one in value if isinstance(value, tuple) else (value,):
            part = one[1] if isinstance(one, tuple) else one
            if isinstance(part, exp.Expr):
                found.append(part)
    return found


def scans(node: Node) -> frozenset[str]:
    """The tables that an operator reads."""
    if isinstance(node, Scan):
        return frozenset({node.table})
    return frozenset().union(*(scans(one) for one in children(node)))


def used(expression: exp.Expr) -> frozenset[str]:
    """The columns that an expression reads."""
    return frozenset(column.name for column in expression.find_all(exp.Column))


def identity(expression: exp.Expr) -> Identity:
    """A key that is equal for expressions with the same meaning: class and Spark SQL.

    SQL alone is not enough: it does not distinguish ``ORDER BY k`` from ``k``, and for some nodes
    sqlglot's equality ignores arguments, as in ``SORT_ARRAY(x)`` and ``SORT_ARRAY(x, FALSE)``.
    """
    return type(expression), to_sql(expression)


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that are joined by AND, also those that each side of an OR repeats.

    >>> from spark_jobs.graph.dialect import parse
    >>> [to_sql(one) for one in conjuncts(parse("a = b AND (c OR d)"))]
    ['a = b', 'c OR d']
    >>> [to_sql(one) for one in conjuncts(parse("(a = b AND c) OR (a = b AND d AND e)"))]
    ['a = b', '(c) OR (d AND e)']
    >>> [to_sql(one) for one in conjuncts(parse("(a = b) OR (a = b AND c)"))]
    ['a = b']
    """
    if condition is None:
        return []
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [part for one in condition.flatten() for part in conjuncts(one)]
    return _repeated(condition) if isinstance(condition, exp.Or) else [condition]


def _repeated(condition: exp.Or) -> list[exp.Expr]:
    """An OR whose sides share conditions, as these and the rest; AND distributes over OR."""
    sides = [conjuncts(one) for one in condition.flatten()]
    others = [{identity(part) for part in side} for side in sides[1:]]
    shared = {
        which: part
        for part in sides[0]
        if all((which := identity(part)) in other for other in others)
    }
    if not shared:
        return [condition]
    rests = [[part for part in side if identity(part) not in shared] for side in sides]
    if not all(rests):
        # One side says nothing else, so the OR is true if the shared conditions are.
        return list(shared.values())
    return [
        *shared.values(),
        exp.or_(*(exp.paren(exp.and_(*rest), copy=False) for rest in rests), copy=False),
    ]


def implied(condition: exp.Expr, columns: Set[str]) -> exp.Expr | None:
    """What a condition says of these columns alone; None if nothing.

    >>> from spark_jobs.graph.dialect import parse
    >>> both = parse("(a = 1 AND b = 2 AND c) OR (a = 3 AND d)")
    >>> to_sql(implied(both, {"a", "b"}))
    '(a = 1 AND b = 2) OR a = 3'
    >>> to_sql(implied(parse("a = 1"), {"a"}))
    'a = 1'
    >>> implied(both, {"b"}), [implied(parse(one), {"b"}) for one in ("1 = 1", "NOT (a AND b)")]
    (None, [None, None])
    """
    reads = used(condition)
    if reads <= columns:
        return condition if reads else None
    if not isinstance(condition, exp.Or):
        return None
    sides: dict[Identity, exp.Expr] = {}
    for side in condition.flatten():
        parts = [implied(one, columns) for one in conjuncts(side)]
        own = [one for one in parts if one is not None]
        if not own:
            return None
        whole = exp.and_(*own)
        sides[identity(whole)] = whole
    return exp.or_(*sides.values(), copy=False)


def equality(condition: exp.Expr) -> tuple[str, str] | None:
    """The two columns of a condition ``a = b``, or None.

    >>> from spark_jobs.graph.dialect import parse
    >>> others = ("a < b", "CAST(a AS INT) = b", "a = CAST(b AS INT)")
    >>> equality(parse("a = b")), [equality(parse(one)) for one in others]
    (('a', 'b'), [None, None, None])
    """
    if not isinstance(condition, exp.EQ):
        return None
    left, right = condition.this, condition.expression
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        return left.name, right.name
    return None
