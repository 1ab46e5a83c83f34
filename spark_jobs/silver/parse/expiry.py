"""Decides which rows have expired; pure functions of the declaration, the time and the row.

Rows expire by whole days in UTC. Once expired, a row stays expired, so that a record that is read
again cannot bring it back, and no state is needed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import Expiry
from spark_jobs.storage.columns import quoted


def horizon(expiry: Expiry, now: datetime) -> datetime:
    """The earliest time that has not expired: midnight (UTC) of the day ``ttl`` ago."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=expiry.days)


def expired_sql(expiry: Expiry, kind: str, *, before: datetime) -> str:
    """The SQL condition of expired rows, for a time column of the given type.

    Rows without a time never expire. The literal has the column's type, so that Delta skips files
    by statistics.
    """
    bound = f"CAST('{before:%Y-%m-%d %H:%M:%S}' AS {kind})"
    return f"{quoted(expiry.column)} < {bound}"


def expired_on_arrival(expiry: Expiry, time: Column, *, arrived: Column) -> Column:
    """Whether a record had expired when it arrived; does not depend on when it is read."""
    first = sf.date_trunc("DAY", arrived) - sf.expr(f"INTERVAL {expiry.days} DAYS")
    return sf.coalesce(time.cast("timestamp") < first, sf.lit(False))  # noqa: FBT003
