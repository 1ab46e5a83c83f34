"""Rows that have expired: pure functions of a declaration, the time and a row.

Rows expire by whole days, in UTC. That a row has expired follows from the declaration and the
clock alone, and no later moment says otherwise; so nothing needs to be remembered to keep what
left a table from coming back when its records are read again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import Expiry
from spark_jobs.storage.columns import quoted


def horizon(expiry: Expiry, now: datetime) -> datetime:
    """The first moment whose rows are still wanted: midnight so many days ago."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=expiry.days)


def expired_sql(expiry: Expiry, kind: str, *, before: datetime) -> str:
    """The condition of rows that have expired, over a table whose column is of a type.

    A row without a time never expires. The bound has the column's type, so that files are told
    apart by their statistics.
    """
    bound = f"CAST('{before:%Y-%m-%d %H:%M:%S}' AS {kind})"
    return f"{quoted(expiry.column)} < {bound}"


def expired_on_arrival(expiry: Expiry, time: Column, *, arrived: Column) -> Column:
    """Whether a record came too late; the same whenever the record is read."""
    first = sf.date_trunc("DAY", arrived) - sf.expr(f"INTERVAL {expiry.days} DAYS")
    return sf.coalesce(time.cast("timestamp") < first, sf.lit(False))  # noqa: FBT003
