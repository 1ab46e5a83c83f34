"""Assets: what other teams' DAGs wait for. An event is a publication that changed rows.

A publication that changed none moves the versions that the table was built from; nobody has to
read the table again for that, so it is no event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow.sdk import Asset, AssetAlias, Context

from spark_jobs.orchestration.blueprint import AssetBlueprint, asset

if TYPE_CHECKING:
    from spark_jobs.gold.context import GoldContext

# Of the forms: which view one publishes is known when it runs.
PUBLISHED = AssetAlias("tidemark.published", group="tidemark")


def as_asset(blueprint: AssetBlueprint) -> Asset:
    """A table as Airflow knows it."""
    return Asset(name=blueprint.name, uri=blueprint.uri, group="tidemark")


def announce(task: Context, context: GoldContext, attempts: Iterable[str | None]) -> None:
    """Emit the events of some attempts, in their order, with the end of a form's task."""
    from spark_jobs.gold.telemetry.asset_events import event_of

    cursors = context.store.asset_cursors()
    for attempt_id in filter(None, attempts):
        event = event_of(context, attempt_id)
        if event is None:
            continue
        table = context.entry(context.store.attempt(attempt_id).view).table_name
        told = cursors.get(table.name)
        # A task that takes long finds that the streaming application has told it.
        if told is None or told.version < event["version"]:
            task["outlet_events"][PUBLISHED].add(as_asset(asset(table)), extra=event)
