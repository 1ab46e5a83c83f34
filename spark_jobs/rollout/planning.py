"""Collects the facts for the plan of a change: the running state, costs, row counts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_jobs.deploy.change import Cost
from spark_jobs.deploy.environments import entry_of
from spark_jobs.deploy.kept_settings import kept_settings
from spark_jobs.deploy.other_release import kept_tables, read_entry, readable
from spark_jobs.deploy.plan import Plan, Running, plan_change
from spark_jobs.deploy.steps import Step, StepKind, connector_step
from spark_jobs.graph.manifest import Manifest, SilverEntry, SourceEntry
from spark_jobs.names import Layer, TableName
from spark_jobs.rollout.sources import new_source_facts
from spark_jobs.settings import Settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.deployments import Deployment
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import JsonObject
from spark_jobs.storage import log
from spark_jobs.storage.errors import LogUnreadableError, TableMissingError
from spark_jobs.storage.lake import Lake, TableLocations

# How many attempts of a view are searched for its last full refresh.
_REMEMBERED = 20
# How many deployments are read at once; each has a manifest.
_PAGE = 20


@dataclass(frozen=True)
class Planned:
    """A plan, with the two manifests."""

    plan: Plan
    running: Running
    project: Manifest


def make_plan(
    settings: Settings,
    store: ControlStore,
    project: Manifest,
    *,
    contract_breaks: Collection[str] = (),
) -> Planned:
    """Compare the compiled project with what runs; writes nothing.

    Args:
        settings: project settings.
        store: the control database.
        project: the compiled project.
        contract_breaks: views whose contract may be broken this once.
    """
    running = running_now(store, project)
    problems, existing = new_source_facts(settings, running.manifest, project)
    plan = plan_change(
        running,
        project,
        kept_settings(settings),
        costs=costs(settings, store, running.manifest, project),
        existing=existing,
        problems=problems,
        contract_breaks=contract_breaks,
        elsewhere=bool(settings.kafka_connect.url),
        today=datetime.now(UTC).date(),
    )
    return Planned(plan, running, project)


def running_now(store: ControlStore, project: Manifest) -> Running:
    """The state in force, from the control database.

    Args:
        store: the control database.
        project: has what is taken in place of what another release wrote and this one cannot read.
    """
    found = store.deployment_in_force()
    newest = store.newest_deployment()
    unfinished = newest if newest is not None and newest.unfinished else None
    if found is None:
        return Running(
            deployment=None,
            manifest=Manifest(project=project.project),
            settings={},
            unfinished=unfinished.deployment_id if unfinished else None,
            open_steps=_capture_again(unfinished, project),
        )
    stored = Manifest.stored(found.manifest)
    manifest = stored or readable(found.manifest, project)
    kept = kept_tables(found, manifest, project, since=found.updated_at)
    return Running(
        deployment=found.deployment_id,
        manifest=manifest,
        settings=found.settings,
        unfinished=unfinished.deployment_id if unfinished else None,
        open_steps=(
            *map(Step.parse, unfinished.open_steps if unfinished else ()),
            *_capture_again(unfinished, project),
            # Processes of this release cannot follow a manifest that they cannot read.
            *(() if stored else (Step(StepKind.MANIFEST),)),
        ),
        kept=kept,
        former=_former(store, kept, project),
        whole=stored is not None,
    )


def _capture_again(unfinished: Deployment | None, project: Manifest) -> tuple[Step, ...]:
    """The step of the connector, if it may capture what no manifest in force declares.

    Args:
        unfinished: ended before or after it told the connector what to capture.
        project: what the connector is to capture.
    """
    if unfinished is None or unfinished.in_force:
        return ()
    kinds = {Step.parse(step).kind for step in unfinished.steps}
    asked = {StepKind.CONNECTOR, StepKind.DISCONNECT} & kinds
    return (connector_step(project),) if asked else ()


def _former(store: ControlStore, kept: Collection[str], project: Manifest) -> Manifest | None:
    """The last declarations of removed tables that still exist and are declared again."""
    again = {one: entry_of(project, one) for one in map(TableName.parse, kept)}
    wanted = {one for one, entry in again.items() if isinstance(entry, SourceEntry | SilverEntry)}
    if not wanted:
        return None
    sources: dict[str, SourceEntry] = {}
    silver: dict[str, SilverEntry] = {}
    for deployment in _newest_first(store):
        # Parsed without the checks of a manifest: other releases wrote some.
        stored = json.loads(deployment.manifest) if deployment.in_force else {}
        for table in sorted(wanted):
            match _declared(stored, table):
                case SourceEntry() as source:
                    sources[table.name] = source
                    wanted.discard(table)
                case SilverEntry() as entry:
                    silver[table.name] = entry
                    wanted.discard(table)
        if not wanted:
            break
    return Manifest(project=project.project, sources=sources, silver=silver)


def _newest_first(store: ControlStore) -> Iterator[Deployment]:
    """All deployments; read in pages, because most searches end early."""
    before = None
    while page := store.deployments(limit=_PAGE, before=before):
        yield from page
        before = page[-1].number


def _declared(stored: JsonObject, table: TableName) -> SourceEntry | SilverEntry | None:
    """A table's declaration in a manifest of any release; fields that this one lacks are left out.

    Args:
        stored: the manifest.
        table: a source's table or a silver table.
    """
    bronze = table.layer is Layer.BRONZE
    entry = stored.get("sources" if bronze else "silver", {}).get(table.name)
    return read_entry(SourceEntry, entry) if bronze else read_entry(SilverEntry, entry)


def costs(
    settings: Settings, store: ControlStore, before: Manifest, after: Manifest
) -> dict[str, Cost]:
    """The cost of each new or changed view by name, from the ledger and the logs."""
    locations = TableLocations(Lake(settings.lake), after)
    found = {}
    for name, entry in after.gold.items():
        was = before.gold.get(name)
        if was is None or was.fingerprint != entry.fingerprint:
            sizes = [_rows(locations.of(table)) for table in after.inputs_of(name)]
            known = [rows for rows in sizes if rows is not None]
            rows = sum(known) if known and len(known) == len(sizes) else None
            found[name] = Cost(rows=rows, seconds=_seconds(store, name))
    return found


def _rows(location: str) -> int | None:
    try:
        return log.size(location).rows
    except (TableMissingError, LogUnreadableError, OSError):
        return None


def _seconds(store: ControlStore, view: str) -> float | None:
    """Duration of the newest full refresh, of any definition."""
    for attempt in store.attempts(view, statuses=(AttemptStatus.PUBLISHED,), limit=_REMEMBERED):
        seconds = (attempt.actual or {}).get("seconds", {})
        if attempt.decision == "full" and {"stage", "publish"} <= seconds.keys():
            return float(seconds["stage"] + seconds["publish"])
    return None
