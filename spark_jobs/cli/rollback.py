"""``tidemark rollback`` and ``release``: an earlier content of a view, and how to go on."""

from __future__ import annotations

import getpass
import json
from contextlib import closing
from typing import Annotated

import typer

from spark_jobs.cli.project import chosen_views, open_project


def rollback(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The gold view.")],
    reason: Annotated[str, typer.Option(help="Why, in 10 signs or more; it is kept.")],
    to: Annotated[
        int | None,
        typer.Option(help="A version of the published table. Default: before the last change."),
    ] = None,
    replay: Annotated[
        str | None, typer.Option(help="A replay or a rollback: what was published before it.")
    ] = None,
    ticket: Annotated[str | None, typer.Option(help="A ticket, for instance OPS-123.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Publish an earlier content of VIEW as a new version, and hold the view there."""
    from spark_jobs.gold.refresh import Refresher
    from spark_jobs.gold.replay import new_id
    from spark_jobs.gold.rollback import Rollbacker
    from spark_jobs.planning.request import why
    from spark_jobs.state.replays import ReplayKind

    if to is not None and replay is not None:
        raise typer.BadParameter("pass --to or --replay, not both")
    because = why(reason, ticket)
    with open_project(context) as project:
        (name,) = chosen_views(project.manifest, [view], everything=False)
        refresher = Refresher(project.settings, project.manifest, project.store)
        with closing(refresher.context):
            rollbacker = Rollbacker(refresher)
            target = rollbacker.target(name, to=to, replay=replay)
            record = rollbacker.begin(
                name,
                target,
                replay_id=new_id(ReplayKind.ROLLBACK),
                who=getpass.getuser(),
                why=because,
            )
            row = rollbacker.run(record.replay_id)
    if as_json:
        typer.echo(json.dumps(row.as_dict(), indent=2))
        return
    difference = row.difference or {}
    typer.echo(
        f"{name} has the content of version {target.version} again, as version "
        f"{row.published_version}: {difference.get('leaving')} rows left, "
        f"{difference.get('entering')} rows entered."
    )
    typer.echo(f"It is held there. `tidemark release {name}` lets refreshes go on.")


def release(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The gold view.")],
    reason: Annotated[
        str | None,
        typer.Option(help="Why a result is published that the gate holds; it is kept."),
    ] = None,
    ticket: Annotated[str | None, typer.Option(help="A ticket, for instance OPS-123.")] = None,
) -> None:
    """Let a view go on: end a rollback's hold, or publish once what the gate holds."""
    from spark_jobs.gold.refresh import Refresher
    from spark_jobs.gold.release import held_attempt, release_held
    from spark_jobs.gold.rollback import Rollbacker
    from spark_jobs.planning.request import why

    with open_project(context) as project:
        (name,) = chosen_views(project.manifest, [view], everything=False)
        refresher = Refresher(project.settings, project.manifest, project.store)
        if name in project.store.holds():
            if reason is not None or ticket is not None:
                raise typer.BadParameter("a rollback holds the view, and its end keeps no reason")
            Rollbacker(refresher).release(name)
            typer.echo(f"{name} is released; the next refresh takes up what came since.")
            return
        with closing(refresher.context):
            # First, so that nobody is asked for a reason where there is nothing to release.
            held_attempt(refresher, name)
            because = why(reason, ticket)
            published = release_held(refresher, name, who=getpass.getuser(), why=because)
        attempt = project.store.attempt(published.attempt_id)
    typer.echo(
        f"{name} is published as version {published.version}, although this failed: "
        f"{(attempt.verdict or {}).get('released_rules')}."
    )
    typer.echo("The rules stay: the next refresh is judged by them again.")
