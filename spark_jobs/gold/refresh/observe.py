"""Observes a view before planning: its publication, its inputs, and the tick's pinned versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from spark_jobs.definitions.vocabulary import Consistency, Strategy
from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.base.publications import (
    Publication,
    intruder,
    latest_publication,
    rewritten,
)
from spark_jobs.gold.compute.increment import change_of
from spark_jobs.gold.refresh.ledger import past_refreshes, tried_in_vain
from spark_jobs.gold.refresh.transactional import (
    await_transactions,
    transactional_pins,
    transactional_versions,
)
from spark_jobs.graph.columns_read import read_of_tables
from spark_jobs.graph.maintenance.reasons import NotIncrementalError
from spark_jobs.names import Layer, TableName, TableVersion
from spark_jobs.planning.changes import InputObservation, Movement
from spark_jobs.planning.decision import Reason, ReasonCode
from spark_jobs.planning.plan import Estimate, RefreshPlan, ViewObservation, plan_refresh
from spark_jobs.planning.rules import changed_rows
from spark_jobs.planning.watermark import Watermark
from spark_jobs.sections import Engine
from spark_jobs.storage import log
from spark_jobs.storage.errors import LogUnreadableError
from spark_jobs.storage.history import changes_between, readable

# Suffix of a tick's name for views with ``consistency: newest``.
_NEWEST = " newest"

# Maps a table and its newest version to the version that the tick uses.
Pin = Callable[[TableName, TableVersion], TableVersion]


def pinned_for(context: GoldContext, view: str, tick: str) -> Pin:
    """The pins of a tick for a view; the first view of the tick sets them for all.

    It pins, at one moment, every table that views read and no view writes, so that the views of a
    tick read the same data. A gold table is pinned when it is published, or by its first reader.
    Views with ``consistency: newest`` share pins of their own.
    """
    wants_newest = context.entry(view).consistency is Consistency.NEWEST
    tick = f"{tick}{_NEWEST}" if wants_newest else tick
    pinned = context.store.pins(tick)
    if not pinned and not wants_newest:
        await_transactions(context, view)
        versions = transactional_pins(context, dict(_base_versions(context)))
        pinned = context.store.pin_versions(tick, versions)
    elif not pinned:
        versions = dict(_base_versions(context))
        pinned = context.store.pin_versions(tick, versions)
    return lambda table, version: (
        pinned.get(table) or context.store.pin_version(tick, table, version)
    )


def newest(table: TableName, version: TableVersion) -> TableVersion:
    """Use the newest version; pin nothing."""
    del table
    return version


def observe(context: GoldContext, view: str, *, pin: Pin) -> ViewObservation:
    """Read the logs of a view's published table and of its inputs."""
    location = context.published_at(view)
    publication = latest_publication(location)
    epoch = context.store.epoch(gold_table(view))
    if publication is not None:
        # The control database may have been lost; the log still has the epoch.
        epoch = max(epoch, publication.watermark.epoch)
    published = None if publication is None else publication.watermark
    tables = context.manifest.inputs_of(view)
    current = {table: log.table_version(context.locations.of(table)) for table in tables}
    usable = {table: pin(table, found) for table, found in current.items() if found is not None}
    whole, waits = transactional_versions(context, view, usable)
    usable |= whole
    same = published is not None and published.fingerprint == context.entry(view).fingerprint
    return ViewObservation(
        published=published,
        intruder=None if publication is None else intruder(location, publication),
        epoch=epoch,
        inputs=tuple(
            _observe_input(context, table, publication, current[table], usable.get(table))
            for table in tables
        ),
        past=past_refreshes(context, view),
        parked=parked(context, view)
        or waits
        or (None if same else _columns_to_come(context, view, usable, current)),
        readable=published is not None and not same and inputs_readable(context, published),
    )


def parked(context: GoldContext, view: str) -> Reason | None:
    """Why refreshes must skip the view now; None if they may run."""
    pinned = context.store.pinned_views().get(view)
    if pinned is not None:
        text = (
            f"{pinned.who} pinned the view to version {pinned.version} "
            f"({pinned.reason}); the form ops__release, or tidemark release {view}, lets it go on"
        )
        return Reason(ReasonCode.VIEW_PINNED, text)
    lease = context.store.lease_holder(catch_up(view))
    if lease is not None:
        scheduled = context.entry(view).scheduled
        then = "the next run picks up the changes" if scheduled else "refresh it after that"
        text = f"{lease.owner} is about to publish the view; {then}"
        return Reason(ReasonCode.REPLAY_PUBLISHES, text)
    return None


def _columns_to_come(
    context: GoldContext,
    view: str,
    used: Mapping[TableName, TableVersion],
    current: Mapping[TableName, TableVersion | None],
) -> Reason | None:
    """Why a new definition must wait: a version to use lacks a column that a later one has.

    A tick pins its versions before the definition is applied, and a commit that all tables of a
    database show may be older than the column.
    """

    def names(table: TableName, at: TableVersion) -> set[str]:
        return {one.name.lower() for one in log.schema(context.locations.of(table), at.version)}

    for table, version in used.items():
        later = current.get(table)
        if later is None or later.table_id != version.table_id or later.version <= version.version:
            continue
        came = names(table, later) - names(table, version)
        read = read_of_tables(context.entry(view).query).get(str(table)) if came else None
        if missing := sorted(came & (read or frozenset())):
            what = f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            text = f"{table}@{version.version} does not have the {what} yet, a later version has"
            return Reason(ReasonCode.INPUT_BEHIND, text)
    return None


def catch_up(view: str) -> str:
    """Name of the lease that makes refreshes of a view skip while it is recomputed."""
    return f"recompute/{gold_table(view)}"


def inputs_readable(context: GoldContext, publication: Watermark | None) -> bool:
    """Whether the inputs can still be read at the published versions."""
    return publication is None or all(
        readable(context.locations.of(table), version.version)
        for table, version in publication.vector
    )


def estimate(context: GoldContext, plan: RefreshPlan) -> Estimate:
    """Rows and bytes of all inputs, and how many rows of them changed."""
    sizes = [log.size(context.locations.of(table), one.version) for table, one in plan.vector]
    rows = [size.rows for size in sizes if size.rows is not None]
    return Estimate(
        rows=sum(rows) if len(rows) == len(sizes) else None,
        bytes=sum(size.bytes for size in sizes),
        changed=changed_rows(plan.changes),
        seconds=plan.expected,
    )


def completed(
    context: GoldContext, view: str, seen: ViewObservation, *, clock: datetime
) -> ViewObservation:
    """The observation with what only some choices depend on.

    That is the size of the view's program before the first incremental refresh in Spark: with small
    tables, a program that reads hundreds of them takes far longer than the query. And whether an
    earlier try failed, before a full refresh is tried.

    Args:
        context: settings, manifest and locations of the project.
        view: the gold view.
        seen: its observation.
        clock: the value of CURRENT_TIMESTAMP.
    """
    entry = context.entry(view)
    if entry.strategy is not Strategy.AUTO:
        return seen
    plan = plan_refresh(entry, seen, tick="", clock=clock)
    if plan.reason.code is ReasonCode.FULL_IS_TRIED:
        return replace(seen, tried_in_vain=tried_in_vain(context, view))
    if context.settings.gold.engine is not Engine.SPARK or not plan.is_a_guess:
        return seen
    base = latest_publication(context.published_at(view))
    if base is None:
        return seen
    try:
        found = change_of(context, entry, vector=plan.vector, clock=clock, base=base, by_name=True)
    except (LakehouseError, NotIncrementalError):
        # The refresh itself reports it.
        return seen
    return replace(seen, tables=found.program.tables)


def _base_versions(context: GoldContext) -> Iterator[tuple[TableName, TableVersion]]:
    manifest = context.manifest
    tables = {table for view in manifest.gold for table in manifest.inputs_of(view)}
    for table in tables:
        if table.layer is not Layer.GOLD:
            # An unreadable table must not stop the views that do not read it.
            with suppress(LogUnreadableError, OSError):
                version = log.table_version(context.locations.of(table))
                if version is not None:
                    yield table, version


def _observe_input(
    context: GoldContext,
    table: TableName,
    publication: Publication | None,
    current: TableVersion | None,
    pinned: TableVersion | None,
) -> InputObservation:
    location = context.locations.of(table)
    before = None if publication is None else publication.watermark.vector.get(table)
    return InputObservation(
        table=table,
        before=before,
        pinned=pinned,
        current=current,
        movement=movement_between(location, before, pinned),
        rewritten=(
            publication is not None
            and current is not None
            and rewritten(publication, table, location)
        ),
    )


def movement_between(
    location: str, before: TableVersion | None, after: TableVersion | None
) -> Movement:
    """What changed between two versions; unknown if they are of different tables."""
    if before is None or after is None or before.table_id != after.table_id:
        return Movement()
    total = log.size(location, after.version).rows
    if after.version <= before.version:
        return Movement(rows_changed=False, total=total)
    found = changes_between(location, after=before.version, upto=after.version)
    return Movement(
        rows_changed=found.rows_changed,
        fed=found.fed,
        reshaped=found.reshaped,
        rows=found.rows,
        total=total,
    )
