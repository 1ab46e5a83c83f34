"""How far a silver table has applied bronze, from logs and checkpoints; no Spark."""

from __future__ import annotations

from collections.abc import Callable

from spark_jobs.silver.check.reconcile import version_before
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.checkpoints import last_committed, last_planned, planned
from spark_jobs.storage.log import size, table_version, transaction_version


def applied_version(
    tables: SilverTables, checkpoint: str, *, app_id: str, recorded: Callable[[int], bool]
) -> int | None:
    """The bronze version up to which the table has applied all rows; -1 for none.

    The caller holds the table's guard, so a batch is incomplete only if it was killed.

    Args:
        tables: the silver table and its helper tables.
        checkpoint: location of the stream's checkpoint.
        app_id: Delta app id of the stream.
        recorded: whether a batch has finished; the checkpoint says so slightly later.

    Returns:
        None if unknown: a batch was killed or covers part of a version, or the stream is about to
            read bronze again.

    Raises:
        CheckpointFormatError: another version of Spark wrote the checkpoint.
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
    """Id of the last batch that wrote any of the tables, or None."""
    found = (_written(tables, app) for app in (app_id, first_part_app(app_id)))
    return max((version for version in found if version is not None), default=None)


def replaced(bronze: str, checkpoint: str) -> str | None:
    """Why a stream cannot go on in its bronze table, as a sentence; None if it can.

    A table that was created again, or restored from a backup, gets the versions again that the
    stream has read. Delta would skip them, or fail.

    Args:
        bronze: location of the bronze table.
        checkpoint: location of the stream's checkpoint.

    Raises:
        CheckpointFormatError: another version of Spark wrote the checkpoint.
    """
    newest = last_planned(checkpoint)
    batch = None if newest is None else planned(checkpoint, newest)
    table = table_version(bronze)
    if batch is None or table is None:
        return None
    if batch.offsets["reservoirId"] != table.table_id:
        return "bronze was created again"
    end = version_before(batch)
    end = int(batch.offsets["reservoirVersion"]) if end is None else end
    if end > table.version:
        return f"checkpoint ends at version {end} of bronze, which has {table.version}"
    return None


def first_part_written(tables: SilverTables, app_id: str) -> int | None:
    """Id of the last batch that wrote a part before a cut, or None."""
    return _written(tables, first_part_app(app_id))


def first_part_app(app_id: str) -> str:
    """The Delta app id of writes before a cut."""
    return f"{app_id}/cut"


def _written(tables: SilverTables, app_id: str) -> int | None:
    found = (transaction_version(place, app_id) for place in tables.places)
    return max((version for version in found if version is not None), default=None)


def _cut_off(tables: SilverTables, app_id: str, batch_id: int) -> bool:
    written = last_written(tables, app_id)
    return written is not None and written >= batch_id
