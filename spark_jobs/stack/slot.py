"""Detects a connector that reports RUNNING and reads nothing, by the state of its slot.

If the network drops the packets of an open connection, Debezium waits for the operating system to
give up, for 15 minutes on Linux; PostgreSQL notices earlier. If PostgreSQL has removed log that a
slot needed, the slot is lost, and Debezium waits half an hour for it to become usable.
"""

from __future__ import annotations

from typing import LiteralString

import psycopg
from psycopg.conninfo import make_conninfo

from spark_jobs.access import timeouts
from spark_jobs.access.secrets import read_secret
from spark_jobs.settings import Settings
from spark_jobs.stack.connector import SLOT
from spark_jobs.stack.postgres import DEBEZIUM, SHOP, dsn, secret_name

# A snapshot reads tables in a transaction, and the slot only afterwards.
_UNREAD = """
SELECT NOT s.active AND s.wal_status IS DISTINCT FROM 'lost' AND NOT EXISTS (
  SELECT FROM pg_stat_activity AS a
  WHERE a.usename = current_user AND a.pid <> pg_backend_pid() AND a.state <> 'idle'
)
FROM pg_replication_slots AS s WHERE s.slot_name = %s
"""
_LOST = "SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = %s"


def unread(address: str, slot: str) -> bool:
    """Whether a slot is usable, nobody reads it, and its role runs no query.

    Args:
        address: the source database, as the connector's role, which sees its own sessions only.
        slot: its name.

    Raises:
        psycopg.Error: the database does not answer.
    """
    return _holds(_UNREAD, address, slot)


def lost(address: str, slot: str) -> bool:
    """Whether PostgreSQL has removed log that a slot needed, so that nobody can read it again.

    Args:
        address: its database.
        slot: its name.

    Raises:
        psycopg.Error: the database does not answer.
    """
    return _holds(_LOST, address, slot)


def connector_slot_lost(address: str | None) -> bool:
    """Whether the connector's slot is lost; False if its database is unknown or does not answer."""
    try:
        return address is not None and lost(address, SLOT)
    except psycopg.Error:
        return False


def _holds(query: LiteralString, address: str, slot: str) -> bool:
    with psycopg.connect(address, **timeouts.POSTGRES, autocommit=True) as connection:
        found = connection.execute(query, [slot]).fetchone()
    return bool(found and found[0])


def connector_dsn(settings: Settings) -> str:
    """The source database, as the connector's role.

    Raises:
        SecretMissingError: the role's password does not exist yet.
    """
    if not settings.source_database:
        return dsn(settings, database=SHOP, role=DEBEZIUM)
    password = read_secret(settings, secret_name(DEBEZIUM))
    return make_conninfo(settings.source_database, user=DEBEZIUM, password=password)
