"""Which entries of a table's log nobody needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from spark_jobs.serving.cleanup.needs import Need, open_needs


@dataclass(frozen=True)
class PastLog:
    """What a log no longer needs.

    Attributes:
        paths: of files below the table's location, the oldest versions first.
        why: who needs more versions than the limits; empty if nobody does.
    """

    paths: tuple[str, ...] = ()
    why: str = ""


def past_log(
    location: str,
    needs: Sequence[Need],
    *,
    retained: datetime,
    most: int,
    published: int | None = None,
) -> PastLog:
    """Files of a log that only versions before the oldest needed one use.

    Needed are the versions within the retention, but at most the newest ``most``, and in any case
    those that a reader has not read yet, unless the log lost them already.

    Args:
        location: of the table.
        needs: needs of this table.
        retained: start of the retention.
        most: number of versions that stay readable without a reader that needs them.
        published: version of a view's newest publication. Its commit stays, also behind later
            compactions: only there are the versions of the inputs.
    """
    from spark_jobs.storage import log
    from spark_jobs.storage.log_files import past_entries

    newest = log.table_version(location)
    if newest is None:
        return PastLog()
    within = _version_at(location, retained, newest=newest.version)
    oldest, why = max(within, newest.version - most), ""
    if published is not None:
        oldest = min(oldest, published)
    older = [one for one in needs if one.version < oldest]
    for need in open_needs(location, older, newest.table_id):
        if need.version < oldest:
            oldest, why = max(need.version, 0), need.reason
    return PastLog(tuple(past_entries(location, before=oldest)), why)


def _version_at(location: str, at: datetime, *, newest: int) -> int:
    """The newest version at an instant, by bisection; -1 if the first one is younger.

    A version without an entry is older than all that have one.
    """
    from spark_jobs.storage import log

    low, high = -1, newest
    while low < high:
        middle = (low + high + 1) // 2
        committed = log.committed_at(location, middle)
        if committed is None or committed <= at:
            low = middle
        else:
            high = middle - 1
    return low
