"""Schedules: periods as aligned cron expressions, and cron expressions of authors.

The intervals of a period are aligned: every interval begins where another one ended.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import available_timezones

# Airflow's parser, so that every accepted expression runs there.
from croniter import CroniterBadCronError, CroniterBadDateError, croniter

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
CRON_FIELDS = 5


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


def at_most_daily(cron: str) -> bool:
    """Whether an expression runs at most once a day.

    >>> at_most_daily("30 6 * * 1-5"), at_most_daily("0 9,17 * * *"), at_most_daily("0 * * * *")
    (True, False, False)
    """
    minute, hour, *_ = cron.split()
    return minute.isdigit() and hour.isdigit()


def cron_problem(text: str) -> str | None:
    """What is wrong with a cron expression; None if it is valid.

    >>> cron_problem("30 6 * * 1-5") is None
    True
    >>> cron_problem("@daily"), cron_problem("0 0 31 2 *")
    ('it has 1 field and not 5', 'it names no moment')
    """
    fields = len(text.split())
    if fields != CRON_FIELDS:
        return f"it has {fields} field{'' if fields == 1 else 's'} and not {CRON_FIELDS}"
    try:
        croniter(text, datetime(2024, 1, 1, tzinfo=UTC)).get_next()
    except CroniterBadCronError as error:
        return str(error)
    except CroniterBadDateError:
        return "it names no moment"
    return None


def zone_known(name: str) -> bool:
    """Whether this machine knows a time zone of that name.

    >>> zone_known("Europe/Berlin"), zone_known("CEST")
    (True, False)
    """
    return name in available_timezones()


def _every(step: int) -> str:
    return "*" if step == 1 else f"*/{step}"
