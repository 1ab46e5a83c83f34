"""The last 30 days of a gold view as small bar charts, one bar for each day (UTC)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Final

from spark_jobs.serving.report.status_tables import duration
from spark_jobs.state.days import Published

DAYS: Final = 30
BAR_WIDTH, GAP = 4, 1
WIDTH: Final = DAYS * (BAR_WIDTH + GAP)
HEIGHT: Final = 24

# The time of the oldest change that only the later of two publications contains.
FirstChange = Callable[[Published, Published], datetime | None]


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A day.

    Attributes:
        x: its left edge.
        height: from 1 to ``HEIGHT``.
        late: it is above the target.
        text: the day and its value.
    """

    x: int
    height: int
    late: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A chart.

    Attributes:
        title: what it shows.
        newest: the value of the newest day that has one.
        text: the whole chart in words, for readers who do not see it.
    """

    title: str
    newest: str
    text: str
    bars: tuple[Bar, ...]


def trends(
    published: Sequence[Published],
    *,
    now: datetime,
    target: timedelta | None,
    first_change: FirstChange,
) -> tuple[Trend, ...]:
    """The charts of one view; those without a value are left out.

    Args:
        published: its publications, oldest first.
        now: the last day is today.
        target: the declared freshness; without one there is no chart of it.
        first_change: see ``FirstChange``.
    """
    seconds: dict[date, float] = {}
    rows: dict[date, float] = {}
    for one in published:
        day = one.at.date()
        taken = sum((one.actual.get("seconds") or {}).values())
        seconds[day] = max(seconds.get(day, 0), taken)
        if one.actual.get("rows") is not None:
            rows[day] = one.actual["rows"]
    waits = {} if target is None else _waits(published, first_change)
    limit = None if target is None else target.total_seconds()
    made = (
        _trend("longest refresh", seconds, now=now, shown=_seconds),
        _trend("rows", rows, now=now, shown=lambda value: f"{int(value):,}"),
        _trend("longest wait for a change", waits, now=now, shown=_seconds, limit=limit),
    )
    return tuple(one for one in made if one is not None)


def _waits(published: Sequence[Published], first_change: FirstChange) -> dict[date, float]:
    """Seconds from a change to its publication, for the longest gap between two of each day.

    A change within a shorter gap waited no longer than that, and reading all logs would cost more
    than the page is worth.
    """
    longest: dict[date, tuple[Published, Published]] = {}
    for before, after in pairwise(published):
        day = after.at.date()
        if day not in longest or after.at - before.at > longest[day][1].at - longest[day][0].at:
            longest[day] = before, after
    found: dict[date, float] = {}
    for day, (before, after) in longest.items():
        since = first_change(before, after)
        if since is not None:
            found[day] = max((after.at - since).total_seconds(), 0)
    return found


def _trend(
    title: str,
    values: Mapping[date, float],
    *,
    now: datetime,
    shown: Callable[[float], str],
    limit: float | None = None,
) -> Trend | None:
    days = [now.date() - timedelta(days=ago) for ago in reversed(range(DAYS))]
    known = {day: values[day] for day in days if day in values}
    if not known:
        return None
    highest = max(known.values()) or 1
    bars = tuple(
        Bar(
            x=place * (BAR_WIDTH + GAP),
            height=max(1, round(HEIGHT * known[day] / highest)),
            late=limit is not None and known[day] > limit,
            text=f"{day}: {shown(known[day])}",
        )
        for place, day in enumerate(days)
        if day in known
    )
    low, high = shown(min(known.values())), shown(max(known.values()))
    return Trend(
        title=title,
        newest=shown(known[max(known)]),
        text=f"{title}, last {DAYS} days: {len(known)} with a value, from {low} to {high}",
        bars=bars,
    )


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10 else duration(timedelta(seconds=value))
