"""Which columns tell the rows of an operator apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.graph.functions import called_name
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
    Side,
    TopK,
    Union,
    Window,
    children,
    conjuncts,
    equality,
)

Columns = frozenset[str]
Pairs = list[tuple[str, str]]
# Types of which equal values are the same value: of others 0.0 equals -0.0, or "a" equals "A".
_IDENTICAL = re.compile(
    r"tinyint|smallint|int|bigint|boolean|string|binary|date|timestamp|timestamp_ntz|decimal\(.*\)"
)


@dataclass(frozen=True)
class Uniqueness:
    """Proofs over one query.

    Attributes:
        types: the types of the tables' columns, by table and by column in lower case. Columns of
            unknown or different types may be equal without being the same.
    """

    types: Mapping[str, Mapping[str, str]]

    def columns(self, node: Node) -> Columns | None:
        """Columns that no two rows of an operator share, where that can be proved."""
        match node:
            case Scan():
                return node.key
            case Filter() | TopK() | Window():
                return self.columns(node.child)
            case Aggregate():
                return None if node.sessions else frozenset(name for name, _ in node.keys)
            case LeftJoin():
                return self._of_left_join(node)
            case Join():
                return self._of_join(node)
            case Project():
                return self._of_project(node)
            case Union() | Generate() | Constant():
                return None

    def _of_left_join(self, node: LeftJoin) -> Columns | None:
        left = self.columns(node.left)
        if node.side is not Side.OUTER or left is None:
            return left
        right = self.columns(node.right)
        if right is None:
            return None
        # A row of the left may choose the one row of the right.
        pairs = self._pairs(node, conjuncts(node.condition))
        chosen = right <= determined(frozenset(node.left.columns), (), pairs)
        return left if chosen else left | right

    def _of_join(self, node: Join) -> Columns | None:
        keys = [self.columns(one) for one in node.inputs]
        sides = [
            (key, frozenset(one.columns))
            for one, key in zip(node.inputs, keys, strict=True)
            if key is not None
        ]
        if len(sides) < len(keys):
            return None
        pairs = self._pairs(node, node.conditions)
        known = everything = Columns().union(*(key for key, _ in sides))
        for key, _ in sides:
            if everything <= determined(known - key, sides, pairs):
                known -= key
        return known

    def _of_project(self, node: Project) -> Columns | None:
        below = None if node.multiplies else self.columns(node.child)
        if below is None:
            return None
        windows = _windows(node.child)
        renamed = {
            value.name: name for name, value in node.outputs if isinstance(value, exp.Column)
        }
        for name, value in node.outputs:
            # All windows of one call are equally long, so that either end tells them apart.
            if isinstance(value, exp.Dot) and value.this.name in windows:
                renamed.setdefault(value.this.name, name)
        return frozenset(renamed[one] for one in below) if below <= renamed.keys() else None

    def _pairs(self, node: Node, conditions: Iterable[exp.Expr]) -> Pairs:
        """The columns that the conditions make the same."""
        found = [pair for one in conditions if (pair := equality(one))]
        return [(a, b) for a, b in found if self._type(node, a) == self._type(node, b) != ""]

    def _type(self, node: Node, column: str) -> str:
        """The type of an operator's column; "" where it is not known, or not good enough."""
        match node:
            case Scan():
                name = dict(node.names).get(column, "")
                kind = self.types.get(node.table, {}).get(name, "")
                return kind if _IDENTICAL.fullmatch(kind) else ""
            case Union():
                return ""
            case Project() | Aggregate():
                values = node.outputs if isinstance(node, Project) else node.keys
                value = dict(values).get(column)
                return self._type(node.child, value.name) if isinstance(value, exp.Column) else ""
            case _:
                below = (one for one in children(node) if column in one.columns)
                return next((self._type(one, column) for one in below), "")


def determined(
    known: Columns, sides: Sequence[tuple[Columns, Columns]], pairs: Sequence[tuple[str, str]]
) -> Columns:
    """All columns of a join whose values some of them determine.

    A key determines the columns of its input, and a column those that are the same: the closure
    of attributes under functional dependencies, as in Armstrong, "Dependency Structures of Data
    Base Relationships", 1974.

    Args:
        known: the columns to begin with.
        sides: of each input a key and all columns.
        pairs: columns that are the same.
    """
    rules = list(sides)
    for a, b in pairs:
        rules += [(frozenset({a}), frozenset({b})), (frozenset({b}), frozenset({a}))]
    while found := [gives for needs, gives in rules if needs <= known and not gives <= known]:
        known = known.union(*found)
    return known


def _windows(node: Node) -> Columns:
    """The columns of an operator that hold windows of time of a fixed length."""
    match node:
        case Filter() | TopK() | Window():
            return _windows(node.child)
        case Aggregate() | Project():
            below = _windows(node.child)
            values = node.outputs if isinstance(node, Project) else node.row_keys
            return frozenset(
                name
                for name, value in values
                if (isinstance(value, exp.Func) and called_name(value) == "window")
                or (isinstance(value, exp.Column) and value.name in below)
            )
        case _:
            return frozenset()
