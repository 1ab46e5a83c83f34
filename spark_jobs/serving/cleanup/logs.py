"""Which entries of a table's log nobody needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from spark_jobs.serving.cleanup.needs import Need
from spark_jobs.storage import log
from spark_jobs.storage.log_files import past_entries


def unneeded_entries(
    location: str, needs: Sequence[Need], *, retained: datetime, most: int
) -> list[str]:
    """Files of a log that only versions before the oldest needed one use.

    Needed are the versions within the retention, but at most the newest ``most``, and in any case
    those that a reader has not read yet.

    Args:
        location: of the table.
        needs: needs of this table.
        retained: start of the retention.
        most: number of versions that stay readable without a reader that needs them.

    Returns:
        paths below the table's location, the oldest versions first; empty without a table.
    """
    newest = log.table_version(location)
    if newest is None:
        return []
    within = _version_at(location, retained, newest=newest.version)
    wanted = [max(need.version, 0) for need in needs if need.table_id in {None, newest.table_id}]
    return past_entries(location, before=min([max(within, newest.version - most), *wanted]))


def _version_at(location: str, at: datetime, *, newest: int) -> int:
    """The newest version at an instant, by bisection; -1 if the first one is younger.

    A version without an entry is older than all that have one.
    """
    low, high = -1, newest
    while low < high:
        middle = (low + high + 1) // 2
        committed = log.committed_at(location, middle)
        if committed is None or committed <= at:
            low = middle
        else:
            high = middle - 1
    return low
