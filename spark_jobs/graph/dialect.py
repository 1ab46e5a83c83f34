"""Spark SQL for sqlglot: fixes what sqlglot's own dialect lacks, and nothing else."""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, DialectType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel
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
from spark_jobs.graph.written_calls import note_call


class _Reader(SparkParser):
    """Notes each call as it was written."""

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        at, following = self._index, self._next
        called = bool(following) and following.token_type is TokenType.L_PAREN
        found = super()._parse_function_call(*args, **kwargs)
        # ANY, SOME and EXISTS before a query or a list, and SELECT TRANSFORM, are no functions.
        syntax = isinstance(found, exp.SubqueryPredicate | exp.QueryTransform)
        if called and found is not None and not syntax:
            note_call(found, self._tokens, at)
        return found


class _Writer(SparkGenerator):
    """Writes each function under the name by which it was called, with one exception."""

    # Names that are not read again without quotes.
    RESERVED_KEYWORDS: ClassVar[set[str]] = {"not", "select"}
    # Unlike Hive, Spark has WITH in subqueries. At the top, names of two of them would be the same.
    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
    TRANSFORMS = {  # noqa: RUF012
        **SparkGenerator.TRANSFORMS,
        # Spark has QUALIFY. sqlglot's rewriting into a subquery applies LIMIT first, and confuses a
        # column with an output of the same name.
        exp.Select: preprocess(
            [eliminate_distinct_on, unnest_to_explode, any_to_exists],
        ),
        # With all arguments that Spark accepts.
        exp.ArgMax: lambda self, one: self.func("MAX_BY", *one.iter_expressions()),
        exp.ArgMin: lambda self, one: self.func("MIN_BY", *one.iter_expressions()),
        exp.Levenshtein: lambda self, one: self.func("LEVENSHTEIN", *one.iter_expressions()),
        exp.ToChar: lambda self, one: self.func(self.function_name(one), *one.iter_expressions()),
    }

    def function_name(self, expression: exp.Func) -> str:
        # named_struct('a', x) was parsed as struct(x AS a).
        return "STRUCT" if isinstance(expression, exp.Struct) else super().function_name(expression)


class LakehouseSpark(Spark):
    """Spark's dialect, with ``window(...)`` allowed wherever a function is.

    There sqlglot takes the word for the start of a WINDOW clause. Only a call has a parenthesis
    right after the word, by which the tokenizer recognises it.
    """

    # Key of a call's metadata with its name as written.
    ORIGINAL_NAME_META_KEY = "name"
    Parser = _Reader
    Generator = _Writer
    EXPRESSION_METADATA = {**Spark.EXPRESSION_METADATA, **overrides()}  # noqa: RUF012

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        tokens = super().tokenize(sql, dialect)
        for token, following in pairwise(tokens):
            if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
                token.token_type = TokenType.VAR
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
    >>> to_sql(parse("select a as b from x qualify rank() over (order by x.b) = 1 limit 2"))
    'SELECT a AS b FROM x QUALIFY RANK() OVER (ORDER BY x.b) = 1 LIMIT 2'
    """
    return _parsed(sql).copy()


@lru_cache(maxsize=32)
def _parsed(sql: str) -> exp.Expr:
    """The tree of a statement, which one step after the other asks for."""
    return sqlglot.parse_one(sql, dialect=dialect())


def to_sql(tree: exp.Expr, *, pretty: bool = False) -> str:
    """Write Spark SQL without comments; unsupported nodes raise an error."""
    return tree.sql(
        dialect=dialect(), pretty=pretty, comments=False, unsupported_level=ErrorLevel.RAISE
    )
