"""The connection string of the source database."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_jobs.settings import Settings


def source_dsn(settings: Settings) -> str | None:
    """As set, or that of the local stack's shop, or None."""
    from spark_jobs.access.secrets import secret_path
    from spark_jobs.stack.postgres import DEBEZIUM, SHOP, dsn, secret_name

    if settings.source_database:
        return settings.source_database
    if not secret_path(settings, secret_name(DEBEZIUM)).exists():
        return None
    return dsn(settings, database=SHOP, role=DEBEZIUM)
