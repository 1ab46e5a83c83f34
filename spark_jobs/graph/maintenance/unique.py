"""Proves which columns identify the rows of an operator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

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
# Types whose equal values are identical. In others 0.0 equals -0.0, or "a" equals "A".
_IDENTICAL = re.compile(
    r"tinyint|smallint|int|bigint|boolean|string|binary|date|timestamp|timestamp_ntz|decimal\(.*\)"
)


def is_identical(kind: str) -> bool:
    """Whether equal values of a type are the same value; "" is an unknown type."""
    return _IDENTICAL.fullmatch(kind) is not None


@dataclass(frozen=True)
class Uniqueness:
    """Proofs about one query.

    Attributes:
        types: column types, by table and lower-case column name. Columns of unknown or different
            types may be equal without being identical.
    """

    types: Mapping[str, Mapping[str, str]]

    def columns(self, node: Node) -> Columns | None:
        """Columns that are a unique key of an operator, if that can be proved."""
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

    def distinguishes_rows(self, node: Node, by: Columns) -> bool:
        """Whether rows of an operator that agree in some columns are equal in all.

        Args:
            node: the operator.
            by: names of its columns; other names are ignored.
        """
        if by.issuperset(node.columns):
            return True
        match node:
            case Filter() | TopK() | Window():
                return self.distinguishes_rows(node.child, by)
            case Project():
                return not node.multiplies and self.distinguishes_rows(node.child, _below(node, by))
            case Join():
                return self._all_known(node, node.inputs, node.conditions, by=by)
            case LeftJoin() if node.side is Side.OUTER:
                both, conditions = (node.left, node.right), conjuncts(node.condition)
                return self._all_known(node, both, conditions, by=by)
            case LeftJoin():
                return self.distinguishes_rows(node.left, by)
            case _:
                key = self.columns(node)
                return key is not None and key <= by

    def _all_known(
        self, node: Node, inputs: Sequence[Node], conditions: Sequence[exp.Expr], *, by: Columns
    ) -> bool:
        """Whether columns determine the row of each input of a join."""
        pairs = self._pairs(node, conditions)
        known, left = by, list(inputs)
        while left:
            if isinstance(node, LeftJoin) and inputs[0] in left:
                # The condition determines right rows from left rows, not vice versa.
                near = left[:1]
            else:
                known, near = determined(known, (), pairs), left
            found = next((one for one in near if self.distinguishes_rows(one, known)), None)
            if found is None:
                return False
            known |= frozenset(found.columns)
            left.remove(found)
        return True

    def _of_left_join(self, node: LeftJoin) -> Columns | None:
        left = self.columns(node.left)
        if node.side is not Side.OUTER or left is None:
            return left
        right = self.columns(node.right)
        if right is None:
            return None
        # A left row may determine the single matching right row.
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
        renamed: dict[str, str] = {}
        for name, origin in _origins(node):
            renamed.setdefault(origin, name)
        return frozenset(renamed[one] for one in below) if below <= renamed.keys() else None

    def _pairs(self, node: Node, conditions: Iterable[exp.Expr]) -> Pairs:
        """The columns that the conditions make identical."""
        found = [pair for one in conditions if (pair := equality(one))]
        return [(a, b) for a, b in found if self._type(node, a) == self._type(node, b) != ""]

    def _type(self, node: Node, column: str) -> str:
        """The type of an operator's column; "" if unknown, or if equal values may differ."""
        match node:
            case Scan():
                name = dict(node.names).get(column, "")
                kind = self.types.get(node.table, {}).get(name, "")
                return kind if is_identical(kind) else ""
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
    """All columns of a join that some of its columns determine.

    A key determines the columns of its input, and a column determines identical ones: the closure
    of attributes under functional dependencies, as in Armstrong, "Dependency Structures of Data
    Base Relationships", 1974.

    Args:
        known: the columns to start with.
        sides: a key and all columns of each input.
        pairs: pairs of identical columns.
    """
    rules = list(sides)
    for a, b in pairs:
        rules += [(frozenset({a}), frozenset({b})), (frozenset({b}), frozenset({a}))]
    while found := [gives for needs, gives in rules if needs <= known and not gives <= known]:
        known = known.union(*found)
    return known


def _origins(node: Project) -> Iterator[tuple[str, str]]:
    """Outputs that determine a column of the child, with that column."""
    for name, value in node.outputs:
        if isinstance(value, exp.Column):
            yield name, value.name
    for name, value in node.outputs:
        # A field of WINDOW in GROUP BY, the only struct without parentheses. All windows of a call
        # have the same length, so that either end identifies them.
        if isinstance(value, exp.Dot) and isinstance(value.this, exp.Column):
            yield name, value.this.name


def _below(node: Project, by: Columns) -> Columns:
    """The columns of the child that some outputs determine."""
    return frozenset(origin for name, origin in _origins(node) if name in by)
