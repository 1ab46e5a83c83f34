"""Restarts a connector that lost its replication slot: with a new slot and a new snapshot."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import httpx
import psycopg

from spark_jobs.access import timeouts
from spark_jobs.settings import Settings
from spark_jobs.stack.connect import client, states
from spark_jobs.stack.connector import CONNECTOR, SLOT
from spark_jobs.stack.errors import ConnectorFailedError, SlotRightsError

STOPPED_SECONDS = 60.0


def resnapshot(
    settings: Settings, *, dsn: str, connector: str = CONNECTOR, slot: str = SLOT
) -> None:
    """Stop a connector, delete its offsets, drop its slot, and resume it.

    Changes in the meantime are part of the snapshot. After an interruption the connector may be
    stopped, and ``tidemark status --check`` names it then; call it again.

    Args:
        settings: with the address of Connect.
        dsn: the source database, as the connector's role.
        connector: its name.
        slot: the connector's own slot.

    Raises:
        SlotRightsError: the role may not drop the slot; nothing was done.
        ConnectorFailedError: Connect refuses or does not answer, the database does not answer, or
            another reader uses the slot.
    """
    path = f"/connectors/{connector}"
    try:
        with client(settings) as api:
            api.get(f"{path}/status")
            _check_rights(dsn, slot)
            _accepted(connector, api.put(f"{path}/stop"))
            wait_until_stopped(api, connector)
            _accepted(connector, api.delete(f"{path}/offsets"))
            until(connector, lambda: drop_slot(dsn, slot), f"leaves slot {slot!r} in use")
            _accepted(connector, api.put(f"{path}/resume"))
    except httpx.TransportError as error:
        problem = f"has not started over, because Kafka Connect does not answer: {error}"
        raise _failed(connector, problem) from error
    except psycopg.OperationalError as error:
        problem = f"has not started over, because its database does not answer: {error}"
        raise _failed(connector, problem) from error


def wait_until_stopped(api: httpx.Client, connector: str) -> None:
    """Wait until a connector and its tasks have ended: offsets of running ones are not deleted.

    Raises:
        ConnectorFailedError: they do not end in time.
    """

    def stopped() -> bool:
        status = api.get(f"/connectors/{connector}/status")
        return status.is_success and states(status.json()) == ["STOPPED"]

    until(connector, stopped, "does not stop")


def drop_slot(dsn: str, slot: str) -> bool:
    """Drop a slot that no reader uses.

    Args:
        dsn: the database, as a role with the right to do so.
        slot: its name.

    Returns:
        whether the slot does not exist any more.
    """
    mine = "FROM pg_replication_slots WHERE slot_name = %s"
    with psycopg.connect(dsn, **timeouts.POSTGRES) as connection:
        query = f"SELECT pg_drop_replication_slot(slot_name) {mine} AND NOT active"
        connection.execute(query.encode(), [slot])
        return not connection.execute(f"SELECT 1 {mine}".encode(), [slot]).fetchall()


def _check_rights(dsn: str, slot: str) -> None:
    # What gives the right differs between services, and PostgreSQL checks it first of all.
    absent = f"{slot}_{secrets.token_hex(4)}"
    with psycopg.connect(dsn, **timeouts.POSTGRES, autocommit=True) as connection:
        try:
            connection.execute("SELECT pg_drop_replication_slot(%s)", [absent])
        except psycopg.errors.InsufficientPrivilege as error:
            raise SlotRightsError(connection.info.user, slot) from error
        except psycopg.errors.UndefinedObject:
            return


def _accepted(connector: str, answer: httpx.Response) -> None:
    if answer.is_error:
        raise _failed(connector, f"cannot start over: {answer.text}")


def until(connector: str, holds: Callable[[], bool], problem: str) -> None:
    """Wait until a condition holds.

    Raises:
        ConnectorFailedError: it does not hold in time; the problem says what is missing.
    """
    deadline = time.monotonic() + STOPPED_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise _failed(connector, f"{problem} within {STOPPED_SECONDS:.0f} s")
        time.sleep(0.3)


def _failed(connector: str, problem: str) -> ConnectorFailedError:
    stopped = "it may be stopped until the command is repeated"
    return ConnectorFailedError(connector, f"{problem.strip()}; {stopped}")
