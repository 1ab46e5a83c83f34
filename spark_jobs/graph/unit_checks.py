"""Checks the units of date functions, of which sqlglot knows more than Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import LiteralError
from spark_jobs.graph.written_calls import count_arguments

# Those whose unit is a word of the syntax, if they have three arguments.
_MOVING: Final = frozenset(
    {"dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff"}
)
_WITHOUT_A_UNIT: Final = frozenset({"dateadd", "date_add", "datediff", "date_diff"})
_UNITS: Final = (
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND",
    "MILLISECOND", "MICROSECOND",
)  # fmt: skip
_PARTS: Final = frozenset([
    "year", "y", "years", "yr", "yrs", "yearofweek", "quarter", "qtr", "month", "mon", "mons",
    "months", "week", "w", "weeks", "day", "d", "days", "dayofweek", "dow", "dayofweek_iso",
    "dow_iso", "doy", "hour", "h", "hours", "hr", "hrs", "minute", "m", "min", "mins", "minutes",
    "second", "s", "sec", "seconds", "secs",
])  # fmt: skip
_HINT_OF_UNIT: Final = f"Write the unit as one of these words, without quotes: {', '.join(_UNITS)}."
_HINT_OF_PART: Final = (
    "Parts are YEAR, QUARTER, MONTH, WEEK, DAY, DOW, DOW_ISO, DOY, YEAROFWEEK, HOUR, MINUTE and "
    "SECOND; UNIX_TIMESTAMP(…) gives the seconds of the epoch."
)


def check_units(tokens: Sequence[Token], source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report units of DATEADD, DATEDIFF, EXTRACT, DATE_PART and the like that Spark lacks."""
    for at, (word, opening) in enumerate(pairwise(tokens)):
        if opening.token_type is not TokenType.L_PAREN or at + 3 >= len(tokens):
            continue
        name, unit, behind = word.text.lower(), tokens[at + 2], tokens[at + 3]
        if name in _MOVING:
            right = not _has_unit(name, tokens, at + 1) or (
                behind.token_type is TokenType.COMMA and _is_word(unit, _UNITS)
            )
            hint = _HINT_OF_UNIT
        elif name == "extract" and behind.token_type is TokenType.FROM:
            right, hint = _is_word(unit, _PARTS), _HINT_OF_PART
        elif name in {"date_part", "datepart"} and behind.token_type is TokenType.COMMA:
            is_text = unit.token_type is TokenType.STRING
            right, hint = not is_text or unit.text.lower() in _PARTS, _HINT_OF_PART
        else:
            continue
        if not right:
            shown = f"{name.upper()}({source.text[unit.start : unit.end + 1]} …)"
            yield LiteralError(subject, shown, hint=hint, location=source.at(unit.start))


def _has_unit(name: str, tokens: Sequence[Token], at: int) -> bool:
    """Whether a call has a unit: that of two arguments is one of days."""
    return name not in _WITHOUT_A_UNIT or count_arguments(list(tokens), at) == 3


def _is_word(token: Token, words: Sequence[str] | frozenset[str]) -> bool:
    """Whether a token is one of some words, without quotes of any kind."""
    quoted = token.token_type in {TokenType.STRING, TokenType.IDENTIFIER}
    return not quoted and token.text.lower() in {one.lower() for one in words}
