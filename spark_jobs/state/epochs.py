"""Epochs: a number per table that starts its transaction ids afresh.

A Delta transaction id that was used is skipped silently, so whoever discards a table's progress
(a new checkpoint, a lost ledger, a rollback) must raise its epoch first.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select, update

from spark_jobs.state.tables import EPOCHS
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_keep

FIRST_EPOCH: Final = 1


def epoch(connection: Connection, table: str) -> int:
    """The table's epoch; 1 when it was never raised."""
    found = connection.scalar(select(EPOCHS.c.epoch).where(EPOCHS.c.table_name == table))
    return FIRST_EPOCH if found is None else found


def lock_epoch(connection: Connection, table: str) -> int:
    """The table's epoch, held against changes until the transaction ends."""
    row = {
        "table_name": table,
        "epoch": FIRST_EPOCH,
        "reason": "first use",
        "bumped_at": utc_now(),
    }
    insert_or_keep(connection, EPOCHS, row)
    query = select(EPOCHS.c.epoch).where(EPOCHS.c.table_name == table).with_for_update()
    held: int = connection.execute(query).scalar_one()
    return held


def bump_epoch(connection: Connection, table: str, *, reason: str, above: int = 0) -> int:
    """Raise the table's epoch and return the new one.

    Args:
        connection: a transaction that writes.
        table: the table's name.
        reason: why, for the operator.
        above: an epoch that the result must exceed, for instance one read from the Delta log.
    """
    raised = max(lock_epoch(connection, table), above) + 1
    connection.execute(
        update(EPOCHS)
        .where(EPOCHS.c.table_name == table)
        .values(epoch=raised, reason=reason, bumped_at=utc_now())
    )
    return raised
