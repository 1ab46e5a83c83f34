"""The quality report of a day: outcomes, failed expectations, late publications, rejects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from spark_jobs.names import TableName
from spark_jobs.storage import log
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.lake import Lake, TableLocations
from spark_jobs.storage.reader import read_columns

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import GoldEntry
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.days import Published

# How far back to look for the publication before the day's first one.
_BEFORE: Final = timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class FailedExpectation:
    """An expectation that failed, and in how many audits."""

    view: str
    expectation: str
    column: str | None
    severity: str
    audits: int


@dataclass(frozen=True, kw_only=True)
class ViewDay:
    """A view's day.

    Attributes:
        ended: attempts by status.
        warned: audits with a warning.
        late: publications later than the declared freshness after a change.
        longest: the longest time from a change to its publication, of late ones.
    """

    view: str
    ended: dict[str, int]
    warned: int
    late: int
    longest: timedelta | None

    @property
    def attempts(self) -> int:
        return sum(self.ended.values())


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Records of a silver table that were quarantined for one reason."""

    silver: str
    reason: str
    records: int


@dataclass(frozen=True, kw_only=True)
class DayQuality:
    """The quality of one day (UTC)."""

    day: date
    views: tuple[ViewDay, ...]
    expectations: tuple[FailedExpectation, ...]
    quarantine: tuple[Rejected, ...]

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes; a view also has ``attempts``. Durations in seconds."""
        return {
            "day": self.day.isoformat(),
            "views": [
                {
                    **asdict(one),
                    "attempts": one.attempts,
                    "longest": one.longest and one.longest.total_seconds(),
                }
                for one in self.views
            ],
            "expectations": [asdict(one) for one in self.expectations],
            "quarantine": [asdict(one) for one in self.quarantine],
        }


def day_quality(project: OpenProject, day: date) -> DayQuality:
    """The report of a day (UTC), from ledger, logs and quarantine."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    end = start + timedelta(days=1)
    store, gold = project.store, project.manifest.gold
    verdicts = store.failed_verdicts(start=start, end=end)
    warned = Counter(view for view, verdict in verdicts if verdict["outcome"] == "warned")
    ended = store.outcomes(start=start, end=end)
    # The calendar has a first day.
    before = min(_BEFORE, start - datetime.min.replace(tzinfo=UTC))
    published = store.publications(start=start - before, end=end)
    return DayQuality(
        day=day,
        views=tuple(
            _view_day(
                name,
                ended={str(status): count for status, count in ended.get(name, {}).items()},
                warned=warned[name],
                late=list(_late(project, gold[name], published, start=start)),
            )
            for name in sorted(gold)
        ),
        expectations=tuple(_failed(verdicts)),
        quarantine=tuple(_quarantine(project, start, end)),
    )


def _view_day(view: str, *, ended: dict[str, int], warned: int, late: list[timedelta]) -> ViewDay:
    longest = max(late, default=None)
    return ViewDay(view=view, ended=ended, warned=warned, late=len(late), longest=longest)


def _late(
    project: OpenProject, entry: GoldEntry, published: Sequence[Published], *, start: datetime
) -> Iterator[timedelta]:
    """For each late publication of the day, the age of the oldest change in it."""
    if entry.freshness_seconds is None:
        return
    target = timedelta(seconds=entry.freshness_seconds)
    locations = TableLocations(Lake(project.settings.lake), project.manifest)
    ours = [one for one in published if one.view == entry.name]
    for before, after in pairwise(ours):
        # A change between two publications is not older than the first of them.
        if after.at < start or after.at - before.at <= target:
            continue
        since = first_change(locations, before, after)
        if since is not None and after.at - since > target:
            yield after.at - since


def first_change(locations: TableLocations, before: Published, after: Published) -> datetime | None:
    """Time of the oldest commit that only the second publication contains.

    Inputs that were recreated, or whose old log is gone, are left out.
    """
    since: list[datetime] = []
    for table, version in after.vector.items():
        last = before.vector.get(table)
        if last is None or last["id"] != version["id"] or last["version"] >= version["version"]:
            continue
        at = log.committed_at(locations.of(TableName.parse(table)), last["version"] + 1)
        if at is not None:
            since.append(at)
    return min(since, default=None)


def _failed(verdicts: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[FailedExpectation]:
    """The failed expectations, most frequent first."""
    counts = Counter(
        (view, one["type"], one["column"], one["severity"])
        for view, verdict in verdicts
        # A rollback has the verdict of its target, which in a commit has only counts.
        for one in verdict.get("results", ())
        if not one["success"]
    )
    for (view, expectation, column, severity), audits in counts.most_common():
        yield FailedExpectation(
            view=view, expectation=expectation, column=column, severity=severity, audits=audits
        )


def _quarantine(project: OpenProject, start: datetime, end: datetime) -> Iterator[Rejected]:
    """Records quarantined on that day and still there, by silver table and reason."""
    lake, at = Lake(project.settings.lake), pc.field("quarantined_at")
    that_day = (at >= pc.scalar(start)) & (at < pc.scalar(end))
    for name in sorted(project.manifest.silver):
        try:
            found = read_columns(lake.quarantine(name), ["reason"], where=that_day)
        except TableMissingError:
            continue
        for reason, records in Counter(found.column("reason").to_pylist()).most_common():
            yield Rejected(silver=name, reason=reason, records=records)
