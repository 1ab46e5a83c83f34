"""A connector whose slot is lost begins again: with a new slot, and a snapshot of what is there."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx
import psycopg

from spark_jobs.settings import Settings
from spark_jobs.stack.connect import CONNECTOR, SLOT, client, states
from spark_jobs.stack.errors import ConnectorFailedError

STOPPED_SECONDS = 60.0


def resnapshot(
    settings: Settings, *, dsn: str, connector: str = CONNECTOR, slot: str = SLOT
) -> None:
    """Stop a connector, forget how far it came, drop its slot, and let it start over.

    What happens in the database meanwhile is in the snapshot. Called again after an interruption
    it goes on.

    Args:
        settings: they say where Connect answers.
        dsn: the source database, as the connector's role.
        connector: its name.
        slot: of its own; that of another reader stays.

    Raises:
        ConnectorFailedError: Connect refuses, or the slot is in use by somebody else.
    """
    with client(settings) as api:
        path = f"/connectors/{connector}"
        _accepted(connector, api.put(f"{path}/stop"))
        _until(connector, lambda: _stopped(api, path), "does not stop")
        _accepted(connector, api.delete(f"{path}/offsets"))
        _until(connector, lambda: drop_slot(dsn, slot), f"leaves slot {slot!r} in use")
        _accepted(connector, api.put(f"{path}/resume"))


def _stopped(api: httpx.Client, path: str) -> bool:
    status = api.get(f"{path}/status")
    # Its tasks have ended too: offsets cannot be deleted under them.
    return status.is_success and states(status.json()) == ["STOPPED"]


def drop_slot(dsn: str, slot: str) -> bool:
    """Drop a slot once its reader has let go of it.

    Args:
        dsn: the database, as a role that may.
        slot: its name.

    Returns:
        whether it is gone, which it also is where there never was one.
    """
    mine = "FROM pg_replication_slots WHERE slot_name = %s"
    with psycopg.connect(dsn, connect_timeout=5) as connection:
        query = f"SELECT pg_drop_replication_slot(slot_name) {mine} AND NOT active"
        connection.execute(query.encode(), [slot])
        return not connection.execute(f"SELECT 1 {mine}".encode(), [slot]).fetchall()


def _accepted(connector: str, answer: httpx.Response) -> None:
    if answer.is_error:
        raise ConnectorFailedError(connector, f"cannot start over: {answer.text.strip()}")


def _until(connector: str, holds: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + STOPPED_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise ConnectorFailedError(connector, f"{problem} within {STOPPED_SECONDS:.0f} s")
        time.sleep(0.3)
