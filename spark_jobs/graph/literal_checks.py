"""Checks literals of dates, times and intervals.

sqlglot turns them into casts, whose text can be anything. So the tokens of the file are checked,
not the tree. Only definite mistakes are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import LiteralError

_TIMES: Final = ("timestamp", "timestamp_ntz", "timestamp_ltz")
_WORDS: Final = ("epoch", "now", "today", "tomorrow", "yesterday")
_DATE: Final = re.compile(r"[+-]?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_DAY_FIRST: Final = re.compile(r"[+-]?(\d{4,6})-(\d{1,2})-(\d{1,2})(?:$|[ T])")
_CLOCK: Final = re.compile(r"(?:^|[ T])(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?(?=$|[^\d:])")
_UNITS: Final = (
    "year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond",
)  # fmt: skip
_OF_MONTHS: Final = frozenset({"year", "month"})
_PART: Final = re.compile(r"[+-]?\s*(\d+\.?\d*|\.\d+)\s+([a-z]+?)s?(?:\s+|$)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\s*[+-]?\s*(?:\d+\.?\d*|\.\d+)\s*")
_HINTS: Final = {
    "DATE": "Write DATE '2026-01-31'.",
    "TIMESTAMP": "Write TIMESTAMP '2026-01-31 23:59:59'.",
    "INTERVAL": (
        "Write INTERVAL 2 DAYS, or INTERVAL '1 day 2 hours'; only seconds have a fraction, months "
        "and days are intervals of their own, and a quarter is 3 months."
    ),
}


def check_literals(
    tokens: Sequence[Token], source: SqlText, subject: str
) -> Iterator[LakehouseError]:
    """Report invalid literals of dates, times and intervals."""
    for at, (word, value) in enumerate(pairwise(tokens)):
        kind, following = word.text.lower(), tokens[at + 2 : at + 4]
        if kind == "interval" and value.token_type is TokenType.NUMBER:
            right, shown = _is_length(value.text, following), "INTERVAL"
        elif value.token_type is not TokenType.STRING:
            continue
        elif kind == "date":
            right, shown = _day(value.text), "DATE"
        elif kind in _TIMES:
            right, shown = _time(value.text), "TIMESTAMP"
        elif kind == "interval":
            right, shown = _length(value.text, following), "INTERVAL"
        else:
            continue
        if not right:
            yield LiteralError(
                subject,
                _shown(word, value, following),
                hint=_HINTS[shown],
                location=source.at(word.start),
            )


def _day(text: str) -> bool:
    text = text.strip()
    if text.lower().startswith(_WORDS):
        return True
    found = _DATE.fullmatch(text)
    return found is not None and _exists(found[1], found[2], found[3])


def _time(text: str) -> bool:
    text = text.strip()
    if text.lower().startswith(_WORDS):
        return True
    day, clock = _DAY_FIRST.match(text), _CLOCK.search(text)
    if day is not None and not _exists(day[1], day[2], day[3]):
        return False
    if clock is None:
        return any(one.isdigit() for one in text)
    hours, minutes, seconds = (int(one or 0) for one in clock.groups())
    return hours < 24 and minutes < 60 and seconds < 60


def _exists(year: str, month: str | None, day: str | None) -> bool:
    """Whether the day exists in the calendar, which repeats after 400 years."""
    try:
        date(2000 + int(year) % 400, int(month or 1), int(day or 1))
    except ValueError:
        return False
    return True


def _length(text: str, following: Sequence[Token]) -> bool:
    words = [one.text.lower() for one in following]
    if words[1:] == ["to"]:
        return any(one.isdigit() for one in text)
    if _is_unit(following):
        return _NUMBER.fullmatch(text) is not None and _is_length(text, following)
    return _is_text_of_length(text.strip())


def _is_length(number: str, following: Sequence[Token]) -> bool:
    return _is_unit(following) and ("." not in number or _unit(following[0]) == "second")


def _is_text_of_length(text: str) -> bool:
    text = re.sub(r"^interval\s+", "", text, flags=re.IGNORECASE)
    found = list(_PART.finditer(text))
    units = [one[2].lower() for one in found]
    whole = "".join(one[0] for one in found) == text and bool(found)
    fractions = all(
        "." not in one[1] or unit == "second" for one, unit in zip(found, units, strict=True)
    )
    months = {unit in _OF_MONTHS for unit in units}
    return whole and fractions and len(months) == 1 and set(units) <= set(_UNITS)


def _unit(token: Token) -> str:
    return token.text.lower().removesuffix("s")


def _is_unit(following: Sequence[Token]) -> bool:
    return bool(following) and _unit(following[0]) in _UNITS


def _shown(word: Token, value: Token, following: Sequence[Token]) -> str:
    if value.token_type is TokenType.STRING:
        return f"{word.text.upper()} '{value.text}'"
    unit = "".join(f" {one.text.upper()}" for one in following[:1] if one.text.isalpha())
    return f"{word.text.upper()} {value.text}{unit}"
