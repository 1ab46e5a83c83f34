"""Builds the tree of operators of a query."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.optimizer.qualify_tables import qualify_tables

from spark_jobs.graph.dialect import dialect, parse
from spark_jobs.graph.foreign_clauses import filled_parts
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Filter,
    Node,
    Project,
    TopK,
    Union,
    children,
    expressions,
    used,
)
from spark_jobs.graph.maintenance.builder import Builder, Built, Outputs
from spark_jobs.graph.maintenance.clauses import each_copy
from spark_jobs.graph.maintenance.correlated import over_groups
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle
from spark_jobs.graph.maintenance.scope import Scope, named
from spark_jobs.graph.maintenance.select import Selected, build_select

# What a query in parentheses may have.
_OF_SUBQUERY = frozenset({"this", "alias", "with_"})
_WINDOWS = frozenset({"window", "session_window"})


def build(query: str, *, keys: Mapping[str, frozenset[str]] | None = None) -> Built:
    """The operators of a canonical query, and its outputs.

    Args:
        query: qualified Spark SQL, as in ``GoldEntry.query``.
        keys: columns that identify a table's rows, by table, if known.

    Returns:
        the root, and for each output column its names in SQL and in the tree.

    Raises:
        NotIncrementalError: an operator has no rule.
    """
    tree = parse(query)
    _separate_fields(tree)
    _check_pivots(tree)
    _check_stars(tree)
    _check_parentheses(tree)
    # Make aliases unique, also if a subquery reuses a name.
    tree = qualify_tables(tree, canonicalize_table_aliases=True, dialect=dialect())
    over_groups(tree)
    root, outputs = Builder(_build, keys or {}).query(tree)  # type: ignore[arg-type]
    _check_reads(root)
    return root, outputs


def _separate_fields(tree: exp.Expr) -> None:
    """Write ``(t.place).at.x`` for ``t.place.at.x``, which would name a table ``t.place.at``.

    The first part is a relation: canonical queries have no tables with a layer in columns.
    """
    for column in [*tree.find_all(exp.Column)]:
        match column.parts:
            # Those of a time window are found by their names.
            case [relation, name, field, *more] if name.name.lower() not in _WINDOWS:
                value = exp.Paren(this=exp.Column(this=name, table=relation))
                column.replace(exp.Dot.build([value, field, *more]))


def _check_pivots(tree: exp.Expr) -> None:
    """Refuse what ``without_pivots`` left.

    Raises:
        NotIncrementalError: there is a PIVOT or UNPIVOT.
    """
    for pivot in tree.find_all(exp.Pivot):
        text = (
            "UNPIVOT of columns of several types, or of unknown ones, has no incremental rule"
            if pivot.unpivot
            else "PIVOT has an incremental rule only for COUNT, SUM, AVG, MIN and MAX, each with a "
            "name if there are several, by whole numbers or texts"
        )
        raise NotIncrementalError(Obstacle.UNSUPPORTED_RELATION, text, pivot)


def _check_stars(tree: exp.Expr) -> None:
    """Refuse stars in expressions: operators have named columns only.

    Raises:
        NotIncrementalError: a star stands for columns; COUNT(*) is allowed.
    """
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count):
            text = "a star in an expression names no column: write the columns"
            raise NotIncrementalError(Obstacle.UNRESOLVED_COLUMN, text, star.parent)


def _check_parentheses(tree: exp.Expr) -> None:
    """Refuse clauses behind a query in parentheses: what reads one takes the query inside.

    Raises:
        NotIncrementalError: such as ``(SELECT ...) ORDER BY a LIMIT 3``.
    """
    for query in tree.find_all(exp.Subquery):
        more = [name for name in filled_parts(query) if name not in _OF_SUBQUERY]
        if more:
            text = f"{more[0].upper()} behind a query in parentheses has no incremental rule"
            raise NotIncrementalError(Obstacle.UNSUPPORTED_CLAUSE, text, query)


def _check_reads(node: Node) -> None:
    """Refuse operators that read more than the rows below them.

    Raises:
        NotIncrementalError: a subquery is where it was not joined, or it reads the query around it
            where no rule takes the condition out of it.
    """
    known = {name for child in children(node) for name in child.columns}
    for one in expressions(node):
        if one.find(exp.Query):
            text = "a subquery in this place has no incremental rule"
            raise NotIncrementalError(Obstacle.UNSUPPORTED_SUBQUERY, text, one)
        if missing := sorted(used(one) - known):
            text = f"{missing[0]}, a value of another query, has no incremental rule in this place"
            raise NotIncrementalError(Obstacle.UNSUPPORTED_SUBQUERY, text, one)
    for child in children(node):
        _check_reads(child)


def _build(builder: Builder, query: exp.Query, around: Scope | None) -> Built:
    with_clause = query.args.get("with_")
    if with_clause is not None and with_clause.recursive:
        raise NotIncrementalError(
            Obstacle.UNSUPPORTED_CLAUSE, "WITH RECURSIVE has no incremental rule", query
        )
    with builder.common_tables(query):
        if isinstance(query, exp.Subquery):
            return _build(builder, query.this, around)
        if isinstance(query, exp.SetOperation):
            return _set_operation(builder, query, around)
        if isinstance(query, exp.Select):
            return _limited(builder, query, build_select(builder, query, around))
    raise NotIncrementalError(
        Obstacle.UNSUPPORTED_CLAUSE, f"{type(query).__name__} has no incremental rule", query
    )


def _limited(builder: Builder, query: exp.Query, selected: Selected) -> Built:
    """Apply ORDER BY with LIMIT; ORDER BY alone does not change a multiset."""
    node = selected.node
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is not None or offset is not None:
        node = TopK(
            node,
            tuple(selected.order),
            limit.expression if limit else None,
            offset.expression if offset else None,
        )
    columns = [name for _, name in selected.outputs]
    if list(node.columns) != columns:
        # Drop the columns that only the order needs.
        node = Project(node, tuple((name, named(name)) for name in columns))
    del builder
    return node, selected.outputs


def _set_operation(builder: Builder, query: exp.SetOperation, around: Scope | None) -> Built:
    left, outputs = builder.query(query.this, around)
    right, _ = builder.query(query.expression, around)
    distinct = bool(query.args.get("distinct"))
    if isinstance(query, exp.Union):
        node: Node = Union((left, right))
        names = [(name, at) for (name, _), at in zip(outputs, node.columns, strict=True)]
        if distinct:
            node, names = distinct_rows(builder, node, names)
    else:
        both = isinstance(query, exp.Intersect)
        node, names = _by_counts(builder, left, right, outputs, both=both, distinct=distinct)
    order = query.args.get("order")
    selected = Selected(node, names, [_by_output(one, names) for one in order or ()])
    return _limited(builder, query, selected)


def distinct_rows(builder: Builder, node: Node, outputs: Outputs) -> Built:
    """Each row once."""
    fresh = [(name, builder.names.fresh(name), at) for name, at in outputs]
    node = Aggregate(node, tuple((new, named(at)) for _, new, at in fresh), ())
    return node, [(name, new) for name, new, _ in fresh]


def _by_counts(
    builder: Builder, left: Node, right: Node, outputs: Outputs, *, both: bool, distinct: bool
) -> Built:
    """INTERSECT and EXCEPT: count rows on both sides, and repeat each as required."""
    names = builder.names
    here, there = names.fresh("here"), names.fresh("there")
    one, zero = exp.Literal.number(1), exp.Literal.number(0)
    sides = [
        Project(
            node,
            (
                *((names.fresh(name), named(name)) for name in node.columns),
                (names.fresh("n_left"), first.copy()),
                (names.fresh("n_right"), second.copy()),
            ),
        )
        for node, first, second in ((left, one, zero), (right, zero, one))
    ]
    united = Union(tuple(sides))
    *columns, n_left, n_right = united.columns
    keys = [(names.fresh(name), at) for (name, _), at in zip(outputs, columns, strict=True)]
    counted = Aggregate(
        united,
        tuple((key, named(at)) for key, at in keys),
        ((here, exp.Sum(this=named(n_left))), (there, exp.Sum(this=named(n_right)))),
    )
    if both:
        due: exp.Expr = exp.func("LEAST", named(here), named(there))
    elif distinct:
        due = exp.func("IF", named(there).eq(0), one.copy(), zero.copy())
    else:
        due = named(here) - named(there)
    result = [(name, key) for (name, _), (key, _) in zip(outputs, keys, strict=True)]
    held = Filter(counted, exp.GT(this=due.copy(), expression=zero))
    if distinct:
        return Project(held, tuple((key, named(key)) for _, key in result)), result
    copies = (names.fresh("copy"), each_copy(due))
    repeated = Project(held, (*((key, named(key)) for _, key in result), copies), multiplies=True)
    return Project(repeated, tuple((key, named(key)) for _, key in result)), result


def _by_output(ordered: exp.Expr, outputs: Outputs) -> exp.Expr:
    """An ORDER BY expression over the outputs of a set operation."""
    copy = ordered.copy()
    by_name = {name.lower(): at for name, at in outputs}
    # In Spark integers are positions, and 1e3 is a constant.
    if copy.this.is_int:
        copy.set("this", named(outputs[int(copy.this.name) - 1][1]))
        return copy
    for column in list(copy.find_all(exp.Column)):
        if column.name.lower() in by_name:
            column.replace(named(by_name[column.name.lower()]))
    return copy
