"""Converts Spark's progress reports to rows of the control database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from spark_jobs.state.progress import StreamProgress
from spark_jobs.state.types import utc_now


def read_progress(name: str, report: Mapping[str, Any]) -> StreamProgress:
    """Convert a report of a query with one source.

    Args:
        name: the query's name.
        report: Spark's ``StreamingQueryProgress`` as JSON.
    """
    source = report["sources"][0]
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    started = datetime.fromisoformat(report["timestamp"])
    return StreamProgress(
        query=name,
        batch_id=report["batchId"],
        records=report["numInputRows"],
        end_offsets=end,
        at=started,
        heartbeat_at=utc_now(),
        lag_records=_lag(end, latest),
    )


def _lag(end: Any, latest: Any) -> int | None:
    """Records between two Kafka offsets; None for other sources."""
    if not _kafka(end) or not _kafka(latest):
        return None
    return sum(
        max(0, int(offset) - int(end.get(topic, {}).get(partition, 0)))
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


def _kafka(offsets: Any) -> bool:
    return isinstance(offsets, dict) and all(isinstance(part, dict) for part in offsets.values())


def _offsets(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
