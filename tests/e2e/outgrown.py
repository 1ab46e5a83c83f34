"""A database that removes log which replication slots still need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spark_jobs.settings import Settings
from spark_jobs.stack.postgres import SHOP, connect


@contextmanager
def outgrown_slots(settings: Settings) -> Iterator[None]:
    """The database removes its log beyond a megabyte, whether slots need it or not."""
    with connect(settings, SHOP) as database:
        database.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        database.execute("SELECT pg_reload_conf()")
        try:
            for _ in range(3):
                database.execute(
                    "SELECT pg_logical_emit_message(true, 'noise', repeat('x', 10000))"
                )
                database.execute("SELECT pg_switch_wal()")
            database.execute("CHECKPOINT")
            yield
        finally:
            database.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            database.execute("SELECT pg_reload_conf()")
