"""Names: unique column names of a tree, and the columns of each SQL alias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle


class Names:
    """Generates unique names for a tree's columns; the SQL name if it is free."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, name: str) -> str:
        """An unused name.

        >>> names = Names()
        >>> names.fresh("a"), names.fresh("a")
        ('a', 'a__2')
        """
        name = name.lower()
        found, count = name, 1
        while found in self._taken:
            count += 1
            found = f"{name}__{count}"
        self._taken.add(found)
        return found


@dataclass
class Scope:
    """The columns in scope of one SELECT.

    Attributes:
        relations: for each alias, names in the tree by lower-case column name.
        around: the scope of the outer query.
    """

    relations: dict[str, Mapping[str, str]] = field(default_factory=dict)
    around: Scope | None = None

    def own(self, column: exp.Column) -> str | None:
        """The name in the tree of a column of this SELECT, or None."""
        name = column.name.lower()
        if column.table:
            return self.relations.get(column.table.lower(), {}).get(name)
        found = {one[name] for one in self.relations.values() if name in one}
        return found.pop() if len(found) == 1 else None

    def resolve(self, column: exp.Column) -> str:
        """The name in the tree of a column of this SELECT or of the outer query.

        Raises:
            NotIncrementalError: it belongs to neither.
        """
        found = self.own(column)
        if found is None and self.around is not None:
            found = self.around.own(column)
        if found is None:
            text = f"the column {column.name} is not one of the query or of the one around it"
            raise NotIncrementalError(Obstacle.UNRESOLVED_COLUMN, text, column)
        return found

    def is_outer(self, expression: exp.Expr) -> bool:
        """Whether an expression reads a column of the outer query."""
        return any(self.own(column) is None for column in expression.find_all(exp.Column))

    def rewrite(self, expression: exp.Expr) -> exp.Expr:
        """A copy of the expression with the tree's column names.

        Raises:
            NotIncrementalError: a column is not in scope.
        """
        copy = expression.copy()
        for column in list(copy.find_all(exp.Column)):
            new = named(self.resolve(column))
            if column is copy:
                copy = new
            else:
                column.replace(new)
        return copy


def named(name: str) -> exp.Column:
    """A column node for a name in the tree."""
    return exp.column(exp.to_identifier(name))
