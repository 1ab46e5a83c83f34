"""Builds a view of an environment: its whole result, in a table of the environment.

It takes no lease and writes neither ledger nor aggregate state: those belong to production.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from spark_jobs.gold.base.commit_times import commit_times
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.compute.pinned import check_inputs, query_failures
from spark_jobs.gold.compute.protocol import Engine
from spark_jobs.gold.engine import choice
from spark_jobs.gold.refresh.auditing import judged
from spark_jobs.gold.refresh.transactional import transactional_pins
from spark_jobs.graph.databases import transactional_tables
from spark_jobs.names import Layer, TableName, TableVersion
from spark_jobs.planning.decision import Full, Reason, ReasonCode
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import times_as_dict
from spark_jobs.state.environments import Environment, EnvironmentView, ViewState
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log, reader, writer
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.history import readable
from spark_jobs.storage.rows import Rows


def build(
    context: GoldContext,
    environment: Environment,
    view: str,
    *,
    pins: dict[TableName, TableVersion],
    clock: datetime,
) -> EnvironmentView:
    """Compute a view in full, write it, and audit it.

    Args:
        context: with the locations of the environment.
        environment: its stored record.
        view: name of one of its views.
        pins: versions that all views of the build read; tables that are not pinned yet are added.
        clock: the value of CURRENT_TIMESTAMP.

    Raises:
        TableMissingError: an input does not exist.
        QueryFailedError: Spark refuses or fails the query.
        LakehouseError: any condition of the gate.
    """
    began = time.monotonic()
    entry, location = context.entry(view), context.published_at(view)
    if not pins:
        pins.update(_whole_transactions(context))
    vector = VersionVector(
        {
            table: _pinned(context, environment, table, pins)
            for table in context.manifest.inputs_of(view)
        }
    )
    work = RefreshPlan(
        view=view,
        tick=environment.name,
        attempt_id=f"environment_{environment.name}_{view}",
        fingerprint=entry.fingerprint,
        decision=Full(Reason(ReasonCode.FIRST_BUILD, f"environment {environment.name}")),
        vector=vector,
        changes=(),
        clock=clock,
    )

    def computed(engine: Engine) -> Rows:
        check_inputs(context, view, vector)
        return engine.whole(work)()

    comments = {column.name: column.meaning for column in entry.columns}
    metadata = {
        "environment": environment.name,
        "vector": vector.as_dict(),
        "committed": times_as_dict(commit_times(context, vector)),
    }
    failpoint("environment.build.begins")
    with query_failures(view), choice.computed(context, view, computed) as rows:
        writer.replace(rows, location, metadata=metadata, comments=comments)
    failpoint("environment.build.written")
    table = _newest(location)
    verdict = judged(
        context,
        view,
        lambda: reader.read(context.spark, location, table.version),
        rows=log.size(location, table.version).rows,
        location=location,
    )
    blocking = "; ".join(one.message for one in verdict.blocking)
    return replace(
        environment.views[view],
        state=ViewState.BLOCKED if blocking else ViewState.BUILT,
        vector=vector.as_dict(),
        table=as_json(table),
        clock=clock.isoformat(),
        rows=verdict.rows,
        seconds=round(time.monotonic() - began, 3),
        problem=blocking or None,
        attempt=None,
        published=None,
    )


def as_json(table: TableVersion) -> dict[str, object]:
    """A table version as stored in the control database: ``id`` and ``version``."""
    return {"id": table.table_id, "version": table.version}


def pinned(environment: Environment) -> tuple[dict[TableName, TableVersion], datetime]:
    """Versions and clock of an unfinished build; for a new build, no versions and the time now."""
    kept = environment.pins
    versions = VersionVector.from_dict(kept.get("versions", {})).versions
    return dict(versions), datetime.fromisoformat(kept["clock"]) if kept else utc_now()


def pins_as_json(pins: Mapping[TableName, TableVersion], clock: datetime) -> dict[str, object]:
    """As stored in the control database: ``versions`` by table, and ``clock`` in ISO 8601."""
    return {"versions": VersionVector(pins).as_dict(), "clock": clock.isoformat()}


def _whole_transactions(context: GoldContext) -> dict[TableName, TableVersion]:
    """The table versions at which each source database shows one commit."""
    tables = {
        entry.table_name
        for entries in transactional_tables(context.manifest).values()
        for entry in entries
    }
    found = {table: log.table_version(context.locations.of(table)) for table in tables}
    newest = {table: version for table, version in found.items() if version is not None}
    return transactional_pins(context, newest)


def _pinned(
    context: GoldContext,
    environment: Environment,
    table: TableName,
    pins: dict[TableName, TableVersion],
) -> TableVersion:
    location = context.locations.of(table)
    newest, pinned = _newest(location), pins.get(table)
    if table.layer is Layer.GOLD and table.name in environment.views:
        # Only this build writes it.
        return newest
    same = pinned is not None and pinned.table_id == newest.table_id
    if pinned is None or not same or not readable(location, pinned.version):
        pinned = pins[table] = newest
    return pinned


def _newest(location: str) -> TableVersion:
    found = log.table_version(location)
    if found is None:
        raise TableMissingError(location)
    return found
