"""Attempts to refresh one view, and its publication, without Spark."""

from __future__ import annotations

import pyarrow as pa

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.names import TableName
from spark_jobs.planning.decision import Full, Reason, ReasonCode, Skip
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.types import utc_now
from spark_jobs.storage import arrow_tables

ORDERS = TableName.parse("silver.orders")


def plan(decision: Full | Skip, vector: VersionVector | None = None) -> RefreshPlan:
    return RefreshPlan(
        view="spend",
        tick="t1",
        attempt_id="",
        fingerprint="f",
        decision=decision,
        vector=vector or VersionVector({}),
        changes=(),
        clock=utc_now(),
    )


FULL = Full(Reason(ReasonCode.FIRST_BUILD, "it was never published"))
SKIP = Skip(Reason(ReasonCode.NO_UPSTREAM_CHANGE, "no input changed"))


def publish(context: GoldContext, attempt: RefreshAttempt, vector: VersionVector) -> None:
    mark = Watermark(
        view="spend",
        sequence=1,
        epoch=1,
        fingerprint="f",
        rule="full",
        vector=vector,
        tick="t1",
        attempt=attempt.attempt_id,
        clock=utc_now(),
    )
    rows = pa.table({"user_id": [1, 2, 3]})
    arrow_tables.replace(rows, context.published_at("spend"), metadata=mark.as_metadata())
