"""Spark's SQL as this project reads it: what sqlglot's own dialect lacks, and nothing else."""

from __future__ import annotations

from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, DialectType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel
from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.graph.inference import overrides


class LakehouseSpark(Spark):
    """Spark with ``window(...)`` in every place where a function may stand.

    sqlglot takes the word for the start of a WINDOW clause there. Only a call has a parenthesis
    right behind the word, so the token alone decides.
    """

    # Functions are written back under the name by which they were called.
    ORIGINAL_NAME_META_KEY = "name"
    EXPRESSION_METADATA = {**Spark.EXPRESSION_METADATA, **overrides()}  # noqa: RUF012

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        tokens = super().tokenize(sql, dialect)
        for token, following in pairwise(tokens):
            if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
                token.token_type = TokenType.VAR
        return tokens


def dialect() -> Dialect:
    """The dialect in which all SQL is read and written."""
    return LakehouseSpark()


def parse(sql: str) -> exp.Expr:
    """Parse one statement that is known to be right.

    >>> to_sql(parse("select window(t, '1 hour') from x group by window(t, '1 hour')"))
    "SELECT WINDOW(t, '1 hour') FROM x GROUP BY WINDOW(t, '1 hour')"
    """
    return sqlglot.parse_one(sql, dialect=dialect())


def to_sql(tree: exp.Expr, *, pretty: bool = False) -> str:
    """Write Spark SQL without comments; what cannot be written is an error, never a warning."""
    return tree.sql(
        dialect=dialect(), pretty=pretty, comments=False, unsupported_level=ErrorLevel.RAISE
    )
