"""``tidemark replay``: recomputes gold views beside their tables, and publishes differences."""

from __future__ import annotations

import getpass
import json
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from spark_jobs.cli.approval import alone_is_enough
from spark_jobs.cli.completion import VIEWS_HELP, complete_views
from spark_jobs.serving.project import OpenProject, chosen_views, open_project
from spark_jobs.serving.report.replay_tables import plan_table, progress_table, replays_table
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.steps import Steps
from spark_jobs.terminal.tables import MOST_ROWS

if TYPE_CHECKING:
    from spark_jobs.gold.recover.replay import Replayer
    from spark_jobs.state.replays import ReplayRecord


class ReplayGroup(TyperGroup):
    """A group with a default command: ``replay VIEW`` means ``replay views VIEW``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command if the first word is not a command."""
        if args and args[0] not in {*self.commands, "--help"}:
            args = ["views", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=ReplayGroup,
    no_args_is_help=True,
    help="Recompute gold views in staging and publish the differences.",
)
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command("views")
def replay_views(
    context: typer.Context,
    views: Annotated[list[str], typer.Argument(help=VIEWS_HELP, autocompletion=complete_views)],
    reason: Annotated[
        str, typer.Option(help="The reason, at least 10 characters; it is recorded.")
    ] = "",
    ticket: Annotated[str | None, typer.Option(help="A ticket, for instance OPS-123.")] = None,
    branch: Annotated[bool, typer.Option("--branch", help="Include all downstream views.")] = False,
    start: Annotated[
        str | None, typer.Option("--from", help="First date or instant of the range (UTC).")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="First date or instant after the range (UTC).")
    ] = None,
    chunk: Annotated[
        str | None, typer.Option(help='Compute the range in pieces of this length: "1 day".')
    ] = None,
    only_stale: Annotated[
        bool, typer.Option("--only-stale", help="Skip views without pending changes.")
    ] = False,
    run: Annotated[
        bool, typer.Option("--run/--dry-run", help="Run it, or only show the plan.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a replay of VIEWS would do; with --run, run it. The same command resumes it."""
    from spark_jobs.gold.recover.replay import Replayer, new_id
    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.planning.request import replay_request, why
    from spark_jobs.state.replays import ReplayKind

    with open_project(context) as project:
        names = chosen_views(project, views, everything=False)
        request = replay_request(
            project.manifest,
            names,
            branch=branch,
            start=start,
            end=end,
            chunk=chunk,
            only_stale=only_stale,
        )
        because = why(reason, ticket) if run else None
        refresher = Refresher(project.settings, project.manifest, project.store)
        with closing(refresher.context):
            replayer = Replayer(refresher)
            plan = replayer.plan(request)
            if because is None:
                _show(plan.as_dict(), plan_table(plan), as_json=as_json)
                if not as_json:
                    typer.echo("A dry run: nothing was written. --run --reason TEXT does it.")
                return
            limit = project.settings.replay.approve_above_rows
            if plan.needs_approval(above_rows=limit):
                alone_is_enough(project.settings, form="ops__replay")
            found = replayer.unfinished(request)
            replay_id = found.replay_id if found else new_id(ReplayKind.REPLAY)
            replayer.begin(plan, replay_id=replay_id, who=getpass.getuser(), why=because)
            if not as_json:
                wide_console().print(plan_table(plan))
            _run(project, replayer, replay_id, as_json=as_json)


@app.command()
def resume(
    context: typer.Context,
    replay_id: Annotated[str, typer.Argument(help="The replay's id.")],
    as_json: AsJson = False,
) -> None:
    """Continue a replay or a rollback that was killed or that failed."""
    from spark_jobs.gold.recover.replay import Replayer
    from spark_jobs.gold.recover.rollback import Rollbacker
    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.state.replays import ReplayKind, ReplayStatus

    with open_project(context) as project:
        record = project.store.replay(replay_id)
        if record.approved_by is None and _needs_approval(project, record):
            alone_is_enough(project.settings, form=f"ops__{record.kind}")
        refresher = Refresher(project.settings, project.manifest, project.store)
        with closing(refresher.context):
            if record.kind is ReplayKind.ROLLBACK and record.status is not ReplayStatus.REJECTED:
                Rollbacker(refresher).run(replay_id)
                _tell(project, project.store.replay(replay_id), as_json=as_json)
            else:
                _run(project, Replayer(refresher), replay_id, as_json=as_json)


@app.command()
def status(
    context: typer.Context,
    replay_id: Annotated[
        str | None, typer.Argument(help="The id of a replay. Default: all.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=MOST_ROWS, help="Maximum number of replays.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show replays and rollbacks, or the progress of one of them."""
    with open_project(context) as project:
        if replay_id is not None:
            _tell(project, project.store.replay(replay_id), as_json=as_json)
            return
        found = project.store.replays(limit=limit)
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in found], indent=2))
    elif found:
        wide_console().print(replays_table(found))
    else:
        typer.echo("Nothing was replayed or rolled back yet.")


def _needs_approval(project: OpenProject, record: ReplayRecord) -> bool:
    """Whether the form in Airflow would require an approval for this replay."""
    from spark_jobs.state.replays import ReplayKind

    reads = record.plan.get("reads")
    large = reads is None or reads > project.settings.replay.approve_above_rows
    return record.kind is ReplayKind.ROLLBACK or large


def _run(project: OpenProject, replayer: Replayer, replay_id: str, *, as_json: bool) -> None:
    from spark_jobs.state.replays import ReplayStatus

    steps = Steps(Console(stderr=True))
    with steps.step(f"replay {replay_id}") as note:
        record = replayer.run(replay_id, on_step=lambda step, view: note(f"{step} {view}"))
    _tell(project, record, as_json=as_json)
    if record.status is not ReplayStatus.DONE:
        raise typer.Exit(1)


def _tell(project: OpenProject, record: ReplayRecord, *, as_json: bool) -> None:
    rows = project.store.replay_views(record.replay_id)
    attempts = {
        one.view: project.store.find_attempt(one.attempt_id) for one in rows if one.attempt_id
    }
    entry = {**record.as_dict(), "progress": [one.as_dict() for one in rows]}
    _show(entry, progress_table(record, rows, attempts), as_json=as_json)
    if not as_json and record.error:
        typer.echo(record.error)


def _show(entry: object, table: object, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(entry, indent=2))
    else:
        wide_console().print(table)
