"""How much of bronze a silver table holds, as its stream left it; told without Spark."""

from __future__ import annotations

from collections.abc import Callable

from spark_jobs.silver.check.reconcile import version_before
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.checkpoints import last_committed, last_planned, planned
from spark_jobs.storage.log import size, transaction_version


def applied_version(
    tables: SilverTables, checkpoint: str, *, app_id: str, recorded: Callable[[int], bool]
) -> int | None:
    """The version of bronze whose rows, and all before, the table has taken up; -1 for none.

    Whoever asks holds the table's guard, so no batch is half done but one that was cut off.

    Args:
        tables: the table's parts.
        checkpoint: of the table's stream.
        app_id: the application id of the stream's writes.
        recorded: whether a batch has ended; its checkpoint says so a moment later.

    Returns:
        None where that cannot be told: a batch was cut off, covers a part of a version, or the
        stream is about to read bronze again.
    """
    newest, ended = last_planned(checkpoint), last_committed(checkpoint)
    if newest is not None and (ended is None or ended.batch_id < newest):
        if recorded(newest):
            ended = planned(checkpoint, newest)
        elif _cut_off(tables, app_id, newest):
            return None
    version = version_before(ended)
    return None if version == -1 and size(tables.table).files else version


def last_written(tables: SilverTables, app_id: str) -> int | None:
    """The number of the last batch that wrote any of a table's parts, or None."""
    found = (_written(tables, app) for app in (app_id, first_part_app(app_id)))
    return max((version for version in found if version is not None), default=None)


def first_part_written(tables: SilverTables, app_id: str) -> int | None:
    """The number of the last batch of which the part before a cut wrote anything, or None."""
    return _written(tables, first_part_app(app_id))


def first_part_app(app_id: str) -> str:
    """The application id of what a batch writes before it is cut."""
    return f"{app_id}/cut"


def _written(tables: SilverTables, app_id: str) -> int | None:
    found = (transaction_version(place, app_id) for place in tables.places)
    return max((version for version in found if version is not None), default=None)


def _cut_off(tables: SilverTables, app_id: str, batch_id: int) -> bool:
    written = last_written(tables, app_id)
    return written is not None and written >= batch_id
