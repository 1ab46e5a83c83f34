"""Column lineage: the stored columns from which each output column is computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from spark_jobs.graph.dialect import parse

# Clauses of a SELECT that decide which rows there are.
_CLAUSES = ("where", "group", "having", "qualify", "order")


@dataclass(frozen=True, order=True)
class ColumnName:
    """A column of a stored table; ``table`` as in the query, with its layer."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


@dataclass(frozen=True)
class QueryLineage:
    """The lineage of a query's output.

    Attributes:
        columns: for each output column, the sorted columns that its value is computed from; () for
            COUNT(*) and the like.
        copies: output columns that copy a single column, with that column.
        rows: sorted columns that filter, join, group or order rows.
    """

    columns: dict[str, tuple[ColumnName, ...]]
    copies: dict[str, ColumnName]
    rows: tuple[ColumnName, ...]


@lru_cache(maxsize=256)
def lineage_of(query: str) -> QueryLineage:
    """The lineage of one qualified SELECT, as in ``GoldEntry.query`` or ``projection``.

    >>> found = lineage_of("SELECT o.a AS x, o.b + o.c AS y FROM silver.t AS o WHERE o.d > 0")
    >>> [str(one) for one in found.columns["y"]], str(found.copies["x"]), str(found.rows[0])
    (['silver.t.b', 'silver.t.c'], 'silver.t.a', 'silver.t.d')
    """
    tree = parse(query)
    if not isinstance(tree, exp.Query):
        raise TypeError(f"not a query: {query}")
    walk = _Walk(tree)
    names = [one.output_name for one in tree.selects]
    columns = {name: _sorted(walk.output(tree, at)) for at, name in enumerate(names)}
    copies = {name: copied for at, name in enumerate(names) if (copied := walk.copied(tree, at))}
    deciding = (one for clause in _deciding(tree) for one in walk.read_by(clause))
    return QueryLineage(columns, copies, _sorted(deciding))


def _sorted(found: Iterable[ColumnName]) -> tuple[ColumnName, ...]:
    return tuple(sorted(set(found)))


def _deciding(tree: exp.Query) -> Iterator[exp.Expr]:
    for select in tree.find_all(exp.Select):
        for clause in _CLAUSES:
            node = select.args.get(clause)
            if isinstance(node, exp.Expr):
                yield node
        for join in select.args.get("joins") or ():
            condition = join.args.get("on")
            if isinstance(condition, exp.Expr):
                yield condition


class _Walk:
    """A tree with the scopes of its queries."""

    def __init__(self, tree: exp.Query) -> None:
        self._scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}

    def output(self, query: exp.Expr, at: int) -> Iterator[ColumnName]:
        """The stored columns of the output column at a position."""
        for one in _outputs_at(query, at):
            yield from self.read_by(one)

    def read_by(self, expression: exp.Expr) -> Iterator[ColumnName]:
        """The stored columns that an expression reads, through all subqueries."""
        for column in expression.find_all(exp.Column):
            for source, name in self._sources(column):
                if isinstance(source, exp.Table):
                    yield ColumnName(f"{source.db}.{source.name}".strip(".").lower(), name)
                elif source.is_udtf:
                    yield from self.read_by(source.expression)
                else:
                    yield from self._named(source.expression, name)

    def copied(self, query: exp.Expr, at: int) -> ColumnName | None:
        """The single stored column that an output copies, through all subqueries."""
        outputs = list(_outputs_at(query, at))
        inner = outputs[0].unalias() if len(outputs) == 1 else None
        # A third part is a field of a struct.
        plain = isinstance(inner, exp.Column) and len(inner.parts) <= 2
        found = list(self._sources(inner)) if isinstance(inner, exp.Column) and plain else []
        if not found:
            return None
        source, name = found[0]
        if isinstance(source, exp.Table):
            return ColumnName(f"{source.db}.{source.name}".strip(".").lower(), name)
        if source.is_udtf:
            return None
        position = _position(source.expression, name)
        return None if position is None else self.copied(source.expression, position)

    def _named(self, query: exp.Expr, name: str) -> Iterator[ColumnName]:
        position = _position(query, name)
        if position is not None:
            yield from self.output(query, position)
            return
        # Only Spark knows the names of a generator's and of a PIVOT's outputs: it may be any.
        for at in range(len(query.selects) if isinstance(query, exp.Query) else 0):
            yield from self.output(query, at)
        pivots = [*query.find_all(exp.Pivot)]
        for pivot in pivots:
            yield from self.read_by(pivot)
        scope = self._scopes.get(id(query))
        made = {one.name.lower() for pivot in pivots for one in pivot.find_all(exp.Identifier)}
        for source in scope.sources.values() if pivots and scope and name not in made else ():
            if isinstance(source, exp.Table):
                yield ColumnName(f"{source.db}.{source.name}".strip(".").lower(), name)
            else:
                yield from self._named(source.expression, name)

    def _sources(self, column: exp.Column) -> Iterator[tuple[exp.Table | Scope, str]]:
        """The relations of a column; none for the parameter of a lambda.

        A path into a struct starts with the column, or with its relation.
        """
        scope = self._scope_of(column)
        parts = [part.name for part in column.parts]
        inside: list[Scope] = []
        while scope is not None:
            # A derived table cannot read itself by its outer alias.
            sources = {name: one for name, one in scope.sources.items() if one not in inside}
            if len(parts) > 1 and parts[0] in sources:
                yield sources[parts[0]], parts[1]
                return
            if len(parts) == 1 and len(sources) == 1:
                yield next(iter(sources.values())), parts[0]
                return
            inside.append(scope)
            if (scope.is_derived_table or scope.is_cte) and not scope.can_be_correlated:
                return
            scope = scope.parent

    def _scope_of(self, node: exp.Expr) -> Scope | None:
        found: exp.Expr | None = node
        while found is not None:
            scope = self._scopes.get(id(found))
            if scope is not None and not scope.is_udtf:
                return scope
            found = found.parent
        return None


def _outputs_at(query: exp.Expr, at: int) -> Iterator[exp.Expr]:
    """The output at a position; for a set operation, that of each side."""
    match query:
        case exp.Subquery():
            yield from _outputs_at(query.this, at)
        case exp.SetOperation():
            yield from _outputs_at(query.left, at)
            yield from _outputs_at(query.right, at)
        case exp.Query() if at < len(query.selects):
            yield query.selects[at]


def _position(query: exp.Expr, name: str) -> int | None:
    names = query.named_selects if isinstance(query, exp.Query) else []
    lower = [one.lower() for one in names]
    return lower.index(name.lower()) if name.lower() in lower else None
