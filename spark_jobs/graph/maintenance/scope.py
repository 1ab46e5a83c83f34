"""Names: each column of a tree is called once, and each alias of the SQL knows its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle


class Names:
    """Gives every column of a tree a name of its own, the SQL's own where it is free."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, name: str) -> str:
        """A name that nothing else in the tree has.

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
    """What the columns of one SELECT mean.

    Attributes:
        relations: for each alias the tree's names of its columns, by lower-case name.
        around: the scope of the query around this one.
    """

    relations: dict[str, Mapping[str, str]] = field(default_factory=dict)
    around: Scope | None = None

    def own(self, column: exp.Column) -> str | None:
        """The tree's name of a column of this SELECT, or None where it is of another one."""
        name = column.name.lower()
        if column.table:
            return self.relations.get(column.table.lower(), {}).get(name)
        found = {one[name] for one in self.relations.values() if name in one}
        return found.pop() if len(found) == 1 else None

    def resolve(self, column: exp.Column) -> str:
        """The tree's name of a column of this SELECT or of the one around it.

        Raises:
            NotIncrementalError: it is of neither.
        """
        found = self.own(column)
        if found is None and self.around is not None:
            found = self.around.own(column)
        if found is None:
            text = f"the column {column.sql()} is not one of the query or of the one around it"
            raise NotIncrementalError(Obstacle.UNRESOLVED_COLUMN, text, column)
        return found

    def is_outer(self, expression: exp.Expr) -> bool:
        """Whether an expression reads a column of the query around."""
        return any(self.own(column) is None for column in expression.find_all(exp.Column))

    def rewrite(self, expression: exp.Expr) -> exp.Expr:
        """A copy with the tree's names for columns.

        Raises:
            NotIncrementalError: a column belongs to no scope in reach.
        """
        copy = expression.copy()
        for column in list(copy.find_all(exp.Column)):
            if isinstance(column.this, exp.Star):
                continue
            new = named(self.resolve(column))
            if column is copy:
                copy = new
            else:
                column.replace(new)
        return copy


def named(name: str) -> exp.Column:
    """A column by the tree's name for it."""
    return exp.column(exp.to_identifier(name))
