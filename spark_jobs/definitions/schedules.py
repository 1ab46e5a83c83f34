"""Periods as aligned cron expressions, so that every interval begins where another one ended."""

from __future__ import annotations

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY


def cron_of(seconds: int) -> str | None:
    """The cron expression (UTC) whose intervals all have that length, or None.

    Weeks begin on Monday, as in ISO 8601 and in Spark's ``date_trunc``.

    >>> cron_of(60), cron_of(15 * 60), cron_of(3600), cron_of(86400)
    ('* * * * *', '*/15 * * * *', '0 * * * *', '0 0 * * *')
    >>> cron_of(7 * 60) is None
    True
    """
    if seconds == WEEK:
        return "0 0 * * 1"
    if seconds == DAY:
        return "0 0 * * *"
    if seconds >= HOUR and seconds % HOUR == 0 and DAY % seconds == 0:
        return f"0 {_every(seconds // HOUR)} * * *"
    if seconds >= MINUTE and seconds % MINUTE == 0 and HOUR % seconds == 0:
        return f"{_every(seconds // MINUTE)} * * * *"
    return None


def _every(step: int) -> str:
    return "*" if step == 1 else f"*/{step}"
