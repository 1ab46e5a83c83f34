"""``tidemark status``: gold views, streams and sinks at a glance, or one view's history."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.serving.project import OpenProject, open_project
from spark_jobs.serving.report.batches_in_work import batches_in_work
from spark_jobs.serving.report.drift import drift_table, drift_tellings
from spark_jobs.serving.report.silver_verdicts import silver_verdicts, silver_verdicts_table
from spark_jobs.serving.report.sink_status import print_sinks, sink_statuses
from spark_jobs.serving.report.status_check import first_to_solve, troubles
from spark_jobs.serving.report.status_tables import (
    history_table,
    rejections_table,
    streams_table,
    views_table,
)
from spark_jobs.serving.report.transactions import database_statuses
from spark_jobs.terminal.caller import Failure, report_failure
from spark_jobs.terminal.console import NO_VIEW, wide_console
from spark_jobs.terminal.tables import MOST_ROWS

if TYPE_CHECKING:
    from spark_jobs.gold.base.freshness import ViewStatus
    from spark_jobs.silver.check.quarantine import Rejection


def status(
    context: typer.Context,
    view: Annotated[
        str | None, typer.Argument(help="Show the last attempts to refresh this gold view.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=MOST_ROWS, help="Maximum number of attempts.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the status as JSON.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only list problems; exit with 1 if there are any."),
    ] = False,
) -> None:
    """Show freshness, last decision and reason of each table, and the state of streams, sinks."""
    from spark_jobs.state.progress import SINK_PREFIX
    from spark_jobs.state.stopped import stopped_on_purpose
    from spark_jobs.state.types import utc_now

    now = utc_now()
    with open_project(context) as project:
        if check:
            _check(project, view, now=now, as_json=as_json)
            return
        if view is not None:
            _show_history(project, view.removeprefix("gold."), limit, now=now, as_json=as_json)
            return
        views = _views(project, now)
        sinks = sink_statuses(project, now=now)
        streams = [one for one in project.store.progress() if not one.query.startswith(SINK_PREFIX)]
        in_work = batches_in_work(project)
        rejected = _rejected(project)
        judged = silver_verdicts(project, now=now)
        databases = list(database_statuses(project, now=now))
        drifts = [one for one in drift_tellings(project) if one.standing != "accepted"]
    if as_json:
        entries = {
            "views": [one.as_dict() for one in views],
            "streams": [one.as_dict() for one in streams],
            "databases": [one.as_dict() for one in databases],
            "in_work": {name: one.as_dict() for name, one in in_work.items()},
            "quarantine": [vars(one) for one in rejected],
            "expectations": [one.as_dict() for one in judged],
            "drift": [one.as_dict() for one in drifts],
            "sinks": [one.as_dict() for one in sinks],
        }
        typer.echo(json.dumps(entries, indent=2, default=str))
        return
    console = wide_console()
    console.print(views_table(views, now=now) if views else NO_VIEW)
    if streams:
        on_purpose = stopped_on_purpose(project.settings.state)
        console.print(streams_table(streams, now=now, on_purpose=on_purpose, in_work=in_work))
    else:
        console.print("No stream has reported yet.", style="dim")
    for one in databases:
        console.print(one.line(now=now), style="dim", soft_wrap=True)
    if rejected:
        console.print(rejections_table(rejected))
    if judged:
        console.print(silver_verdicts_table(judged, now=now))
    if drifts:
        console.print(drift_table(drifts))
    if sinks:
        print_sinks(console, sinks, now=now)


def _rejected(project: OpenProject) -> list[Rejection]:
    """Records in quarantine; only tables with rejected records are read."""
    from spark_jobs.silver.check.quarantine import rejections
    from spark_jobs.storage.lake import Lake

    store, lake = project.store, Lake(project.settings.lake)
    found: list[Rejection] = []
    for name, entry in sorted(project.manifest.silver.items()):
        if store.silver_totals(name, epoch=store.epoch(str(entry.table_name))).quarantined:
            found += rejections(name, lake.quarantine(name))
    return found


def _check(project: OpenProject, view: str | None, *, now: datetime, as_json: bool) -> None:
    if view is not None:
        raise typer.BadParameter("--check is about the whole project: leave out the view")
    found = troubles(project, now=now)
    if as_json:
        answer = {"passed": not found, "troubles": [asdict(one) for one in found]}
        typer.echo(json.dumps(answer, indent=2))
    else:
        typer.echo("\n".join(map(str, found)) or "Everything that should run reports.")
    if found:
        report_failure(Failure(runbook=first_to_solve(found).runbook))
        raise typer.Exit(1)


def _views(project: OpenProject, now: datetime) -> list[ViewStatus]:
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.base.freshness import view_status

    context = GoldContext(project.settings, project.manifest, project.store)
    return [view_status(context, name, now=now) for name in sorted(project.manifest.gold)]


def _show_history(
    project: OpenProject, view: str, limit: int, *, now: datetime, as_json: bool
) -> None:
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.base.freshness import view_status
    from spark_jobs.quality.report import verdict_table
    from spark_jobs.quality.verdict import Verdict

    context = GoldContext(project.settings, project.manifest, project.store)
    found = view_status(context, view, now=now)
    attempts = project.store.attempts(view, limit=limit)
    if as_json:
        entry = {**found.as_dict(), "attempts": [one.as_dict() for one in attempts]}
        typer.echo(json.dumps(entry, indent=2))
        return
    console = wide_console()
    console.print(views_table([found], now=now))
    console.print(history_table(attempts, now=now))
    if found.verdict is not None:
        console.print(verdict_table(Verdict.from_dict(found.verdict), values=True))
