"""Assets: what other teams' DAGs wait for. An event is a publication that changed rows.

A publication that changed none moves the versions that the table was built from; nobody has to
read the table again for that, so it is no event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, Context

from spark_jobs.orchestration.blueprint import AssetBlueprint, asset

if TYPE_CHECKING:
    from spark_jobs.gold.context import GoldContext

# Of the forms: which view one publishes is known when it runs.
PUBLISHED = AssetAlias("tidemark.published", group="tidemark")


def as_asset(blueprint: AssetBlueprint) -> Asset:
    """A table as Airflow knows it."""
    return Asset(name=blueprint.name, uri=blueprint.uri, group="tidemark")


def event_of(context: GoldContext, attempt_id: str) -> dict[str, Any] | None:
    """What the event of an attempt says; None where it published nothing or changed no row.

    ``rows`` is how many the table has, ``rows_changed`` about how many the commit wrote, changed
    or removed; either is None where that is not known. ``inputs`` are the versions of the inputs.
    """
    from spark_jobs.gold.publications import publication_of
    from spark_jobs.storage.history import rows_of_commit

    attempt = context.store.attempt(attempt_id)
    location = context.published_at(attempt.view)
    # The table's own log knows, also where the process ended before it told the ledger.
    found = publication_of(location, attempt_id)
    if found is None or not found.watermark.changed:
        return None
    return {
        "version": found.version,
        "changed": True,
        "rows": (attempt.actual or {}).get("rows"),
        "rows_changed": rows_of_commit(location, found.version),
        "inputs": {str(table): one.version for table, one in found.watermark.vector},
        "attempt": attempt_id,
    }


def announce(task: Context, context: GoldContext, attempts: Iterable[str | None]) -> None:
    """Emit the events of some attempts, in their order, with the end of a form's task."""
    for attempt_id in filter(None, attempts):
        event = event_of(context, attempt_id)
        if event is not None:
            table = context.entry(context.store.attempt(attempt_id).view).table_name
            task["outlet_events"][PUBLISHED].add(as_asset(asset(table)), extra=event)
