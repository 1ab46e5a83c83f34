"""``tidemark source``: what to do where a database's changes were lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.console import wide_console
from spark_jobs.cli.project import OpenProject, asker, open_project
from spark_jobs.cli.reconcile import source_dsn
from spark_jobs.cli.skipped import skipped
from spark_jobs.cli.steps import Steps

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import SourceEntry
    from spark_jobs.planning.request import Why

app = typer.Typer(
    no_args_is_help=True,
    help="Sources that capture a database: begin anew, and retract what is gone.",
)
app.command()(skipped)
EXAMPLES = 5

Reason = Annotated[str, typer.Option(help="Why, in 10 signs or more; it is kept.")]
Run = Annotated[bool, typer.Option("--run/--dry-run", help="Do it, or only show what would be.")]


@dataclass(frozen=True)
class Retracted:
    """The rows of a source that its database no longer has.

    Attributes:
        rows: how many.
        among: how many rows the source's changes leave there.
        kept: rows that were missing when all were compared, and that the database has, or says
            nothing of, when it is asked for each.
        examples: the keys of the first; personal data in them is masked.
        told: whether their deletions were told.
    """

    source: str
    rows: int
    among: int
    kept: int
    examples: tuple[dict[str, Any], ...]
    told: bool


@app.callback()
def sources() -> None:
    """Verbs about sources."""


@app.command()
def resnapshot(
    context: typer.Context,
    reason: Annotated[str, typer.Option(help="Why, in 10 signs or more.")] = "",
    run: Run = False,
) -> None:
    """Let the connector begin anew with a slot and a snapshot, after its slot was lost."""
    from spark_jobs.local.connect import CONNECTOR, SLOT, client, wait_until_running
    from spark_jobs.local.resnapshot import resnapshot as begin_anew
    from spark_jobs.planning.request import why

    with open_project(context) as project:
        captured = [one.name for one in _captured(project, None)]
        names = ", ".join(captured)
        if not run:
            typer.echo(
                f"Connector {CONNECTOR} would read {names} anew, and slot {SLOT} be made anew."
            )
            typer.echo("Nothing was done; with --run --reason TEXT it is.")
            return
        why(reason)
        steps = Steps(Console(stderr=True))
        with steps.step(f"connector {CONNECTOR} without slot and offsets"):
            begin_anew(project.settings, dsn=_dsn(project))
        with steps.step("snapshot begins"), client(project.settings) as api:
            wait_until_running(api)
    typer.echo(f"{names}: read anew. Next: tidemark source retract --dry-run")


@app.command()
def retract(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Sources; by default all.")] = None,
    reason: Reason = "",
    run: Run = False,
    let_pass: Annotated[
        bool,
        typer.Option("--let-pass", help="Also more than 100 rows and 5 % of a source's."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find rows that the database no longer has and no change deleted; with --run, retract them."""
    from spark_jobs.planning.request import why

    because = why(reason) if run else None
    with open_project(context) as project:
        asked = _captured(project, names)
        found = list(retractions(project, asked, because, let_pass=let_pass))
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2, default=str))
        return
    table = Table(title="Rows that their database no longer has", title_justify="left")
    for column in ("source", "rows", "of", "kept", "first keys"):
        number = column in {"rows", "of", "kept"}
        table.add_column(column, overflow="fold", justify="right" if number else "left")
    for one in found:
        shown = "; ".join(json.dumps(key, default=str) for key in one.examples)
        table.add_row(one.source, f"{one.rows:,}", f"{one.among:,}", f"{one.kept:,}", shown)
    wide_console().print(table)
    if any(one.kept for one in found):
        typer.echo("Kept are rows that the database has, or says nothing of, when asked for each.")
    if because is None:
        typer.echo("Nothing was done; --run --reason TEXT tells their deletions.")
    else:
        typer.echo("Their deletions are told. Next: tidemark reconcile --wait 120")


def retractions(
    project: OpenProject,
    sources: list[SourceEntry],
    because: Why | None,
    *,
    let_pass: bool = False,
) -> Iterator[Retracted]:
    """What each source's database no longer has, told where there is a reason.

    Each row is asked for once more right before its deletion is told.

    Raises:
        DeletionTooLargeError: these are many, and nobody lets them pass; nothing was told of
            this source.
        DatabaseUnreachableError: the database or a table does not answer.
        KafkaUnreachableError: no broker answers.
    """
    from spark_jobs.access.kafka import Principal, kafka_access
    from spark_jobs.bronze.telling import TOLD_BY, TOLD_WHY, tell
    from spark_jobs.cli.masking import masked
    from spark_jobs.planning.extent import Extent
    from spark_jobs.silver.asked_again import still_gone
    from spark_jobs.silver.retraction import MissedDeletion, missed_deletions
    from spark_jobs.state.types import utc_now
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.session import QUIET, driver_session
    from spark_jobs.storage.tables import read

    settings, dsn = project.settings, _dsn(project)
    who = asker()
    steps = Steps(Console(stderr=True))
    spark = driver_session(settings, "tidemark retract", conf=QUIET)
    try:
        for source in sources:
            with steps.step(f"compare {source.name} with {source.table}"):
                bronze = read(spark, Lake(settings.lake).location(source.table_name))
                most = settings.streams.max_record_bytes
                found = missed_deletions(spark, bronze, source, dsn=dsn, max_bytes=most)
                if because is not None:
                    place = f"source {source.name}"
                    Extent(place, found.count, found.known).check(let_pass=let_pass)
                kept: list[MissedDeletion] = []
                gone = still_gone(dsn, source, found.rows, kept=kept)
                examples = list(islice(gone, EXAMPLES))
                every = chain(examples, gone)
                if because is None:
                    rows = sum(1 for _ in every)
                else:
                    # The connector's own right: the topic is otherwise nobody's to write.
                    access = kafka_access(settings, Principal.CONNECT)
                    topic, at = source.topic or "", utc_now()
                    records = (record for one in every for record in one.records(at))
                    headers = {TOLD_BY: who, TOLD_WHY: because.reason}
                    # Of each row the deletion and its tombstone.
                    rows = tell(access, topic, records, headers=headers) // 2
            keys = tuple(masked(one.row, source.columns) for one in examples)
            done = because is not None
            yield Retracted(source.name, rows, found.known, len(kept), keys, told=done)
    finally:
        spark.stop()


def _captured(project: OpenProject, names: list[str] | None) -> list[SourceEntry]:
    """The sources that are named, or all that capture a database.

    Raises:
        SourceUnknownError: none captures a database under that name.
    """
    from spark_jobs.definitions.vocabulary import SourceFormat
    from spark_jobs.silver.errors import SourceUnknownError

    sources = project.manifest.sources.values()
    known = {one.name: one for one in sources if one.format is SourceFormat.DEBEZIUM and one.table}
    asked = [name.removeprefix("bronze.") for name in names or known]
    for name in asked:
        if name not in known:
            raise SourceUnknownError(name, sorted(known))
    return [known[name] for name in asked]


def _dsn(project: OpenProject) -> str:
    """The database that changes come from.

    Raises:
        SourceDatabaseUnsetError: nothing says which it is.
    """
    from spark_jobs.silver.errors import SourceDatabaseUnsetError

    found = source_dsn(project.settings)
    if found is None:
        raise SourceDatabaseUnsetError
    return found
