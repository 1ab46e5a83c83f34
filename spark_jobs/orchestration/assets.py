"""Assets for other teams' DAGs. An event is a publication that changed rows.

A publication without changed rows only updates the input versions of the table. Readers need not
read it again, so it is no event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow.sdk import Asset, AssetAlias, Context

from spark_jobs.orchestration.blueprint import AssetBlueprint, asset

if TYPE_CHECKING:
    from spark_jobs.gold.base.context import GoldContext

# Outlets of forms: which view a run publishes is only known when it runs.
PUBLISHED = AssetAlias("tidemark.published", group="tidemark")


def as_asset(blueprint: AssetBlueprint) -> Asset:
    """A table as an Airflow asset."""
    return Asset(name=blueprint.name, uri=blueprint.uri, group="tidemark")


def announce(task: Context, context: GoldContext, attempts: Iterable[str | None]) -> None:
    """Emit the events of some attempts, in order, when a form's task ends."""
    from spark_jobs.gold.telemetry.asset_events import event_of

    cursors = context.store.asset_cursors()
    for attempt_id in filter(None, attempts):
        event = event_of(context, attempt_id)
        if event is None:
            continue
        table = context.entry(context.store.attempt(attempt_id).view).table_name
        told = cursors.get(table.name)
        # The streaming application may have emitted the event of a slow task.
        if told is None or told.version < event["version"]:
            task["outlet_events"][PUBLISHED].add(as_asset(asset(table)), extra=event)
