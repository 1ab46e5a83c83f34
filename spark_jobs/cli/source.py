"""``tidemark source``: recovery after records or changes of a database were lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.drift import drift
from spark_jobs.cli.resume import resume
from spark_jobs.cli.skipped import skipped
from spark_jobs.serving.project import OpenProject, asker, open_project
from spark_jobs.serving.source_dsn import source_dsn
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.steps import Steps
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import SourceEntry
    from spark_jobs.planning.request import Why

app = typer.Typer(
    no_args_is_help=True,
    help="Sources: recovery after faults, new snapshots, missed deletes, schema drift.",
)
app.command()(skipped)
app.command()(resume)
app.command()(drift)
EXAMPLES = 5

Reason = Annotated[str, typer.Option(help="The reason, at least 10 characters; it is recorded.")]
Run = Annotated[bool, typer.Option("--run/--dry-run", help="Run it, or only show the effect.")]


@dataclass(frozen=True)
class BackfilledDeletes:
    """The rows of a source that its database no longer has.

    Attributes:
        rows: their number.
        among: number of rows that should exist according to the source's changes.
        kept: rows that were missing in the comparison, but that the database had, or did not
            report on, when each was queried.
        examples: the first keys; personal data in them is masked.
        written: whether their deletes were written.
    """

    source: str
    rows: int
    among: int
    kept: int
    examples: tuple[dict[str, Any], ...]
    written: bool

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object; ``told`` is the older name of ``written``."""
        return {**asdict(self), "told": self.written}


@app.callback()
def sources() -> None:
    """Commands for sources."""


@app.command()
def resnapshot(
    context: typer.Context,
    reason: Annotated[str, typer.Option(help="The reason, at least 10 characters.")] = "",
    run: Run = False,
) -> None:
    """Restart the connector with a new slot and a snapshot, after its slot was lost."""
    from spark_jobs.definitions.vocabulary import SourceFormat
    from spark_jobs.planning.request import why
    from spark_jobs.rollout.capture import settle_snapshots
    from spark_jobs.silver.check.log_position import check_log_position
    from spark_jobs.stack.connect import client, wait_until_running
    from spark_jobs.stack.connector import CONNECTOR, SLOT
    from spark_jobs.stack.resnapshot import resnapshot as start_over
    from spark_jobs.storage.lake import Lake

    with open_project(context) as project:
        sources = project.manifest.sources.values()
        captured = [one.name for one in sources if one.format is SourceFormat.DEBEZIUM]
        names, dsn = ", ".join(captured), _dsn(project)
        lake = Lake(project.settings.lake)
        check_log_position(lake, project.store, project.manifest, dsn=dsn)
        if not run:
            typer.echo(
                f"Connector {CONNECTOR} would read {names} again, and slot {SLOT} be recreated."
            )
            typer.echo("Nothing was done; with --run --reason TEXT it is.")
            return
        why(reason)
        steps = Steps(Console(stderr=True))
        with steps.step(f"connector {CONNECTOR} without slot and offsets"):
            start_over(project.settings, dsn=_dropping_dsn(project))
            # Whenever the connector runs, it begins with all rows.
            waiting = settle_snapshots(project.store)
        with steps.step("snapshot begins"), client(project.settings) as api:
            wait_until_running(api)
    if waiting is not None:
        typer.echo(f"Deployment {waiting.deployment_id} needed it: `tidemark apply` continues.")
    typer.echo(f"{names}: read again. Next: tidemark source delete-backfill --dry-run")


# The first name is from older releases.
@app.command("retract", hidden=True, deprecated=True)
@app.command()
def delete_backfill(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Sources. Default: all.")] = None,
    reason: Reason = "",
    run: Run = False,
    let_pass: Annotated[
        bool,
        typer.Option("--let-pass", help="Allow more than 100 rows and 5 % of a source's."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find rows whose delete was missed; with --run, write their deletes to the source's topic."""
    from spark_jobs.planning.request import why

    because = why(reason) if run else None
    with open_project(context) as project:
        asked = _captured(project, names)
        found = list(backfilled_deletes(project, asked, because, let_pass=let_pass))
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in found], indent=2, default=str))
        return
    wide_console().print(backfill_table(found))
    if any(one.kept for one in found):
        typer.echo("Kept: rows that a lookup by key found in the database or could not check.")
    if because is None:
        typer.echo("Nothing was written. To write their deletes: --run --reason TEXT")
    else:
        typer.echo("Their deletes are written. Next: tidemark reconcile --wait 120")


def backfill_table(found: list[BackfilledDeletes]) -> Table:
    """One row per source."""
    table = FittedTable(title="Rows that their database no longer has")
    for column in ("source", "rows", "of", "kept", "first keys"):
        number = column in {"rows", "of", "kept"}
        table.add_column(column, overflow="fold", justify="right" if number else "left")
    for one in found:
        shown = Text("; ".join(json.dumps(key, default=str) for key in one.examples))
        table.add_row(one.source, f"{one.rows:,}", f"{one.among:,}", f"{one.kept:,}", shown)
    return table


def backfilled_deletes(
    project: OpenProject,
    sources: list[SourceEntry],
    because: Why | None,
    *,
    let_pass: bool = False,
) -> Iterator[BackfilledDeletes]:
    """Rows that each source's database no longer has; with a reason, their deletes are written.

    Each row is queried once more immediately before its delete is written.

    Raises:
        DeletionTooLargeError: too many rows, and this is not allowed explicitly; nothing was
            written for this source.
        DatabaseUnreachableError: the database or a table does not answer.
        KafkaUnreachableError: no broker answers.
    """
    from spark_jobs.access.kafka import Principal, kafka_access
    from spark_jobs.bronze.delete_records import DELETED_BY, DELETED_WHY, produce
    from spark_jobs.planning.extent import Extent
    from spark_jobs.serving.report.masking import masked
    from spark_jobs.silver.repair.delete_backfill import MissedDeletion, missed_deletions
    from spark_jobs.silver.repair.recheck import still_gone
    from spark_jobs.state.types import utc_now
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.reader import read_by_delta
    from spark_jobs.storage.session import command_session

    settings, dsn = project.settings, _dsn(project)
    who = asker()
    steps = Steps(Console(stderr=True))
    with command_session(settings, "tidemark delete-backfill") as spark:
        for source in sources:
            with steps.step(f"compare {source.name} with {source.table}"):
                bronze = read_by_delta(spark, Lake(settings.lake).location(source.table_name))
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
                    # As the connector's principal: no other has the right to write to the topic.
                    access = kafka_access(settings, Principal.CONNECT)
                    topic, at = source.topic or "", utc_now()
                    records = (record for one in every for record in one.records(at))
                    headers = {DELETED_BY: who, DELETED_WHY: because.reason}
                    # For each row the delete and its tombstone.
                    rows = produce(access, topic, records, headers=headers) // 2
            keys = tuple(masked(one.row, source.columns) for one in examples)
            done = because is not None
            yield BackfilledDeletes(source.name, rows, found.known, len(kept), keys, written=done)


def _captured(project: OpenProject, names: list[str] | None) -> list[SourceEntry]:
    """The named sources, or all that capture a database.

    Raises:
        SourceUnknownError: no source of that name captures a database.
    """
    from spark_jobs.definitions.vocabulary import SourceFormat
    from spark_jobs.silver.errors import SourceUnknownError

    sources = project.manifest.sources.values()
    known = {one.name: one for one in sources if one.format is SourceFormat.DEBEZIUM and one.table}
    asked = [name.removeprefix("bronze.") for name in names or known]
    for name in asked:
        if name not in known:
            raise SourceUnknownError(name, sorted(known), kind="a captured table")
    return [known[name] for name in asked]


def _dropping_dsn(project: OpenProject) -> str:
    """The source database, as the connector's role if its password is here."""
    from spark_jobs.access.errors import SecretMissingError
    from spark_jobs.stack.slot import connector_dsn

    try:
        return connector_dsn(project.settings)
    except SecretMissingError:
        return _dsn(project)


def _dsn(project: OpenProject) -> str:
    """The URL of the source database.

    Raises:
        SourceDatabaseUnsetError: it is not configured.
    """
    from spark_jobs.silver.errors import SourceDatabaseUnsetError

    found = source_dsn(project.settings)
    if found is None:
        raise SourceDatabaseUnsetError
    return found
