"""``tidemark refresh``: bring gold views up to date now."""

from __future__ import annotations

import getpass
import json
import sys
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.completion import Views
from spark_jobs.errors import LakehouseError
from spark_jobs.serving.project import chosen_views, open_project
from spark_jobs.terminal.console import NO_VIEW, wide_console
from spark_jobs.terminal.crash import INTERNAL_ERROR, UnforeseenError, foreseen, unforeseen
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.gold.refresh.steps import Outcome, Refresher


# How often a view is planned that other refreshes publish meanwhile.
TRIES = 3
# Skipped although there is something to do.
_BLOCKED = frozenset(
    {
        "INPUT_BEHIND",
        "INPUT_MISSING",
        "REPLAY_PUBLISHES",
        "WAITS_FOR_PERSON",
        "WAITS_FOR_TRANSACTION",
    }
)


@dataclass(frozen=True)
class ViewResult:
    """The result for one view: an outcome, or the error that stopped it."""

    view: str
    outcome: Outcome | None
    error: LakehouseError | None = None

    @property
    def status(self) -> str:
        return "failed" if self.outcome is None else self.outcome.status.value

    @property
    def fine(self) -> bool:
        blocked = self.outcome and self.outcome.plan.reason.code in _BLOCKED
        return self.error is None and not blocked

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the outcome's keys or only ``view``, and ``status`` and ``error``."""
        known = self.outcome.as_dict() if self.outcome else {"view": self.view}
        error = self.error.as_dict() if self.error else None
        return {**known, "status": self.status, "error": error}


def refresh(
    context: typer.Context,
    views: Views = None,
    all_views: Annotated[bool, typer.Option("--all", help="Every gold view.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compute again even if no input changed.")
    ] = False,
    tick: Annotated[
        str | None,
        typer.Option(help="Views refreshed under one tick use the same versions of their inputs."),
    ] = None,
    let_pass: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Approve refreshes that wait for a person. The reason, at least 10 characters.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Plan, stage, audit and publish gold views; exit with 1 if a refresh failed."""
    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.planning.request import why
    from spark_jobs.state.types import utc_now

    allowed = None
    if let_pass is not None:
        allowed = f"let pass by {getpass.getuser()}: {why(let_pass).reason}"
    with open_project(context) as project:
        chosen = chosen_views(project, views, everything=all_views)
        used_tick = tick or f"cli-{utc_now():%Y%m%dT%H%M%S.%f}"
        refresher = Refresher(project.settings, project.manifest, project.store)
        spinner = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with closing(refresher.context), spinner as progress:
            results = [
                _refresh_one(
                    refresher,
                    view,
                    used_tick,
                    progress=progress,
                    force=force,
                    let_pass=allowed,
                    asked_by=getpass.getuser(),
                    # The versions of a given tick are fixed.
                    tries=1 if tick else TRIES,
                )
                for view in chosen
            ]
    if as_json:
        typer.echo(json.dumps([result.as_dict() for result in results], indent=2))
    else:
        if results or all_views:
            wide_console().print(results_table(results) if results else NO_VIEW)
        errors = Console(stderr=True, highlight=False, soft_wrap=True)
        for result in results:
            if result.error is not None:
                errors.print(result.error.render(), markup=False)
    if not all(result.fine for result in results):
        unknown = any(isinstance(result.error, UnforeseenError) for result in results)
        raise typer.Exit(INTERNAL_ERROR if unknown else 1)


def _refresh_one(
    refresher: Refresher,
    view: str,
    tick: str,
    *,
    progress: Progress,
    force: bool,
    let_pass: str | None,
    asked_by: str,
    tries: int,
) -> ViewResult:
    from spark_jobs.gold.base.errors import BaseMovedError
    from spark_jobs.state.attempts import AttemptStatus

    task = progress.add_task(view, total=None)

    def show(step: str) -> None:
        progress.update(task, description=f"{view}: {step}")

    started, plan = perf_counter(), None
    problem: LakehouseError | None = None
    try:
        for one in (tick, *(f"{tick}/{number}" for number in range(1, tries))):
            problem = None
            show("plan")
            try:
                plan = refresher.plan(
                    view, tick=one, force=force, let_pass=let_pass, asked_by=asked_by
                )
                refresher.carry_out(plan, on_step=show)
            except BaseMovedError as error:
                # The schedule or a stream published first: plan again on top of that.
                problem = error
                if plan is not None:
                    refresher.supersede(plan.attempt_id)
                continue
            # What was published first may show older input.
            if refresher.outcome(plan, seconds=0).status is not AttemptStatus.SUPERSEDED:
                break
    except Exception as error:  # noqa: BLE001 - the other views are refreshed all the same
        problem = _reported(error)
    finally:
        progress.remove_task(task)
    outcome = None
    try:
        if plan is not None:
            outcome = refresher.outcome(plan, seconds=perf_counter() - started)
    except Exception as error:  # noqa: BLE001 - as above
        problem = problem or _reported(error)
    return ViewResult(view, outcome, problem)


def _reported(error: Exception) -> LakehouseError:
    """The error as a person reads it; of one that nobody foresaw, a file has the details."""
    if isinstance(error, LakehouseError):
        return error
    return foreseen(error) or unforeseen(error, sys.argv[1:])


def results_table(results: list[ViewResult]) -> Table:
    """One row per view."""
    table = FittedTable()
    for name in ("view", "status", "decision and reason"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "seconds", "version"):
        table.add_column(name, justify="right")
    for result in results:
        outcome = result.outcome
        style = "" if result.fine else "red"
        if outcome is None:
            table.add_row(result.view, result.status, "", "", "", "", style=style)
            continue
        table.add_row(
            result.view,
            result.status,
            Text(outcome.plan.line),
            "" if outcome.rows is None else f"{outcome.rows:,}",
            f"{outcome.seconds:.2f}",
            "" if outcome.version is None else str(outcome.version),
            style=style,
        )
    return table
