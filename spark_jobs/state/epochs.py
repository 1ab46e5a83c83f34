"""Epochs: a number per table; raising it starts new Delta transaction ids.

Delta skips a used transaction id silently. So the epoch must be raised before a table's progress is
discarded: a new checkpoint, a lost ledger, a rollback.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select, update

from spark_jobs.state.tables import EPOCHS
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_keep

FIRST_EPOCH: Final = 1


def epoch(connection: Connection, table: str) -> int:
    """The table's epoch; 1 if it was never raised."""
    found = connection.scalar(select(EPOCHS.c.epoch).where(EPOCHS.c.table_name == table))
    return FIRST_EPOCH if found is None else found


def lock_epoch(connection: Connection, table: str) -> int:
    """The table's epoch, locked until the transaction ends."""
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
        connection: a write transaction.
        table: the table's name.
        reason: why, for operators.
        above: lower bound (exclusive) of the result, for instance the epoch in the Delta log.
    """
    raised = max(lock_epoch(connection, table), above) + 1
    connection.execute(
        update(EPOCHS)
        .where(EPOCHS.c.table_name == table)
        .values(epoch=raised, reason=reason, bumped_at=utc_now())
    )
    return raised
