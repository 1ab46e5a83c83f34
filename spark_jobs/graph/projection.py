"""The parts of a silver SELECT: output expressions and the row filter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from spark_jobs.graph.dialect import parse, to_sql


@dataclass(frozen=True)
class Projection:
    """A SELECT over one relation.

    Attributes:
        relation: the alias of the relation in the expressions.
        columns: pairs of output name and Spark SQL expression.
        condition: the WHERE clause in Spark SQL, or None.
    """

    relation: str
    columns: tuple[tuple[str, str], ...]
    condition: str | None


def split_projection(select: str) -> Projection:
    """Split a compiled silver SELECT into its parts.

    >>> split_projection("SELECT s.a, s.b + 1 AS c FROM source AS s WHERE s.a > 0")
    Projection(relation='s', columns=(('a', 's.a'), ('c', 's.b + 1')), condition='s.a > 0')
    """
    tree = parse(select)
    if not isinstance(tree, exp.Select):
        raise TypeError(f"not a SELECT: {select}")
    relation = tree.find(exp.Table)
    where = tree.args.get("where")
    return Projection(
        relation=relation.alias_or_name if relation else "",
        columns=tuple((column.alias_or_name, to_sql(column.unalias())) for column in tree.selects),
        condition=to_sql(where.this) if where else None,
    )


# Cached: each batch calls it with the same arguments, and parsing takes milliseconds.
@lru_cache(maxsize=4096)
def columns_read(expression: str, columns: tuple[str, ...]) -> frozenset[str]:
    """The columns that a Spark SQL expression reads, in lower case; may contain too many.

    >>> sorted(columns_read("concat(s.Body, t.x.y)", ("body", "X", "z")))
    ['body', 'x']
    """
    parts = {
        part.name.lower()
        for column in parse(f"SELECT {expression}").find_all(exp.Column)
        for part in column.parts
    }
    return frozenset(column.lower() for column in columns) & parts
