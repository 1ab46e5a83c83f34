"""Positions in the log of a source database."""

from __future__ import annotations

import psycopg

from spark_jobs.access import timeouts

# A standby has the log that it has replayed.
_POSITION = """
SELECT pg_wal_lsn_diff(
  CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0'
)::bigint
"""


def log_position(dsn: str) -> int:
    """The position that the log of a source database has reached.

    Args:
        dsn: the database, as any role.

    Raises:
        psycopg.Error: it does not answer.
    """
    with psycopg.connect(dsn, **timeouts.POSTGRES, autocommit=True) as connection:
        found = connection.execute(_POSITION).fetchone()
    return int(found[0]) if found else 0


def place(lsn: int) -> str:
    """A position in PostgreSQL's log, in PostgreSQL's format.

    >>> place(37420176)
    '0/23AFC90'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
