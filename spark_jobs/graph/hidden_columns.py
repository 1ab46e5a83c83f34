"""Finds columns that a join by name hides, where Spark reads another one of the alias's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from spark_jobs.graph.errors import AmbiguousColumnError
from spark_jobs.graph.joined_columns import hides
from spark_jobs.graph.parsing import SqlText

# The columns of each relation in FROM; None if unknown.
ColumnsOf = Callable[[Scope], Mapping[str, Sequence[str] | None]]


def hidden_columns(
    tree: exp.Query, columns_of: ColumnsOf, source: SqlText, subject: str
) -> Iterator[AmbiguousColumnError]:
    """Report ``b.k`` behind ``a JOIN b USING (k)`` if a has a column b: Spark takes a field of it.

    Args:
        tree: a query that ``correct_joined_columns`` changed.
        columns_of: the columns of the relations of its parts.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for scope in traverse_scope(tree):
        select = scope.expression
        hidden = [
            one
            for one in scope.columns
            if isinstance(select, exp.Select) and _is_written(one) and hides(select, one)
        ]
        known = columns_of(scope) if hidden else {}
        for column in hidden:
            holder = next(
                (one for one, names in known.items() if column.table in (names or ())), ""
            )
            if holder:
                yield AmbiguousColumnError(
                    subject,
                    f"{column.table}.{column.name}",
                    (f"the alias {column.table}", f"the column {holder}.{column.table}"),
                    alias=column.table,
                    location=source.of(column),
                )


def _is_written(column: exp.Column) -> bool:
    """Whether a column has a relation in the text: qualifying gives others that of its alias."""
    table = column.args.get("table")
    end = None if table is None else table.meta.get("end")
    return end is not None and end + 2 == column.this.meta.get("start")
