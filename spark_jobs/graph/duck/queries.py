"""Translates whole queries: the SELECTs of relations and changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.closed import check_closed
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.expressions import Expressions
from spark_jobs.graph.duck.kinds import INT, Kind, common_kind, kind_of
from spark_jobs.graph.duck.typed import Typed, converted, quoted
from spark_jobs.graph.duck.windows import ordered, sort_direction

# Column types by lower-case relation name; None for a column that DuckDB cannot read.
Known = Mapping[str, Mapping[str, Kind | None]]
_JOINS = {
    ("", ""): "INNER JOIN",
    ("", "INNER"): "INNER JOIN",
    ("", "CROSS"): "CROSS JOIN",
    ("LEFT", ""): "LEFT JOIN",
    ("LEFT", "OUTER"): "LEFT JOIN",
    ("LEFT", "SEMI"): "SEMI JOIN",
    ("LEFT", "ANTI"): "ANTI JOIN",
}


@dataclass(frozen=True)
class Translated:
    """A query for DuckDB, with the Spark types of its columns by lower-case name."""

    sql: str
    columns: Mapping[str, Kind]

    def renamed(self, names: Mapping[str, str]) -> Translated:
        """Select and rename columns; ``names`` maps new names to old ones, in output order."""
        columns = {name.lower(): self.columns[at.lower()] for name, at in names.items()}
        text = ", ".join(f"{quoted(at.lower())} AS {quoted(name)}" for name, at in names.items())
        return Translated(f"SELECT {text} FROM ({self.sql}) AS t", columns)

    def typed_as(self, types: Mapping[str, str], *more: str) -> str:
        """Cast to the columns of a table, in its order; a value that does not fit is an error.

        Args:
            types: Spark SQL types of the table's columns, by name.
            more: further expressions to select, in DuckDB's SQL.

        Raises:
            NotTranslatedError: a column is missing, or its type cannot be converted.
        """
        selected = []
        for name, text in types.items():
            given, kind = self.columns.get(name.lower()), kind_of(text)
            if given is None or kind is None:
                raise NotTranslatedError(f"the published column {name}, of type {text}")
            value = converted(Typed(quoted(name.lower()), given), kind)
            selected.append(f"{value.sql} AS {quoted(name)}")
        return f"SELECT {', '.join([*selected, *more])} FROM ({self.sql}) AS t"


def translated(query: exp.Expr, known: Known) -> Translated:
    """Translate a query to DuckDB's SQL.

    >>> from spark_jobs.graph.dialect import parse
    >>> translated(parse("SELECT a FROM t WHERE a > 1"), {"t": {"a": INT}}).columns
    {'a': Kind(name='int', precision=0, scale=0)}

    Args:
        query: in Spark SQL.
        known: the relations that it may read.

    Raises:
        NotTranslatedError: it has something that is not on the closed list.
    """
    check_closed(query)
    return _translated(query, known)


def _translated(query: exp.Expr, known: Known) -> Translated:
    match query:
        case exp.Subquery():
            return _translated(query.this, known)
        case exp.Select():
            return _select(query, known)
        case exp.Union() if not query.args.get("distinct"):
            return _union(query, known)
        case _:
            raise NotTranslatedError(f"{query.key.upper()} as a query")


def _select(query: exp.Select, known: Known) -> Translated:
    columns: dict[tuple[str, str], Kind | None] = {}
    source = _sources(query, known, columns)
    expressions = Expressions(columns)
    grouping = _grouping(query, expressions)
    outputs: dict[str, Typed] = {}
    for one in query.expressions:
        outputs |= _output(one, expressions)
    stars = sum(isinstance(one, exp.Star) for one in query.expressions)
    if len(outputs) < len(query.expressions) + stars * (len(columns) - 1):
        raise NotTranslatedError("two columns of one name")
    distinct = "DISTINCT " if query.args.get("distinct") else ""
    if distinct:
        for value in outputs.values():
            _check_compared(value)
    text = ", ".join(f"{value.sql} AS {quoted(name)}" for name, value in outputs.items())
    clauses = [
        _condition("WHERE", query.args.get("where"), expressions),
        grouping,
        _condition("HAVING", query.args.get("having"), expressions),
    ]
    rest = " ".join([source, *filter(None, clauses)])
    kinds = {name: value.kind for name, value in outputs.items()}
    for kind in kinds.values():
        kind.in_duckdb  # noqa: B018 - refuses what has no type
    if query.args.get("limit") is None:
        # ORDER BY without LIMIT does not change a multiset.
        return Translated(f"SELECT {distinct}{text}{rest}", kinds)
    if distinct:
        raise NotTranslatedError("LIMIT over different rows")
    return Translated(_first_rows(query, expressions, list(kinds), f"{text}", rest), kinds)


def _first_rows(
    query: exp.Select, expressions: Expressions, names: list[str], text: str, rest: str
) -> str:
    """The first rows of an order; an error at run time if ties leave them undetermined."""
    order, limit = query.args.get("order"), query.args["limit"].expression
    if order is None or not isinstance(limit, exp.Literal) or not limit.name.isdigit():
        raise NotTranslatedError("a LIMIT that is not a number behind an order")
    most = int(limit.name)
    by = [f"__by{at}" for at in range(len(order.expressions))]
    values = ", ".join(
        f"{expressions.typed(one.this).sql} AS {name}"
        for one, name in zip(order.expressions, by, strict=True)
    )
    ways = [sort_direction(one) for one in order.expressions]
    again = ", ".join(f"{name} {one}" for name, one in zip(by, ways, strict=True))
    columns = ", ".join(map(quoted, names))
    first = f"SELECT {text}, {values}{rest}{ordered(order, expressions.typed)} LIMIT {most + 1}"
    tied = "CAST(error('an order that leaves ties') AS BOOLEAN)"
    return (
        f"WITH first_rows AS (SELECT {columns}, rank() OVER (ORDER BY {again}) AS __rank"
        f" FROM ({first}) AS f)"
        f" SELECT {columns} FROM first_rows WHERE __rank <= {most} AND"
        f" CASE WHEN (SELECT count(*) FROM first_rows WHERE __rank <= {most}) > {most}"
        f" THEN {tied} ELSE TRUE END"
    )


def _condition(word: str, clause: exp.Expr | None, expressions: Expressions) -> str:
    return "" if clause is None else f"{word} {expressions.typed(clause.this).sql}"


def _sources(query: exp.Select, known: Known, columns: dict[tuple[str, str], Kind | None]) -> str:
    start = query.args.get("from_")
    if start is None:
        return ""
    text = f" FROM {_relation(start.this, known, columns)}"
    for join in query.args.get("joins") or ():
        before = dict(columns)
        relation = _relation(join.this, known, columns)
        word = _JOINS.get((join.side.upper(), join.kind.upper()))
        if word is None:
            raise NotTranslatedError(f"{join.side} {join.kind} JOIN")
        condition = join.args.get("on")
        if condition is None and word != "CROSS JOIN":
            raise NotTranslatedError("a join without a condition")
        text += f" {word} {relation}"
        if condition is not None:
            text += f" ON {Expressions(columns).typed(condition).sql}"
        if word in {"SEMI JOIN", "ANTI JOIN"}:
            columns.clear()
            columns.update(before)
    return text


def _relation(node: exp.Expr, known: Known, columns: dict[tuple[str, str], Kind | None]) -> str:
    alias = node.alias_or_name.lower()
    found: Mapping[str, Kind | None]
    match node:
        case exp.Subquery():
            inner = _translated(node.this, known)
            found = inner.columns
            text = f"({inner.sql})"
        case exp.Table() if node.name.lower() in known:
            found = known[node.name.lower()]
            text = quoted(node.name.lower())
        case _:
            raise NotTranslatedError(f"the relation {to_sql(node)}")
    if any(one == alias for one, _ in columns):
        raise NotTranslatedError(f"two relations called {alias}")
    columns.update({(alias, name): kind for name, kind in found.items()})
    return f"{text} AS {quoted(alias)}"


def _output(node: exp.Expr, expressions: Expressions) -> dict[str, Typed]:
    if isinstance(node, exp.Star):
        return {
            name: expressions.typed(exp.column(name, table=table))
            for table, name in expressions.columns
        }
    value = node.unalias()
    name = node.output_name.lower()
    if not name:
        raise NotTranslatedError(f"a column without a name: {to_sql(node)}")
    if isinstance(value, exp.Explode):
        return {name: _repeated(value, expressions)}
    return {name: expressions.typed(value)}


def _repeated(node: exp.Explode, expressions: Expressions) -> Typed:
    """Repeat a row n times: EXPLODE(SEQUENCE(1, n))."""
    inner = node.this
    sequence = isinstance(inner, exp.Anonymous) and inner.name.upper() == "SEQUENCE"
    bounds = inner.expressions if sequence else []
    if [one.name for one in bounds[:1]] != ["1"] or len(bounds) != 2:
        raise NotTranslatedError(to_sql(node))
    count = expressions.typed(bounds[1])
    if not count.kind.is_integer:
        raise NotTranslatedError(to_sql(node))
    # For n < 1 Spark counts down, while DuckDB returns no row.
    checked = f"CASE WHEN {count.sql} < 1 THEN CAST(error('a row less than once') AS BIGINT)"
    series = f"generate_series(1::BIGINT, {checked} ELSE CAST({count.sql} AS BIGINT) END)"
    return Typed(f"CAST(unnest({series}) AS INTEGER)", INT)


def _grouping(query: exp.Select, expressions: Expressions) -> str:
    group = query.args.get("group")
    if group is None:
        return ""
    values = [_check_compared(expressions.typed(one)) for one in group.expressions]
    if any(one.literal is not None for one in values):
        raise NotTranslatedError("grouping by a constant")
    return f"GROUP BY {', '.join(one.sql for one in values)}"


def _check_compared(value: Typed) -> Typed:
    if not value.kind.is_compared:
        raise NotTranslatedError(f"groups by {value.kind}")
    return value


def _union(query: exp.Union, known: Known) -> Translated:
    sides = [_translated(one, known) for one in (query.left, query.right)]
    if len(sides[0].columns) != len(sides[1].columns):
        raise NotTranslatedError("UNION of different columns")
    pairs = zip(sides[0].columns.values(), sides[1].columns.values(), strict=True)
    kinds = [common_kind(pair) for pair in pairs]
    parts = []
    for side in sides:
        columns = [
            f"CAST({quoted(name)} AS {kind.in_duckdb})"
            for name, kind in zip(side.columns, kinds, strict=True)
        ]
        parts.append(f"SELECT {', '.join(columns)} FROM ({side.sql})")
    names = list(sides[0].columns)
    outputs = ", ".join(map(quoted, names))
    return Translated(
        f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS u({outputs})",
        dict(zip(names, kinds, strict=True)),
    )
