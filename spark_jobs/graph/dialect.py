"""Spark SQL for sqlglot: fixes what sqlglot's own dialect lacks, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, DialectType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel
from sqlglot.generators.hive import HiveGenerator
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.transforms import (
    any_to_exists,
    eliminate_distinct_on,
    preprocess,
    unnest_to_explode,
)

from spark_jobs.graph.inference import overrides
from spark_jobs.graph.interval_texts import with_plain_number
from spark_jobs.graph.written_calls import count_arguments, note_call, note_path, truncation

_SUM = re.compile(r"([\d.]*e[+-]?\d+)([+-])(.+)", re.IGNORECASE)
_WORD = re.compile(r"\w+", re.ASCII)
_SIGNS = {"+": TokenType.PLUS, "-": TokenType.DASH}
_BASES = frozenset({TokenType.HEX_STRING, TokenType.BIT_STRING})
# Key of the metadata of an interval of several units.
_UNITS = "units"
# Operators on bits, the loosest first. Shifts bind tighter than all of them.
_BITS: dict[TokenType, tuple[int, type[exp.Binary]]] = {
    TokenType.PIPE: (0, exp.BitwiseOr),
    TokenType.CARET: (1, exp.BitwiseXor),
    TokenType.AMP: (2, exp.BitwiseAnd),
}
_SHIFT_RANK = 3
_COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    **SparkParser.EQUALITY,
    **SparkParser.COMPARISON,
}
# Types of which Hive's generator writes some otherwise than sqlglot's own.
_AS_IN_HIVE = frozenset(
    {*exp.DataType.TEXT_TYPES, *exp.DataType.TEMPORAL_TYPES, exp.DType.FLOAT},
)
# Of literals that are integers.
_SUFFIXES = frozenset({"L", "S", "Y"})


class _Reader(SparkParser):
    """Notes each call as it was written."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        **SparkParser.FUNCTIONS,
        "DATE_TRUNC": truncation("DATE_TRUNC", unit=0),
        "TRUNC": truncation("TRUNC", unit=1),
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        **SparkParser.FUNCTION_PARSERS,
        "PERCENTILE": lambda self: self._percentile(),
    }
    COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
        **SparkParser.COLUMN_OPERATORS,
        TokenType.DCOLON: lambda self, value, kind: self._cast_or_literal(value, kind),
    }
    COLON_IS_VARIANT_EXTRACT = True
    # In Spark || binds as tightly as +, and not less.
    TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {
        **SparkParser.TERM,
        TokenType.DPIPE: exp.DPipe,
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **SparkParser.UNARY_PARSERS,
        # A sign changes types: of a text, and of a literal beside a decimal.
        TokenType.PLUS: lambda self: exp.Anonymous(
            this="POSITIVE", expressions=[self._parse_unary()]
        ),
        TokenType.DASH: lambda self: self._negative(),
    }

    def _negative(self) -> exp.Expr:
        """Read a sign, which is a part of the number that follows: ``-1::STRING`` is '-1'."""
        # The tokenizer makes a cast of a literal like 3L, at one place.
        is_number = self._curr.token_type is TokenType.NUMBER
        is_number = is_number and self._next.start != self._curr.start
        found: Any = self._parse_unary()
        inner = found
        while is_number and isinstance(inner, exp.Cast):
            inner = inner.this
        if inner is found:
            return self.expression(exp.Neg(this=found))
        inner.replace(exp.Neg(this=inner.copy()))
        return found  # type: ignore[no-any-return]

    def _parse_equality(self, parse_is: bool = True) -> Any:  # noqa: ARG002, FBT001, FBT002
        """Read comparisons from left to right, and then a predicate: ``a = b < c IN (TRUE)``.

        sqlglot reads ``a = (b < (c IN (TRUE)))``.
        """
        found: Any = self._parse_bitwise()
        while self._match_set(_COMPARISONS):
            made, comments = _COMPARISONS[self._prev.token_type], self._prev_comments
            found = self._build_predicate(made, found, self._parse_bitwise(), comments=comments)
        return self._parse_range(found, parse_is=True)

    def _parse_bitwise(self, least: int = 0) -> Any:
        """Read operators on bits by Spark's precedence; sqlglot gives all of them the same.

        Args:
            least: read only operators of this rank and tighter ones.
        """
        found: Any = self._parse_term()
        while True:
            rank, made = _BITS.get(self._curr.token_type, (_SHIFT_RANK, None))
            if rank < least:
                return found
            if made is not None:
                self._advance()
                right = self._parse_bitwise(rank + 1)
                found = self.expression(made(this=found, expression=right))
            elif self._match_pair(TokenType.LT, TokenType.LT):
                found = self.expression(
                    exp.BitwiseLeftShift(this=found, expression=self._parse_term())
                )
            elif self._match_pair(TokenType.GT, TokenType.GT):
                unsigned = self._match(TokenType.GT)
                right = self._parse_term()
                if unsigned:
                    found = exp.Anonymous(this="SHIFTRIGHTUNSIGNED", expressions=[found, right])
                else:
                    found = self.expression(exp.BitwiseRightShift(this=found, expression=right))
            else:
                return found

    def _parse_interval(self, *args: Any, **kwargs: Any) -> Any:
        """Read an interval; that of several units is one value, and not the sum of sqlglot."""
        found = super()._parse_interval(*args, **kwargs)
        if not isinstance(found, exp.Add):
            return found
        whole = exp.Paren(this=found)
        whole.meta[_UNITS] = True
        return whole

    def _parse_interval_span(self, this: exp.Expr, *args: Any, **kwargs: Any) -> exp.Interval:
        """Read the length of an interval: sqlglot drops the sign of '- 1 day'."""
        parts = exp.INTERVAL_STRING_RE.findall(this.name) if this.is_string else []
        if len(parts) == 1 and exp.INTERVAL_STRING_RE.fullmatch(this.name) is None:
            this = exp.Literal.string(with_plain_number(this.name))
        return super()._parse_interval_span(this, *args, **kwargs)

    def _replace_lambda(self, node: exp.Expr | None, expressions: list[exp.Expr]) -> Any:
        """Find the arguments of a lambda, whose names may be in any case."""
        names = {one.name.lower(): one.name for one in expressions}
        for column in node.find_all(exp.Column) if node is not None else ():
            first = column.parts[0]
            first.set("this", names.get(first.name.lower(), first.name))
        return super()._replace_lambda(node, expressions)

    def _cast_or_literal(self, value: exp.Expr, kind: exp.Expr) -> exp.Expr:
        """Read a cast, or a literal like 3L, which the tokenizer made one.

        Beside a decimal, Spark gives a literal the type of its digits, and a cast that of its type.
        """
        found: exp.Expr = self.build_cast(strict=self.STRICT_CAST, this=value, to=kind)
        suffix = self._prev.text.upper()
        if suffix in _SUFFIXES:
            found.set("suffix", suffix)
        return found

    def _parse_colon_as_variant_extract(self, this: Any) -> Any:
        """Read ``v:a.b[0]`` as the call that Spark makes of it: sqlglot knows it as a JSON path."""
        while this is not None and self._match(TokenType.COLON):
            parts = [self._key(".")]
            if not parts[0]:
                parts = [self._subscript()]
            while self._curr.token_type in {TokenType.DOT, TokenType.L_BRACKET}:
                parts.append(self._key(".") if self._match(TokenType.DOT) else self._subscript())
            if not all(parts):
                self.raise_error("Expected a name or a number in the path of a variant")
            path = exp.Literal.string("$" + "".join(parts))
            kind = exp.Literal.string("variant")
            call = exp.Anonymous(this="VARIANT_GET", expressions=[this, path, kind])
            note_path(call, path.name)
            this = self._parse_column_ops(call)
        return this

    def _key(self, sign: str) -> str:
        """A name in a path, with a sign before it; "" if there is none without quotes."""
        found: Any = self._parse_id_var(any_token=False)
        plain = found is not None and not found.quoted and _WORD.fullmatch(found.name)
        return f"{sign}{found.name}" if plain else ""

    def _subscript(self) -> str:
        """A number or a text in brackets; "" if there is none."""
        if not self._match(TokenType.L_BRACKET):
            return ""
        key: Any = self._parse_primary()
        plain = isinstance(key, exp.Literal) and (key.is_string or key.is_int)
        plain = plain and not {"'", "\\"} & set(key.name)
        if not plain or not self._match(TokenType.R_BRACKET):
            return ""
        return f"['{key.name}']" if key.is_string else f"[{key.name}]"

    def _percentile(self) -> exp.Expr:
        """Read PERCENTILE with its third argument, the frequency, which sqlglot drops."""
        if count_arguments(self._tokens, self._index - 1) in {0, 1, 2}:
            return SparkParser.FUNCTION_PARSERS["PERCENTILE"](self)  # type: ignore[no-any-return]
        return exp.Anonymous(this="PERCENTILE", expressions=self._parse_function_args())

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        at, following = self._index, self._next
        called = bool(following) and following.token_type is TokenType.L_PAREN
        found = super()._parse_function_call(*args, **kwargs)
        # ANY, SOME and EXISTS before a query or a list, and SELECT TRANSFORM, are no functions.
        syntax = isinstance(found, exp.SubqueryPredicate | exp.QueryTransform)
        if called and found is not None and not syntax:
            note_call(found, self._tokens, at)
        return found


def _logarithm(writer: SparkGenerator, call: exp.Log) -> str:
    name = writer.function_name(call).upper()
    if name in {"LOG2", "LOG10"} and call.expression is not None:
        return writer.func(name, call.expression)
    return writer.log_sql(call)


def _text_of_values(writer: SparkGenerator, call: exp.GroupConcat) -> str:
    """LISTAGG; without a separator Spark has none, and sqlglot a comma."""
    if call.args.get("separator") is None:
        call = call.copy()
        call.set("separator", exp.Literal.string(""))
    return str(SparkGenerator.TRANSFORMS[exp.GroupConcat](writer, call))


class _Writer(SparkGenerator):
    """Writes each function under the name by which it was called, with one exception."""

    # Names that are not read again without quotes.
    RESERVED_KEYWORDS: ClassVar[set[str]] = {"not", "select"}
    # Unlike Hive, Spark has WITH in subqueries. At the top, names of two of them would be the same.
    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
    PARSE_JSON_NAME = "PARSE_JSON"
    # Spark has TIME, and Hive has not.
    TYPE_MAPPING: ClassVar[dict[exp.DType, str]] = {
        kind: name
        for kind, name in SparkGenerator.TYPE_MAPPING.items()
        if kind is not exp.DType.TIME
    }
    TRANSFORMS = {  # noqa: RUF012
        # Spark has WITHIN GROUP. sqlglot writes approximations of percentiles instead.
        **{k: v for k, v in SparkGenerator.TRANSFORMS.items() if k is not exp.WithinGroup},
        # Spark has QUALIFY. sqlglot's rewriting into a subquery applies LIMIT first, and confuses a
        # column with an output of the same name.
        exp.Select: preprocess(
            [eliminate_distinct_on, unnest_to_explode, any_to_exists],
        ),
        # With all arguments that Spark accepts.
        exp.ArgMax: lambda self, one: self.func("MAX_BY", *one.iter_expressions()),
        exp.ArgMin: lambda self, one: self.func("MIN_BY", *one.iter_expressions()),
        exp.Levenshtein: lambda self, one: self.func("LEVENSHTEIN", *one.iter_expressions()),
        # The logarithm to a base is a quotient, which differs in the last digit.
        exp.Log: _logarithm,
        exp.JSONFormat: lambda self, one: self.func("TO_JSON", one.this, one.args.get("options")),
        exp.UnixDate: lambda self, one: self.func("UNIX_DATE", one.this),
        exp.GroupConcat: _text_of_values,
        exp.ToChar: lambda self, one: self.func(self.function_name(one), *one.iter_expressions()),
    }

    def identifier_sql(self, expression: exp.Identifier) -> str:
        """Quote each name that needs it: those that sqlglot makes of a star are not marked."""
        if not expression.quoted and not _WORD.fullmatch(expression.name):
            expression = exp.to_identifier(expression.name, quoted=True)
        return str(super().identifier_sql(expression))

    def datatype_sql(self, expression: exp.DataType) -> str:
        """Hive's generator parses a text for each type, to see whether it is a FLOAT."""
        plain = expression.this is exp.DType.TEXT and not expression.expressions
        if expression.this in _AS_IN_HIVE and not plain:
            return str(super().datatype_sql(expression))
        return str(super(HiveGenerator, self).datatype_sql(expression))

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        if expression.args.get("suffix"):
            return f"{self.sql(expression, 'this')}{expression.args['suffix']}"
        return str(super().cast_sql(expression, safe_prefix=safe_prefix))

    def paren_sql(self, expression: exp.Paren) -> str:
        if expression.meta.get(_UNITS):
            # Literal, because the bound of a window must be one.
            parts = [self.sql(one) for one in expression.find_all(exp.Interval)]
            return " ".join([parts[0], *(one.removeprefix("INTERVAL ") for one in parts[1:])])
        return str(super().paren_sql(expression))

    def function_name(self, expression: exp.Func) -> str:
        # named_struct('a', x) was parsed as struct(x AS a).
        return "STRUCT" if isinstance(expression, exp.Struct) else super().function_name(expression)


def _numbers(token: Token) -> Iterator[Token]:
    """The tokens of a number: sqlglot reads ``1e0+3`` as one."""
    found = _SUM.fullmatch(token.text) if token.token_type is TokenType.NUMBER else None
    if found is None:
        yield token
        return
    kinds = (TokenType.NUMBER, _SIGNS[found[2]], TokenType.NUMBER)
    for group, kind in enumerate(kinds, start=1):
        start = token.start + found.start(group)
        column = token.col - len(token.text) + found.end(group)
        part = Token(kind, found[group], token.line, column, start, start + len(found[group]) - 1)
        yield from _numbers(part)


class LakehouseSpark(Spark):
    """Spark's dialect, with ``window(...)`` allowed wherever a function is.

    There sqlglot takes the word for the start of a WINDOW clause. Only a call has a parenthesis
    right after the word, by which the tokenizer recognises it.
    """

    class Tokenizer(Spark.Tokenizer):
        """A doubled quote is one of the text, as in 'it''s'."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012

    # Key of a call's metadata with its name as written.
    ORIGINAL_NAME_META_KEY = "name"
    Parser = _Reader
    Generator = _Writer
    EXPRESSION_METADATA = {**Spark.EXPRESSION_METADATA, **overrides()}  # noqa: RUF012

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        tokens = [one for token in super().tokenize(sql, dialect) for one in _numbers(token)]
        for token in tokens:
            # 0x1F and 0b1 are names in Spark.
            if token.token_type in _BASES and sql[token.start] == "0":
                token.token_type, token.text = TokenType.VAR, sql[token.start : token.end + 1]
        for token, following in pairwise(tokens):
            if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
                token.token_type = TokenType.VAR
            # TIMESTAMP WITHOUT TIME ZONE.
            if token.token_type is TokenType.TIMESTAMPTZ and following.text.upper() == "WITHOUT":
                token.token_type = TokenType.TIMESTAMPNTZ
        return tokens


@cache
def dialect() -> Dialect:
    """The dialect for reading and writing all SQL."""
    return LakehouseSpark()


def parse(sql: str) -> exp.Expr:
    """Parse one statement that is known to be valid.

    >>> to_sql(parse("select window(t, '1 hour') from x group by window(t, '1 hour')"))
    "SELECT WINDOW(t, '1 hour') FROM x GROUP BY WINDOW(t, '1 hour')"
    >>> to_sql(parse("select nvl(a, b), named_struct('c', a) from x"))
    'SELECT NVL(a, b), STRUCT(a AS c) FROM x'
    >>> to_sql(parse("select a as `select` from (with b as (select 1 as a) select a from b) as c"))
    'SELECT a AS `select` FROM (WITH b AS (SELECT 1 AS a) SELECT a FROM b) AS c'
    >>> to_sql(parse("select max_by(a, b, 2), to_char(a, '99') from x"))
    "SELECT MAX_BY(a, b, 2), TO_CHAR(a, '99') FROM x"
    >>> to_sql(parse("select a / 3L, a / cast(3 as bigint), a / -3s, a / +3 from x"))
    'SELECT a / 3L, a / CAST(3 AS BIGINT), a / -3S, a / POSITIVE(3) FROM x'
    >>> to_sql(parse("select 2 * 1e0+3, 1e-2-a from x"))
    'SELECT 2 * 1e0 + 3, 1e-2 - a FROM x'
    >>> to_sql(parse("select -1.50bd, -3l from x"))
    "SELECT -CAST('1.50' AS DECIMAL(3, 2)), -3L FROM x"
    >>> to_sql(parse("select -1::string, t - interval 1 day 2 hours, f(b, A -> a + 1) from x"))
    "SELECT CAST(-1 AS STRING), t - INTERVAL '1' DAY '2' HOURS, F(b, A -> A + 1) FROM x"
    >>> to_sql(parse("select t + interval '- 1 day', t + interval '+.5 seconds' from x"))
    "SELECT t + INTERVAL '-1' DAY, t + INTERVAL '0.5' SECONDS FROM x"
    >>> to_sql(parse("select f(v):a.B[0]::int + 1 from x"))
    "SELECT CAST(VARIANT_GET(F(v), '$.a.B[0]', 'variant') AS INT) + 1 FROM x"
    >>> to_sql(parse("select a as b from x qualify rank() over (order by x.b) = 1 limit 2"))
    'SELECT a AS b FROM x QUALIFY RANK() OVER (ORDER BY x.b) = 1 LIMIT 2'
    """
    return _parsed(sql).copy()


@lru_cache(maxsize=32)
def _parsed(sql: str) -> exp.Expr:
    """The tree of a statement, which one step after the other asks for."""
    return sqlglot.parse_one(sql, dialect=dialect())


def to_sql(tree: exp.Expr, *, pretty: bool = False, copy: bool = True) -> str:
    """Write Spark SQL without comments, of a copy; unsupported nodes raise an error."""
    writer = dialect().generator(pretty=pretty, comments=False, unsupported_level=ErrorLevel.RAISE)
    return str(writer.generate(tree, copy=copy))
