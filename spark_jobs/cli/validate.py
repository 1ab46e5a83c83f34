"""``tidemark validate``: a summary of the project, or all of its problems."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from spark_jobs.cli.analysis import AskSpark, ask_of, print_note
from spark_jobs.cli.contracts import BreakContract, contract_problems
from spark_jobs.errors import LakehouseError, ProblemsError, counted
from spark_jobs.settings import Settings, load_settings
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.serving.sql.view_analysis import Analysis


def validate(
    context: typer.Context,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also compare sources with their databases.")
    ] = False,
    spark: AskSpark = None,
    listed: Annotated[bool, typer.Option("--list", help="Print a row for each table.")] = False,
    break_contract: BreakContract = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check every declaration and list all problems; exit with 1 if there are any."""
    from spark_jobs.graph.doubts import doubts
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.serving.sql.view_analysis import Analysis, Ask, analyzed, sound_views
    from spark_jobs.storage.compiled import inspect_settings

    try:
        settings = load_settings(context.obj)
    except ProblemsError as error:
        if not as_json:
            raise
        nothing = Manifest(project="")
        typer.echo(_answer(nothing, error.problems, [], Analysis(ask=Ask.NEVER)))
        raise typer.Exit(1) from error
    manifest, problems = inspect_settings(settings)
    if not problems:
        # A view that does not compile is missing from the manifest; its contract is not broken yet.
        problems = contract_problems(settings, manifest, break_contract)
    differences: list[LakehouseError] = []
    if connect:
        found_there, differences = _database_findings(settings, manifest)
        problems = [*problems, *found_there]
    with ExitStack() as opened:
        views = sound_views(manifest, problems)
        analysis = analyzed(settings, manifest, ask_of(spark), opened=opened, views=views)
    problems = [*problems, *analysis.problems]
    warnings = [*doubts(manifest, settings.project_dir), *differences]
    if as_json:
        typer.echo(_answer(manifest, problems, warnings, analysis))
        raise typer.Exit(1 if problems else 0)
    for warning in warnings:
        typer.echo(f"warning: {warning.render()}", err=True)
    print_note(analysis)
    if problems:
        raise ProblemsError(problems)
    if listed:
        wide_console().print(found_table(manifest))
    typer.echo(f"{summary(manifest, warnings=len(warnings))} {analysis.summary}".rstrip())


def _database_findings(
    settings: Settings, manifest: Manifest
) -> tuple[list[LakehouseError], list[LakehouseError]]:
    """Problems and warnings of the declared sources that the source database reveals.

    Raises:
        SourceDatabaseUnsetError: it is not configured.
        DatabaseUnreachableError: it or a table cannot be read.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    from spark_jobs.serving.source_dsn import source_dsn
    from spark_jobs.silver.errors import SourceDatabaseUnsetError
    from spark_jobs.stack.source_check import source_problems, source_warnings

    captured = [source for source in manifest.sources.values() if source.table]
    if not captured:
        return [], []
    dsn = source_dsn(settings)
    if dsn is None:
        raise SourceDatabaseUnsetError
    problems = list(source_problems(dsn, captured, missing=True))
    return problems, list(source_warnings(dsn, captured))


def _answer(
    manifest: Manifest,
    problems: Sequence[LakehouseError],
    warnings: Sequence[LakehouseError],
    analysis: Analysis,
) -> str:
    """The findings as JSON."""
    found = {
        "valid": not problems,
        "found": _counts(manifest),
        "problems": [problem.as_dict() for problem in problems],
        "warnings": [warning.as_dict() for warning in warnings],
        "spark": analysis.as_dict(),
    }
    return json.dumps(found, indent=2)


def _counts(manifest: Manifest) -> dict[str, list[str]]:
    return {
        "sources": list(manifest.sources),
        "silver": list(manifest.silver),
        "gold": list(manifest.gold),
        "sinks": list(manifest.sinks),
    }


def summary(manifest: Manifest, *, warnings: int) -> str:
    """The number of valid declarations, in one line."""
    counts = {
        "source": len(manifest.sources),
        "silver table": len(manifest.silver),
        "gold view": len(manifest.gold),
        "sink": len(manifest.sinks),
        "warning": warnings,
    }
    totals = ", ".join(counted(number, word) for word, number in counts.items() if number)
    return f"{manifest.project} is valid: {totals}."


def found_table(manifest: Manifest) -> Table:
    """One row per declaration."""
    table = FittedTable(title=escape(manifest.project))
    for heading in ("table", "reads", "how"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "table")
    for heading in ("columns", "rules"):
        table.add_column(heading, justify="right")
    for source in manifest.sources.values():
        origin = escape(source.topic or source.location or source.path or "")
        columns = str(len(source.columns))
        table.add_row(str(source.table_name), origin, source.format, columns, "")
    for silver in manifest.silver.values():
        how = f"{silver.apply} by {', '.join(silver.keys)}" if silver.keys else silver.apply
        table.add_row(
            str(silver.table_name),
            f"bronze.{silver.source}",
            how,
            str(len(silver.columns)),
            _expectations(silver.suite),
        )
    for tier in manifest.gold_by_tier():
        for view in tier:
            table.add_row(
                str(view.table_name),
                ", ".join(view.inputs),
                f"{view.refresh} {view.due}".rstrip(),
                str(len(view.columns)),
                _expectations(view.suite),
            )
    for sink in manifest.sinks.values():
        how = f"{sink.system} {escape(sink.target)} by {', '.join(sink.keys)}"
        table.add_row(f"sink {sink.name}", sink.table, how, str(len(sink.columns)), "")
    return table


def _expectations(suite: dict[str, object] | None) -> str:
    rules = suite.get("expectations") if suite else None
    return str(len(rules)) if isinstance(rules, list) else "none"
