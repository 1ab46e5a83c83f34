"""``tidemark source resume``: continues a source whose checkpoint is unusable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_jobs.serving.project import asker, open_project
from spark_jobs.terminal.console import wide_console

if TYPE_CHECKING:
    from spark_jobs.bronze.flow import BronzeFlow
    from spark_jobs.bronze.position import Start
    from spark_jobs.serving.project import OpenProject


def resume(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="SOURCE", help="The source.")],
    reason: Annotated[
        str, typer.Option(help="The reason, at least 10 characters; it is recorded.")
    ] = "",
    run: Annotated[
        bool, typer.Option("--run/--dry-run", help="Run it, or only show the new position.")
    ] = False,
    let_pass: Annotated[
        bool, typer.Option("--let-pass", help="Skip records that Kafka has deleted.")
    ] = False,
) -> None:
    """Continue a refused source from its bronze table, with a new checkpoint."""
    from spark_jobs.bronze.errors import RecordsExpiredError
    from spark_jobs.planning.request import why
    from spark_jobs.state.types import utc_now

    because = why(reason) if run else None
    with open_project(context) as project:
        flow = _flow(project, name.removeprefix("bronze."))
        problem = flow.refusal()
        if problem is None:
            typer.echo(f"{flow.name} continues from its checkpoint; there is nothing to do.")
            return
        start = flow.start_after_table()
        typer.echo(f"{flow.name} is refused: {problem.primary} [{problem.condition}]")
        wide_console().print(_shown(start))
        if start.lost and not let_pass:
            raise RecordsExpiredError(flow.source.name, start.lost)
        if because is None:
            typer.echo("Nothing was done. To continue from there: --run --reason TEXT")
            return
        flow.resume(start, by=asker(), reason=because.reason, at=utc_now())
    typer.echo("It continues within a minute. Next: tidemark reconcile --wait 120")


def _shown(start: Start) -> Table:
    table = Table(title="New position", title_justify="left")
    for column in ("partition", "next offset", "left out"):
        table.add_column(column, justify="right")
    left_out = {one.partition: f"{one.start} to {one.end - 1}" for one in start.lost}
    for partition, offset in sorted(start.offsets.items()):
        table.add_row(str(partition), str(offset), left_out.get(partition, "none"))
    return table


def _flow(project: OpenProject, name: str) -> BronzeFlow:
    """The flow of a source that reads a topic.

    Raises:
        SourceUnknownError: there is no such source.
    """
    from spark_jobs.access.kafka import Principal, kafka_access
    from spark_jobs.bronze.flow import BronzeFlow
    from spark_jobs.bronze.topics import Topics
    from spark_jobs.silver.errors import SourceUnknownError

    known = {one.name: one for one in project.manifest.sources.values() if one.topic}
    if name not in known:
        raise SourceUnknownError(name, sorted(known))
    topics = Topics(kafka_access(project.settings, Principal.STREAMS))
    return BronzeFlow(known[name], project.settings, topics)
