"""The content of a publication's asset event."""

from __future__ import annotations

from typing import Any

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import Publication, publication_of
from spark_jobs.storage.history import rows_of_commit


def event_of(context: GoldContext, attempt_id: str) -> dict[str, Any] | None:
    """The event of an attempt, as ``event_of_publication`` returns it.

    It reads the table's log: the process may have ended before it updated the ledger.

    Returns:
        None if the attempt published nothing, or changed no row.

    Raises:
        AttemptNotFoundError: there is no such attempt.
    """
    location = context.published_at(context.store.attempt(attempt_id).view)
    found = publication_of(location, attempt_id)
    return None if found is None else event_of_publication(context, found)


def event_of_publication(context: GoldContext, published: Publication) -> dict[str, Any] | None:
    """The event of a publication; None if it changed no row.

    Returns:
        ``version`` of the table, ``changed``, ``rows`` of the table, ``rows_changed`` (about how
        many rows the commit wrote or removed), ``inputs`` (versions by table name) and
        ``attempt``. Unknown numbers are None.
    """
    mark = published.watermark
    if not mark.changed:
        return None
    attempt = context.store.find_attempt(mark.attempt)
    location = context.published_at(mark.view)
    return {
        "version": published.version,
        "changed": True,
        "rows": ((attempt.actual if attempt else None) or {}).get("rows"),
        "rows_changed": rows_of_commit(location, published.version),
        "inputs": {str(table): one.version for table, one in mark.vector},
        "attempt": mark.attempt,
    }
