"""``tidemark source drift``: differences between records and their sources' declarations."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from spark_jobs.serving.project import asker, open_project
from spark_jobs.terminal.console import wide_console


def drift(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Sources. Default: all.")] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Accept the differences of these sources.")
    ] = False,
    column: Annotated[
        list[str] | None, typer.Option(help="Accept only this column; may be repeated.")
    ] = None,
    reason: Annotated[
        str, typer.Option(help="The reason, at least 10 characters; it is recorded.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show schema drift: records that differ from the declaration; --accept accepts it."""
    from spark_jobs.planning.request import why
    from spark_jobs.serving.report.drift import drift_table, drift_tellings
    from spark_jobs.silver.errors import SourceUnknownError

    because = why(reason) if accept else None
    with open_project(context) as project:
        known = sorted(one.name for one in project.manifest.sources.values() if one.topic)
        asked = [name.removeprefix("bronze.") for name in names or known]
        for name in asked:
            if name not in known:
                raise SourceUnknownError(name, known)
        if because is not None:
            count = 0
            for name in asked:
                columns = column or {one.column for one in project.store.drifts(name)}
                count += project.store.accept_drifts(
                    name, columns=columns, by=asker(), reason=because.reason
                )
            typer.echo(f"Differences that are accepted now: {count:,}")
            return
        found = [one for one in drift_tellings(project) if one.drift.source in asked]
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in found], indent=2, default=str))
    elif found:
        wide_console().print(drift_table(found))
    else:
        typer.echo("All records match their declarations.")
