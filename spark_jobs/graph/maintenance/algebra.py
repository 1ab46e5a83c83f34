"""Relational operators. The columns of a tree have unique names, so that no operator renames.

Expressions are sqlglot nodes whose columns are those unique names, without a table.
"""

from __future__ import annotations

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
        names: pairs of the tree's name for a column and its name in the table.
        key: names of the columns whose values identify a row, where that is known.
    """

    table: str
    names: tuple[tuple[str, str], ...]
    key: frozenset[str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.names)


@dataclass(frozen=True, eq=False)
class Constant:
    """Rows that come from no table."""

    query: exp.Query
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Filter:
    """The rows of which the condition is true."""

    child: Node
    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns


@dataclass(frozen=True, eq=False)
class Project:
    """Expressions over each row; an expression may give several rows for one (``EXPLODE``)."""

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
    """Inner join of any number of inputs; a cross join has no condition."""

    inputs: tuple[Node, ...]
    conditions: tuple[exp.Expr, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for one in self.inputs for name in one.columns)


class Side(StrEnum):
    """What a row of the left input becomes."""

    OUTER = "LEFT"
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"


@dataclass(frozen=True, eq=False)
class LeftJoin:
    """A join whose result is decided row by row of its left input."""

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
    """Grouping. Without keys it gives one row always; without aggregates it removes duplicates.

    Attributes:
        sessions: those of the keys that depend on a group's other rows (``session_window``).
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
        """The keys that a row has by itself."""
        return tuple(one for one in self.keys if one[0] not in self.sessions)


@dataclass(frozen=True, eq=False)
class Union:
    """UNION ALL by position; the columns have the first input's names."""

    inputs: tuple[Node, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inputs[0].columns


@dataclass(frozen=True, eq=False)
class Window:
    """Window functions of one partitioning, beside the columns of the child."""

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


def scans(node: Node) -> frozenset[str]:
    """The tables below an operator."""
    if isinstance(node, Scan):
        return frozenset({node.table})
    return frozenset().union(*(scans(one) for one in children(node)))


def used(expression: exp.Expr) -> frozenset[str]:
    """The columns that an expression reads."""
    return frozenset(column.name for column in expression.find_all(exp.Column))


def identity(expression: exp.Expr) -> Identity:
    """What expressions have in common that mean the same: their class, and Spark's text.

    The text alone does not tell ``ORDER BY k`` from ``k``, nor the parser's equality and its own
    dialect ``SORT_ARRAY(x)`` from ``SORT_ARRAY(x, FALSE)``.
    """
    return type(expression), to_sql(expression)


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that must all be true."""
    if condition is None:
        return []
    condition = condition.unnest()
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def equality(condition: exp.Expr) -> tuple[str, str] | None:
    """The two columns where a condition says that they are equal and not NULL."""
    if not isinstance(condition, exp.EQ):
        return None
    left, right = condition.this, condition.expression
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        return left.name, right.name
    return None
