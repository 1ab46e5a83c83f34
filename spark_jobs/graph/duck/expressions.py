"""Translates scalar expressions: Spark's operators as DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.aggregates import AGGREGATES, aggregate
from spark_jobs.graph.duck.calls import CALLS, call
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.intervals import moved
from spark_jobs.graph.duck.kinds import (
    BOOLEAN,
    DOUBLE,
    NULL,
    STRING,
    Kind,
    has_exact_negative,
    kind_of,
    product_of,
    quotient_of,
    sum_of,
)
from spark_jobs.graph.duck.typed import (
    Typed,
    converted,
    divided,
    exact_literal,
    in_common,
    number,
    quoted,
    text_of,
)
from spark_jobs.graph.duck.windows import windowed

# Types of columns, by relation alias and column name, both in lower case.
Columns = Mapping[tuple[str, str], Kind | None]

_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}
_ARITHMETIC: Mapping[type[exp.Expr], tuple[str, Callable[[Kind, Kind], Kind]]] = {
    exp.Add: ("+", sum_of),
    exp.Sub: ("-", sum_of),
    exp.Mul: ("*", product_of),
}
_MOST_SCALE = 38


@dataclass(frozen=True)
class Expressions:
    """Translates the expressions of one SELECT.

    Attributes:
        columns: columns of its relations.
    """

    columns: Columns

    def typed(self, node: exp.Expr) -> Typed:  # noqa: C901, PLR0911, PLR0912 - one case for each
        """Translate an expression to DuckDB.

        Raises:
            NotTranslatedError: it has something that is not on the closed list.
        """
        kind = type(node)
        if kind in _COMPARISONS:
            return self._compared(node, _COMPARISONS[kind])
        if kind in AGGREGATES:
            return aggregate(node, self.typed)
        if kind in CALLS:
            return call(node, self.typed)
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Paren():
                return self.typed(node.this)
            case exp.Literal() if node.is_string:
                return Typed(text_of(node.name), STRING, node.name)
            case _ if (literal := _number(node)) is not None:
                return literal
            case exp.Null():
                return Typed("NULL", NULL)
            case exp.Boolean():
                return Typed("TRUE" if node.this else "FALSE", BOOLEAN)
            case exp.Neg():
                return self._negative(node)
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._arithmetic(node)
            case exp.Div():
                return self._quotient(node)
            case exp.And() | exp.Or():
                word = "AND" if isinstance(node, exp.And) else "OR"
                sides = [self._condition(one).sql for one in node.flatten()]
                return Typed(f"({f' {word} '.join(sides)})", BOOLEAN)
            case exp.Not():
                return Typed(f"(NOT {self._condition(node.this).sql})", BOOLEAN)
            case exp.Is():
                return self._is(node)
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Like():
                return self._like(node)
            case exp.Cast():
                text = to_sql(node.to)
                wanted = kind_of(text)
                if wanted is None:
                    raise NotTranslatedError(f"a conversion to {text}")
                found = converted(self.typed(node.this), wanted)
                # Of a literal, it is none itself: beside a decimal, its type counts.
                return Typed(found.sql, found.kind)
            case exp.If():
                return self._case([(node.this, node.args["true"])], node.args.get("false"))
            case exp.Case() if node.this is None:
                branches = [(one.this, one.args["true"]) for one in node.args["ifs"]]
                return self._case(branches, node.args.get("default"))
            case exp.Case():
                branches = [
                    (exp.EQ(this=node.this.copy(), expression=one.this.copy()), one.args["true"])
                    for one in node.args["ifs"]
                ]
                return self._case(branches, node.args.get("default"))
            case exp.Window():
                return windowed(node, self.typed)
            case exp.Anonymous() if node.name.upper() == "RAISE_ERROR":
                return self._error(node)
            case exp.Filter() if type(node.this) in AGGREGATES:
                return aggregate(node.this, self.typed, self._condition(node.expression.this).sql)
            case _:
                raise NotTranslatedError(f"{node.key.upper()}: {to_sql(node)}")

    def _column(self, node: exp.Column) -> Typed:
        name, table = node.name.lower(), node.table.lower()
        found = [key for key in self.columns if key[1] == name and table in {"", key[0]}]
        if len(found) != 1:
            raise NotTranslatedError(f"the column {to_sql(node)}")
        kind = self.columns[found[0]]
        if kind is None:
            raise NotTranslatedError(f"the type of {to_sql(node)}")
        return Typed(f"{quoted(found[0][0])}.{quoted(name)}", kind)

    def _condition(self, node: exp.Expr) -> Typed:
        return converted(self.typed(node), BOOLEAN)

    def _between(self, node: exp.Between) -> Typed:
        value = self.typed(node.this)
        if value.kind.is_number:
            # Spark compares a name of the value, which is no literal then.
            value = Typed(value.sql, value.kind)
        # Like Spark: each bound is compared in a common type of its own.
        sides = [
            _compared(value, self.typed(node.args[bound]), word).sql
            for bound, word in (("low", ">="), ("high", "<="))
        ]
        return Typed(f"({' AND '.join(sides)})", BOOLEAN)

    def _compared(self, node: exp.Expr, word: str) -> Typed:
        return _compared(self.typed(node.this), self.typed(node.expression), word)

    def _negative(self, node: exp.Neg) -> Typed:
        if (literal := _number(node.this, "-")) is not None:
            return literal
        value = self.typed(node.this)
        if value.kind != DOUBLE and not has_exact_negative(value.kind):
            raise NotTranslatedError(f"minus {value.kind}")
        # Of a constant, DuckDB's result may have a wider type.
        return Typed(f"CAST(- {value.sql} AS {value.kind.in_duckdb})", value.kind)

    def _arithmetic(self, node: exp.Expr) -> Typed:
        if isinstance(node.expression, exp.Interval) and not isinstance(node, exp.Mul):
            return moved(self.typed(node.this), node.expression, back=isinstance(node, exp.Sub))
        left, right = self.typed(node.this), self.typed(node.expression)
        word, rule = _ARITHMETIC[type(node)]
        if DOUBLE in {left.kind, right.kind}:
            left, right = converted(left, DOUBLE), converted(right, DOUBLE)
            return Typed(f"({left.sql} {word} {right.sql})", DOUBLE)
        if not (left.kind.is_exact and right.kind.is_exact):
            raise NotTranslatedError(f"{left.kind} {word} {right.kind}")
        if left.kind.is_decimal or right.kind.is_decimal:
            left, right = exact_literal(left), exact_literal(right)
        kind = rule(left.kind, right.kind)
        if left.kind.scale + right.kind.scale > _MOST_SCALE:
            raise NotTranslatedError(f"{left.kind} {word} {right.kind}")
        # Exact or an overflow error, then rounded like in Spark.
        return Typed(f"CAST({left.sql} {word} {right.sql} AS {kind.in_duckdb})", kind)

    def _quotient(self, node: exp.Div) -> Typed:
        left, right = self.typed(node.this), self.typed(node.expression)
        if left.kind.is_decimal or right.kind.is_decimal:
            left, right = exact_literal(left), exact_literal(right)
            if left.kind.is_exact and right.kind.is_exact:
                return divided(left, right, quotient_of(left.kind, right.kind))
        left, right = converted(left, DOUBLE), converted(right, DOUBLE)
        zero = f"CASE WHEN {right.sql} = 0 THEN error('DIVIDE_BY_ZERO') ELSE {right.sql} END"
        return Typed(f"({left.sql} / ({zero}))", DOUBLE)

    def _error(self, node: exp.Anonymous) -> Typed:
        texts = [self.typed(one) for one in node.expressions]
        if [one.kind for one in texts] != [STRING]:
            raise NotTranslatedError(to_sql(node))
        # Of NULL, DuckDB would raise no error.
        return Typed(f"error(coalesce({texts[0].sql}, ''))", NULL)

    def _is(self, node: exp.Is) -> Typed:
        value = self.typed(node.this)
        if isinstance(node.expression, exp.Null):
            return Typed(f"({value.sql} IS NULL)", BOOLEAN)
        if isinstance(node.expression, exp.Boolean) and value.kind == BOOLEAN:
            constant = "TRUE" if node.expression.this else "FALSE"
            return Typed(f"({value.sql} IS {constant})", BOOLEAN)
        raise NotTranslatedError(to_sql(node))

    def _in(self, node: exp.In) -> Typed:
        value, *others = in_common([self.typed(one) for one in (node.this, *node.expressions)])
        return Typed(f"({value.sql} IN ({', '.join(one.sql for one in others)}))", BOOLEAN)

    def _like(self, node: exp.Like) -> Typed:
        value, pattern = self.typed(node.this), self.typed(node.expression)
        texts = {value.kind, pattern.kind} == {STRING}
        if not texts or pattern.literal is None or "\\" in pattern.literal:
            raise NotTranslatedError(to_sql(node))
        word = "NOT LIKE" if node.args.get("negate") else "LIKE"
        return Typed(f"({value.sql} {word} {pattern.sql})", BOOLEAN)

    def _case(self, branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> Typed:
        conditions = [self._condition(one).sql for one, _ in branches]
        values = [self.typed(one) for _, one in branches]
        values.append(Typed("NULL", NULL) if default is None else self.typed(default))
        *given, other = in_common(values)
        whens = " ".join(
            f"WHEN {when} THEN {then.sql}" for when, then in zip(conditions, given, strict=True)
        )
        return Typed(f"(CASE {whens} ELSE {other.sql} END)", other.kind)


def _compared(left: Typed, right: Typed, word: str) -> Typed:
    values = [left, right]
    if any(one.kind.is_decimal for one in values):
        values = [exact_literal(one) for one in values]
    left, right = in_common(values)
    return Typed(f"({left.sql} {word} {right.sql})", BOOLEAN)


def _number(node: exp.Expr, sign: str = "") -> Typed | None:
    """A numeric literal, like 3 or 3L; None for anything else, also for a cast literal."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return number(f"{sign}{node.name}")
    suffix = node.args.get("suffix")
    kind = kind_of(to_sql(node.args["to"])) if suffix else None
    if kind is None:
        return None
    found = number(f"{sign}{node.name}")
    # Beside a decimal, Spark counts the digits of all literals but those of a TINYINT.
    return Typed(converted(found, kind).sql, kind, None if suffix == "Y" else found.literal)
