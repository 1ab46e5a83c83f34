"""Replaces reads of the clock by a literal, so that retries and verification see one time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.parsing import SqlText, plain_sql

# Functions that read the clock if called without arguments, and the form of their value.
_CALLS: Final = {
    "current_timestamp": "TIMESTAMP '{:%Y-%m-%d %H:%M:%S.%f}+00:00'",
    "now": "TIMESTAMP '{:%Y-%m-%d %H:%M:%S.%f}+00:00'",
    "localtimestamp": "TIMESTAMP_NTZ '{:%Y-%m-%d %H:%M:%S.%f}'",
    "current_date": "DATE '{:%Y-%m-%d}'",
    "curdate": "DATE '{:%Y-%m-%d}'",
    "unix_timestamp": "UNIX_TIMESTAMP(TIMESTAMP '{:%Y-%m-%d %H:%M:%S.%f}+00:00')",
}
_BARE: Final = frozenset({"current_timestamp", "current_date", "localtimestamp"})
# After one of these tokens a word is a name, not a function.
_BEFORE_NAMES: Final = frozenset({TokenType.DOT, TokenType.ALIAS})


def freeze_clock(query: str, instant: datetime) -> str:
    """The query with each read of the clock replaced by one instant, in UTC.

    Every other word stays as it was written, so that Spark runs what the user wrote. Comments and
    hints are left out.

    >>> from datetime import UTC, datetime
    >>> freeze_clock("SELECT current_date - d AS age FROM t", datetime(2026, 1, 2, tzinfo=UTC))
    "SELECT DATE '2026-01-02' - d AS age FROM t"

    Raises:
        SqlSyntaxError: Spark reads the text otherwise than it was checked.
    """
    utc = instant.astimezone(UTC)
    query = plain_sql(SqlText("query", query))
    tokens = dialect().tokenize(query)
    for index in reversed(range(len(tokens))):
        length = _reading(tokens, index)
        if length:
            value = _CALLS[tokens[index].text.lower()].format(utc)
            start, end = tokens[index].start, tokens[index + length - 1].end + 1
            query = query[:start] + value + query[end:]
    return query


def _reading(tokens: Sequence[Token], index: int) -> int:
    """The number of tokens from here on that read the clock; 0 if none."""
    token = tokens[index]
    word = token.text.lower()
    quoted = token.token_type in {TokenType.IDENTIFIER, TokenType.STRING}
    if quoted or word not in _CALLS:
        return 0
    if index and tokens[index - 1].token_type in _BEFORE_NAMES:
        return 0
    following = [one.token_type for one in tokens[index + 1 : index + 3]]
    if following == [TokenType.L_PAREN, TokenType.R_PAREN]:
        return 3
    return 1 if word in _BARE and following[:1] != [TokenType.L_PAREN] else 0
