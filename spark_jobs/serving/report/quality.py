"""The quality of a day: how refreshes ended, what audits found, what was late or rejected."""

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

# So far back the publication is looked for that the first one of the day follows.
_BEFORE: Final = timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class FailedExpectation:
    """An expectation of a view's suite that failed, and in how many audits."""

    view: str
    expectation: str
    column: str | None
    severity: str
    audits: int


@dataclass(frozen=True, kw_only=True)
class ViewDay:
    """A view's day.

    Attributes:
        ended: attempts by their status.
        warned: audits that let a result through with a warning.
        late: publications that came later than the declared freshness after a change.
        longest: the longest time from a change to the publication that held it, of the late ones.
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
    """Records of a silver table that went to quarantine for one reason."""

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
        """The form for programs; spans in seconds."""
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
    """What the ledger, the logs and the quarantine say about a day (UTC)."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    end = start + timedelta(days=1)
    store, gold = project.store, project.manifest.gold
    verdicts = store.failed_verdicts(start=start, end=end)
    warned = Counter(view for view, verdict in verdicts if verdict["outcome"] == "warned")
    ended = store.outcomes(start=start, end=end)
    published = store.publications(start=start - _BEFORE, end=end)
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
    """How long each publication of the day that came too late had let the oldest change wait."""
    if entry.freshness_seconds is None:
        return
    target = timedelta(seconds=entry.freshness_seconds)
    locations = TableLocations(Lake(project.settings.lake), project.manifest)
    ours = [one for one in published if one.view == entry.name]
    for before, after in pairwise(ours):
        # What came between two publications is no older than the first of them.
        if after.at < start or after.at - before.at <= target:
            continue
        since = _first_change(locations, before, after)
        if since is not None and after.at - since > target:
            yield after.at - since


def _first_change(
    locations: TableLocations, before: Published, after: Published
) -> datetime | None:
    """When the oldest commit was made that only the second publication holds.

    An input that was recreated, or whose old log is gone, does not tell.
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
    """The expectations that failed, the most frequent first."""
    counts = Counter(
        (view, one["type"], one["column"], one["severity"])
        for view, verdict in verdicts
        # A rollback repeats the verdict of what it publishes; a commit keeps its counts only.
        for one in verdict.get("results", ())
        if not one["success"]
    )
    for (view, expectation, column, severity), audits in counts.most_common():
        yield FailedExpectation(
            view=view, expectation=expectation, column=column, severity=severity, audits=audits
        )


def _quarantine(project: OpenProject, start: datetime, end: datetime) -> Iterator[Rejected]:
    """What is in quarantine since that day, by silver table and reason."""
    lake, at = Lake(project.settings.lake), pc.field("quarantined_at")
    that_day = (at >= pc.scalar(start)) & (at < pc.scalar(end))
    for name in sorted(project.manifest.silver):
        try:
            found = read_columns(lake.quarantine(name), ["reason"], where=that_day)
        except TableMissingError:
            continue
        for reason, records in Counter(found.column("reason").to_pylist()).most_common():
            yield Rejected(silver=name, reason=reason, records=records)
