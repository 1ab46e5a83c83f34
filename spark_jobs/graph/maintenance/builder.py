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


@dataclass(frozen=True)
class CommonTable:
    """A common table expression.

    Attributes:
        known: those that it may read, by name: a query that reads it may have others of these
            names.
    """

    cte: exp.CTE
    known: Mapping[str, CommonTable]


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
    ctes: Mapping[str, CommonTable] = field(default_factory=dict)

    def query(self, query: exp.Query, around: Scope | None = None) -> Built:
        """The operators of a query, and its outputs."""
        return self.build(self, query, around)

    def common_table(self, table: CommonTable) -> Built:
        """The operators of a common table expression, built again for each reader."""
        before, self.ctes = self.ctes, table.known
        try:
            child, outputs = self.build(self, table.cte.this, None)
        finally:
            self.ctes = before
        renamed = [one.name for one in table.cte.args["alias"].columns]
        if renamed:
            outputs = [(name, at) for name, (_, at) in zip(renamed, outputs, strict=True)]
        return child, outputs

    def key_of(self, table: str) -> frozenset[str] | None:
        """The columns that identify a table's rows, given as ``layer.name``; None if unknown."""
        return self.keys.get(table)

    @contextmanager
    def common_tables(self, query: exp.Query) -> Iterator[None]:
        """Register the query's common table expressions while it is built."""
        before = self.ctes
        clause = query.args.get("with_")
        for cte in clause.expressions if clause else ():
            self.ctes = {**self.ctes, cte.alias.lower(): CommonTable(cte, self.ctes)}
        try:
            yield
        finally:
            self.ctes = before
