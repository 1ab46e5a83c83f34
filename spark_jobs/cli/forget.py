"""``tidemark forget``: erases a person's records of a source from the lake."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.serving.project import OpenProject, asker, open_project
from spark_jobs.streaming.application import sole_application
from spark_jobs.terminal.steps import Steps

if TYPE_CHECKING:
    from spark_jobs.planning.request import Why
    from spark_jobs.silver.repair.forgetting import Forgotten


def forget(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="A source whose records hold the person's data.")],
    values: Annotated[
        list[str], typer.Argument(help="COLUMN=VALUE, for instance user_id=7; all must match.")
    ],
    reason: Annotated[
        str, typer.Option(help="The reason, at least 10 characters; it is recorded.")
    ] = "",
    run: Annotated[
        bool, typer.Option("--run/--dry-run", help="Run it, or only count the records.")
    ] = False,
    let_pass: Annotated[
        bool,
        typer.Option("--let-pass", help="Allow more than 100 records and 5 % of the source's."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Erase the records of SOURCE that contain VALUES, and rebuild its silver tables."""
    from spark_jobs.planning.request import why

    because = why(reason) if run else None
    named = dict(_parted(one) for one in values)
    with open_project(context) as project:
        found = forgotten(
            project, source.removeprefix("bronze."), named, because, let_pass=let_pass
        )
        days = project.settings.maintenance.retention_days
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2, default=str))
        return
    for one in found.examples:
        typer.echo(json.dumps(one, default=str))
    if because is None:
        typer.echo(
            f"{found.records:,} of {found.among:,} records match. Nothing was written; "
            "to erase them, add --run."
        )
    else:
        typer.echo(f"{found.records:,} records erased, {len(found.rebuilt)} silver tables rebuilt.")
        if found.copies:
            typer.echo(f"Deleted from environments: {', '.join(found.copies)}.")
        typer.echo(
            "Start the streams and let gold refresh. The files that held the values go with "
            f"`tidemark maintain` after {days:g} days."
        )


def forgotten(
    project: OpenProject,
    name: str,
    named: dict[str, str],
    because: Why | None,
    *,
    let_pass: bool = False,
) -> Forgotten:
    """Erase records in a Spark session of this process, while no stream runs.

    Args:
        project: the open project.
        name: of the source.
        named: values by column.
        because: the reason; None for a dry run.
        let_pass: allow a large number of records.

    Returns:
        the result; personal data in the examples is masked.

    Raises:
        SourceUnknownError: there is no such source of records.
        StreamsAlreadyRunningError: the streams run.
        TableMissingError: the source has no bronze table yet.
        LakehouseError: any condition of ``Forgetting.run``.
    """
    from spark_jobs.gold.environment.copies import delete_copies
    from spark_jobs.serving.report.masking import masked
    from spark_jobs.silver.errors import SourceUnknownError
    from spark_jobs.silver.flow import SilverFlow
    from spark_jobs.silver.repair.forgetting import Forgetting
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.log import existing_table
    from spark_jobs.storage.session import command_session

    settings, manifest = project.settings, project.manifest
    known = [one.name for one in manifest.sources.values() if one.format.streamed]
    if name not in known:
        raise SourceUnknownError(name, sorted(known))
    source = manifest.sources[name]
    entries = [one for one in manifest.silver.values() if one.source == name]
    bronze = Lake(settings.lake).location(source.table_name)
    existing_table(bronze)
    with sole_application(settings), command_session(settings, "tidemark forget") as spark:
        tables = [
            SilverFlow(source, one, settings, project.store).rebuilder(spark) for one in entries
        ]
        work = Forgetting(
            spark=spark,
            source=source,
            bronze=bronze,
            tables=tables,
            max_bytes=settings.streams.max_record_bytes,
        )
        with Steps(Console(stderr=True)).step(f"forget in {source.table_name}"):
            if because is None:
                found = work.preview(named)
            else:
                found = work.run(named, by=asker(), reason=because.reason, let_pass=let_pass)
                names = [str(source.table_name), *(str(one.table_name) for one in entries)]
                why = f"records of {source.table_name} were forgotten"
                copies = delete_copies(settings, project.store, names, why=why)
                found = replace(found, copies=tuple(copies))
            shown = tuple(masked(one, source.columns) for one in found.examples)
            return replace(found, examples=shown)


def _parted(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not (column and sign):
        raise typer.BadParameter(f"{text!r} is not COLUMN=VALUE")
    return column, value
