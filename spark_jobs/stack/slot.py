"""Detects a connector that runs and does not read its slot.

If the network drops the packets of an open connection, Debezium waits for the operating system to
give up, for 15 minutes on Linux, and reports RUNNING. PostgreSQL notices earlier.
"""

from __future__ import annotations

import psycopg
from psycopg.conninfo import make_conninfo

from spark_jobs.access import timeouts
from spark_jobs.access.secrets import read_secret
from spark_jobs.settings import Settings
from spark_jobs.stack.postgres import DEBEZIUM, SHOP, dsn, secret_name

# A snapshot reads tables in a transaction, and the slot only afterwards.
_UNREAD = """
SELECT NOT s.active AND NOT EXISTS (
  SELECT FROM pg_stat_activity AS a
  WHERE a.usename = current_user AND a.pid <> pg_backend_pid() AND a.state <> 'idle'
)
FROM pg_replication_slots AS s WHERE s.slot_name = %s
"""


def unread(address: str, slot: str) -> bool:
    """Whether a slot exists, nobody reads it, and its role runs no query.

    Args:
        address: the source database, as the connector's role, which sees its own sessions only.
        slot: its name.

    Raises:
        psycopg.Error: the database does not answer.
    """
    with psycopg.connect(address, **timeouts.POSTGRES, autocommit=True) as connection:
        found = connection.execute(_UNREAD, [slot]).fetchone()
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
