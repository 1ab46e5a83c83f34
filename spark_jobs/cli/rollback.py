"""``tidemark rollback`` and ``release``: publish an earlier version of a view, and unpin it."""

from __future__ import annotations

import getpass
import json
from contextlib import closing
from typing import Annotated

import typer

from spark_jobs.cli.approval import alone_is_enough
from spark_jobs.serving.project import named_view, open_project


def rollback(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The gold view.")],
    reason: Annotated[
        str, typer.Option(help="The reason, at least 10 characters; it is recorded.")
    ],
    to: Annotated[
        int | None,
        typer.Option(help="A version of the published table. Default: before the last change."),
    ] = None,
    replay: Annotated[
        str | None, typer.Option(help="A replay or a rollback: restore the content before it.")
    ] = None,
    ticket: Annotated[str | None, typer.Option(help="A ticket, for instance OPS-123.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Publish an earlier content of VIEW as a new version, and pin the view."""
    from spark_jobs.gold.recover.replay import new_id
    from spark_jobs.gold.recover.rollback import Rollbacker
    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.planning.request import why
    from spark_jobs.state.replays import ReplayKind

    if to is not None and replay is not None:
        raise typer.BadParameter("pass --to or --replay, not both")
    because = why(reason, ticket)
    with open_project(context) as project:
        name = named_view(project.manifest, view)
        alone_is_enough(project.settings, form="ops__rollback")
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
    deleted, inserted = difference.get("leaving"), difference.get("entering")
    counts = f"{deleted} rows deleted, {inserted} rows inserted"
    if deleted is None or inserted is None:
        counts = f"rows were not counted, for {difference.get('detail')}"
    typer.echo(
        f"{name} has the content of version {target.version} again, as version "
        f"{row.published_version}: {counts}."
    )
    typer.echo(
        f"It is pinned there until `tidemark release {name}`, or the form ops__release, unpins it."
    )


def release(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The gold view.")],
    reason: Annotated[
        str | None,
        typer.Option(help="The reason; it is recorded. Required to publish a blocked result."),
    ] = None,
    ticket: Annotated[str | None, typer.Option(help="A ticket, for instance OPS-123.")] = None,
    attempt: Annotated[
        str | None,
        typer.Option(help="The result to publish. Default: the newest that waits."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Unpin a view after a rollback, or publish a blocked result once."""
    from spark_jobs.gold.recover.release import blocked_attempt, newer_input, release_blocked
    from spark_jobs.gold.recover.rollback import Rollbacker
    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.planning.request import why

    with open_project(context) as project:
        name = named_view(project.manifest, view)
        alone_is_enough(project.settings, form="ops__release")
        refresher = Refresher(project.settings, project.manifest, project.store)
        person = getpass.getuser()
        if name in project.store.pinned_views():
            ends = None if reason is None and ticket is None else why(reason, ticket)
            Rollbacker(refresher).release(name, who=person, why=ends)
            said = f"{name} is no longer pinned; the next refresh picks up the changes since."
            typer.echo(json.dumps({"view": name, "unpinned": True}, indent=2) if as_json else said)
            return
        with closing(refresher.context):
            # First, so that a reason is only required if there is something to release.
            chosen = blocked_attempt(refresher, name, attempt_id=attempt)
            because = why(reason, ticket)
            newer = newer_input(refresher, chosen)
            published = release_blocked(
                refresher, name, who=person, why=because, attempt_id=chosen.attempt_id
            )
        done = project.store.attempt(published.attempt_id)
    if as_json:
        newest = {"newer_input": newer.as_dict()}
        typer.echo(json.dumps({**done.as_dict(), "unpinned": False, **newest}, indent=2))
        return
    typer.echo(
        f"{name} is published as version {published.version}, although these rules failed: "
        f"{(done.verdict or {}).get('released_rules')}."
    )
    if newer.versions:
        typer.echo(f"Newer input is available, and comes with the next refresh: {newer}.")
    typer.echo("The rules stay in force for the next refresh.")
