"""``tidemark maintain``: removes unneeded data from the lake and the ledger.

Expired rows are deleted first: the files that this makes obsolete are removed when their retention
has passed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_jobs.names import Layer
from spark_jobs.serving.cleanup.clustering import cluster_tables, correct_tables
from spark_jobs.serving.cleanup.expiry import expire_tables, expired_words
from spark_jobs.serving.cleanup.logs import PastLog, past_log
from spark_jobs.serving.cleanup.needs import Need, kept_since, needs_of
from spark_jobs.serving.project import OpenProject, open_project
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.silver.repair.expiring import Expired
    from spark_jobs.stack import airflow_history
    from spark_jobs.state.trimming import Trimmed


@dataclass(frozen=True)
class Cleaned:
    """The result for one table.

    Attributes:
        files: number of obsolete files before.
        removed: number of removed files.
        bytes: size of the removed files.
        entries: number of removed files of the log.
        why: why more files were kept than the retention requires.
    """

    table: str
    files: int
    removed: int = 0
    bytes: int = 0
    entries: int = 0
    why: str = ""


@dataclass(frozen=True)
class _Limits:
    """What may be removed.

    Attributes:
        retained: start of the retention.
        versions: number of versions that stay readable within it.
    """

    retained: datetime
    versions: int
    dry_run: bool


@dataclass
class Maintenance:
    """The result of a run, or with ``dry_run`` what it would do."""

    dry_run: bool
    expired: list[Expired] = field(default_factory=list)
    tables: list[Cleaned] = field(default_factory=list)
    staged: list[Cleaned] = field(default_factory=list)
    trimmed: Trimmed | None = None
    copies: list[str] = field(default_factory=list)
    clustered: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)
    airflow: airflow_history.Cleaned | None = None


def maintain(
    context: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="Tables, for instance silver.orders. Default: all, and the ledger."),
    ] = None,
    logs: Annotated[
        bool, typer.Option("--logs", help="Only delete unneeded entries of the tables' logs.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Delete expired rows and unneeded files, staged results and ledger rows; cluster files."""
    from spark_jobs.state.types import utc_now

    with open_project(context) as project:
        done = run_maintenance(project, tables or [], logs=logs, dry_run=dry_run, now=utc_now())
    if as_json:
        typer.echo(json.dumps(asdict(done), indent=2, default=str))
        return
    console = wide_console()
    if done.tables or done.staged:
        console.print(cleaned_table(done))
    else:
        console.print("No table has been written yet, or no file of one is to be cleaned.")
    for one in done.expired:
        if one.rows:
            console.print(expired_words(one, dry_run=dry_run), soft_wrap=True)
    if done.copies:
        console.print(f"Expired in environments: {', '.join(done.copies)}.", soft_wrap=True)
    if done.corrected:
        names = ", ".join(done.corrected)
        console.print(f"Rewritten, as filters could miss NaN: {names}.", soft_wrap=True)
    if done.clustered:
        console.print(f"Files clustered: {', '.join(done.clustered)}.", soft_wrap=True)
    if done.trimmed is not None:
        words = "would leave" if dry_run else "left"
        console.print(
            f"{done.trimmed.attempts:,} attempts, {done.trimmed.verifications:,} verifications, "
            f"{done.trimmed.silver_batches:,} silver batches and {done.trimmed.incidents:,} "
            f"incidents {words} the control database.",
            soft_wrap=True,
        )
    if done.airflow is not None:
        words = "would leave" if dry_run else "left"
        console.print(
            f"Airflow's runs before {done.airflow.before:%Y-%m-%d} {words} its database, and "
            f"{done.airflow.files:,} log files ({done.airflow.bytes:,} B) the disk.",
            soft_wrap=True,
        )


def run_maintenance(
    project: OpenProject, names: list[str], *, logs: bool, dry_run: bool, now: datetime
) -> Maintenance:
    """Maintain the named tables; with no names for all of them, staged results and the ledger.

    With ``logs``, only the logs of the tables.

    Raises:
        TableUnknownError: a name that no table of this project has.
    """
    from spark_jobs.stack.airflow_history import clean_history
    from spark_jobs.storage.errors import TableUnknownError

    places = _places(project)
    for name in names:
        if name not in places:
            raise TableUnknownError(name, sorted(places))
    needs: dict[str, list[Need]] = defaultdict(list)
    for need in needs_of(project, now=now):
        needs[need.table].append(need)
    maintenance = project.settings.maintenance
    limits = _Limits(
        retained=now - timedelta(days=maintenance.retention_days),
        versions=maintenance.log_commits,
        dry_run=dry_run,
    )
    done = Maintenance(dry_run)
    if not logs:
        done.expired = list(expire_tables(project, names or places, dry_run=dry_run, now=now))
        if not dry_run:
            done.corrected = list(correct_tables(project, names or places.keys()))
            done.clustered = list(cluster_tables(project, names or places.keys()))
    for name in names or sorted(places):
        for table, location in places[name]:
            # Only the current version of helper tables is read, and never their change feed.
            mine = needs[name] if table == name else []
            files = None if logs else _clean(table, location, mine, limits, now=now)
            past = _clean_log(table, location, mine, limits)
            cleaned = files or Cleaned(table, 0)
            cleaned = replace(cleaned, entries=len(past.paths), why=cleaned.why or past.why)
            if files is not None or past != PastLog():
                done.tables.append(cleaned)
    if not names and not logs:
        done.staged = list(_expire_staged(project, dry_run=dry_run, now=now))
        before = now - timedelta(days=maintenance.ledger_days)
        done.trimmed = project.store.trim(before=before, dry_run=dry_run)
        # Late: a failure, as of a database that is down, keeps little else from its clean-up.
        done.airflow = clean_history(project.settings, now=now, dry_run=dry_run)
    # Last, because files that cannot be deleted end it.
    done.copies = [] if logs or dry_run else _delete_copies(project)
    return done


def cleaned_table(done: Maintenance) -> Table:
    """One row per table and per expired staged result."""
    table = FittedTable(title="dry run: nothing was removed" if done.dry_run else None)
    table.add_column("table", overflow="fold")
    for name in ("files", "after", "freed", "log files freed"):
        table.add_column(name, justify="right")
    table.add_column("kept for", overflow="fold")
    for one in [*done.tables, *done.staged]:
        freed = f"{one.bytes:,} B" if one.bytes else ""
        entries = f"{one.entries:,}" if one.entries else ""
        left = f"{one.files - one.removed:,}"
        table.add_row(one.table, f"{one.files:,}", left, freed, entries, one.why)
    return table


def _delete_copies(project: OpenProject) -> list[str]:
    """Delete views of environments that contain expired rows."""
    from spark_jobs.gold.environment.copies import delete_expired_copies
    from spark_jobs.storage.lake import Lake

    lake = Lake(project.settings.lake)
    entries = (one for one in project.manifest.silver.values() if one.expiry is not None)
    expiring = {str(one.table_name): lake.location(one.table_name) for one in entries}
    return delete_expired_copies(project.settings, project.store, expiring)


def _places(project: OpenProject) -> dict[str, list[tuple[str, str]]]:
    """Names and locations of all tables that this project writes, including helper tables."""
    from spark_jobs.silver.store.tables import SilverTables
    from spark_jobs.storage.lake import Lake

    lake, manifest = Lake(project.settings.lake), project.manifest
    written = [one for one in manifest.sources.values() if one.format.streamed]
    found = {str(one.table_name): [lake.location(one.table_name)] for one in written}
    for entry in manifest.silver.values():
        if manifest.sources[entry.source].format.streamed:
            parts = SilverTables.of(lake, entry)
            # Corrected records may have been erased since.
            found[str(entry.table_name)] = [*parts.places, parts.releases]
    for view in manifest.gold.values():
        found[str(view.table_name)] = [lake.location(view.table_name)]
    return {
        name: [(name, own), *((_below(lake.root, one), one) for one in others)]
        for name, (own, *others) in found.items()
    }


def _below(root: str, location: str) -> str:
    return location.removeprefix(f"{root}/")


def _clean(
    table: str, location: str, needs: list[Need], limits: _Limits, *, now: datetime
) -> Cleaned | None:
    """Remove a table's obsolete files; None if the table does not exist."""
    from spark_jobs.storage import cleaning, log

    if log.table_version(location) is None:
        return None
    stored = cleaning.stored_files(location)
    if not cleaning.cleanable(location):
        return Cleaned(table, len(stored), why="its files hold more than rows; use Spark's VACUUM")
    kept = kept_since(location, needs, retained=limits.retained)
    if kept.since is None:
        return Cleaned(table, len(stored), why=kept.why)
    past = cleaning.past_files(location, since=kept.since, now=now) & stored.keys()
    if not limits.dry_run:
        cleaning.remove_files(location, past)
    freed = cleaning.bytes_of(past, stored)
    return Cleaned(table, len(stored), len(past), freed, why=kept.why)


def _clean_log(table: str, location: str, needs: list[Need], limits: _Limits) -> PastLog:
    """Remove unneeded files of a table's log."""
    from spark_jobs.gold.base.publications import latest_publication
    from spark_jobs.storage import cleaning

    view = table.startswith(f"{Layer.GOLD}.")
    publication = latest_publication(location) if view else None
    past = past_log(
        location,
        needs,
        retained=limits.retained,
        most=limits.versions,
        published=None if publication is None else publication.version,
    )
    if not limits.dry_run:
        cleaning.remove_files(location, past.paths)
    return past


def _expire_staged(project: OpenProject, *, dry_run: bool, now: datetime) -> Iterator[Cleaned]:
    """Remove staged results that are older than the configured days.

    A refresh that was killed or failed while it wrote has left files without a commit.
    """
    from spark_jobs.storage import cleaning, log
    from spark_jobs.storage.history import discard_table, folders
    from spark_jobs.storage.lake import Lake

    lake = Lake(project.settings.lake)
    oldest = now - timedelta(days=project.settings.gold.staging_days)
    for view in folders(lake.staging("", "").rstrip("/")):
        for attempt in folders(lake.staging(view, "").rstrip("/")):
            location = lake.staging(view, attempt)
            commits = log.commits(location, limit=1)
            at = commits[0].timestamp if commits else cleaning.last_written(location)
            if at is None or at >= oldest:
                continue
            stored = cleaning.stored_files(location)
            if not dry_run:
                discard_table(location)
            freed = sum(stored.values())
            yield Cleaned(_below(lake.root, location), len(stored), len(stored), freed)
