"""Durations as text: ``15 minutes``, ``1 day 12 hours``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

# The same as a pattern without flags, for JSON Schema.
_UNIT = "|".join(
    "".join(f"[{one}{one.upper()}]" for one in unit)
    for unit in ("second", "minute", "hour", "day", "week")
)
_WRITTEN = rf"\d+\s*(?:{_UNIT})[sS]?"
DURATION_PATTERN: Final = rf"^\s*{_WRITTEN}(?:\s+{_WRITTEN})*\s*$"
_PART = re.compile(r"(\d+)\s*(second|minute|hour|day|week)s?")
_UNITS = (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60))
_WHOLE = re.compile(rf"{_PART.pattern}(?:\s+{_PART.pattern})*")


def parse_duration(text: str) -> timedelta | None:
    """Parse a duration; None if the text is none, or zero.

    >>> parse_duration("1 day 12 hours")
    datetime.timedelta(days=1, seconds=43200)
    >>> parse_duration("often") is None
    True
    """
    words = text.strip().lower()
    if not _WHOLE.fullmatch(words):
        return None
    try:
        total = sum(
            (timedelta(**{f"{unit}s": int(count)}) for count, unit in _PART.findall(words)),
            timedelta(),
        )
    except OverflowError:
        return None
    return total or None


def duration_text(seconds: float) -> str:
    """A duration in its largest whole unit.

    >>> duration_text(900), duration_text(3600), duration_text(90)
    ('15 minutes', '1 hour', '90 seconds')
    """
    for unit, size in _UNITS:
        count, rest = divmod(int(seconds), size)
        if count and not rest:
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{int(seconds)} seconds"
