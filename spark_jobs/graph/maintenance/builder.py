"""The state of building a tree of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import Node
from spark_jobs.graph.maintenance.scope import Names, Scope

# The output columns of a query: pairs of the name in SQL and in the tree.
Outputs = list[tuple[str, str]]
Built = tuple[Node, Outputs]


@dataclass
class Builder:
    """Names, common table expressions and table keys while a query is built.

    Attributes:
        build: builds a query, optionally inside of a scope.
        keys: columns that identify a row of a table, by ``layer.name``.
    """

    build: Callable[[Builder, exp.Query, Scope | None], Built]
    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    ctes: dict[str, exp.CTE] = field(default_factory=dict)

    def query(self, query: exp.Query, around: Scope | None = None) -> Built:
        """The operators of a query, and its outputs."""
        return self.build(self, query, around)

    def common_table(self, cte: exp.CTE) -> Built:
        """The operators of a common table expression, built again for each reader."""
        child, outputs = self.build(self, cte.this, None)
        alias = cte.args.get("alias")
        if alias and alias.columns:
            renamed = [one.name for one in alias.columns]
            outputs = [(name, at) for name, (_, at) in zip(renamed, outputs, strict=True)]
        return child, outputs

    def key_of(self, table: str) -> frozenset[str] | None:
        """The columns that identify a table's rows, given as ``layer.name``; None if unknown."""
        return self.keys.get(table)

    @contextmanager
    def common_tables(self, query: exp.Query) -> Iterator[None]:
        """Register the query's common table expressions while it is built."""
        before = dict(self.ctes)
        clause = query.args.get("with_")
        for cte in clause.expressions if clause else ():
            self.ctes[cte.alias.lower()] = cte
        try:
            yield
        finally:
            self.ctes = before
