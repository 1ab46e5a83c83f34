"""``tidemark upgrade``: upgrades stored state of an earlier release to this one.

Nothing may run in the meantime. The streams upgrade what needs Spark when they start, and the next
refresh what needs a computation; both are listed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_jobs.errors import ProblemsError
from spark_jobs.settings import Settings, load_settings
from spark_jobs.streaming.application import sole_application
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest, SourceEntry

CURRENT = "current"


@dataclass(frozen=True)
class Step:
    """One item with a version.

    Attributes:
        found: its current state.
        outcome: what was done, or with ``--check`` would be.
        pending: whether this command has to upgrade it.
    """

    part: str
    found: str
    outcome: str = CURRENT
    pending: bool = False


def upgrade(
    context: typer.Context,
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing; exit with 1 if there is something to do."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Upgrade the control database and the manifest to this release; check tables and streams."""
    settings = load_settings(context.obj)
    with sole_application(settings):
        steps = list(upgrade_steps(settings, check=check))
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in steps], indent=2))
    else:
        wide_console().print(steps_table(steps))
    if check and any(one.pending for one in steps):
        raise typer.Exit(1)


def upgrade_steps(settings: Settings, *, check: bool) -> Iterator[Step]:
    """Check everything first, then upgrade it; with ``check`` only check.

    Raises:
        ControlSchemaNewerError, WatermarkNewerError, CheckpointFormatError: a newer release wrote
            it; nothing was changed.
        ProblemsError: the declarations have problems.
    """
    from spark_jobs.state.migrate import found_version
    from spark_jobs.state.store import ControlStore
    from spark_jobs.state.tables import SCHEMA_VERSION
    from spark_jobs.storage.compiled import inspect_settings
    from spark_jobs.storage.in_force import deployment_of, put_manifest

    schema = found_version(settings.control_url)
    manifest, problems = inspect_settings(settings, keep=False)
    if problems:
        raise ProblemsError(problems)
    rest = [
        *_tables(settings, manifest),
        *_streams(settings, manifest),
        *_views(settings, manifest),
    ]
    behind = schema != SCHEMA_VERSION
    stale = not _written(settings, manifest)
    applied = deployment_of(settings.manifest_file) is not None
    if not check:
        ControlStore.open(settings.control_url).close()
        if not applied:
            put_manifest(settings, manifest)
    yield Step(
        "control database",
        "none" if schema is None else f"schema {schema}",
        f"schema {SCHEMA_VERSION}" if behind else CURRENT,
        behind,
    )
    if stale and applied:
        yield Step("manifest", "as it was applied", "stays; `tidemark plan` shows what differs")
    else:
        yield Step(
            "manifest",
            "another, or none" if stale else CURRENT,
            "compiled" if stale else CURRENT,
            stale,
        )
    yield from rest


def steps_table(steps: list[Step]) -> Table:
    """One row per item."""
    table = FittedTable()
    for name in ("part", "found", "outcome"):
        table.add_column(name, overflow="fold")
    for one in steps:
        table.add_row(one.part, one.found, one.outcome)
    return table


def _written(settings: Settings, manifest: Manifest) -> bool:
    """Whether the manifest file equals what this release compiles from the declarations."""
    from pydantic import ValidationError

    try:
        found = type(manifest).read(settings.manifest_file)
        # Files that were only touched give the same manifest.
        same = {"deployment": None, "compiled_from": manifest.compiled_from}
        return found.model_copy(update=same) == manifest
    except (FileNotFoundError, ValidationError):
        return False


def _tables(settings: Settings, manifest: Manifest) -> Iterator[Step]:
    """Bronze tables to which this release would add columns."""
    from spark_jobs.bronze.table import lacking_columns
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.log import table_version

    for source in _landed(manifest):
        location = Lake(settings.lake).location(source.table_name)
        version = table_version(location)
        if version is not None:
            lacking = ", ".join(column.name for column in lacking_columns(location))
            outcome = f"the streams add {lacking} when they start" if lacking else CURRENT
            yield Step(str(source.table_name), f"version {version.version}", outcome)


def _streams(settings: Settings, manifest: Manifest) -> Iterator[Step]:
    """Where each stream continues, by its checkpoint of the newest epoch."""
    from spark_jobs.storage.checkpoints import last_committed, last_planned, newest_checkpoint
    from spark_jobs.storage.lake import Lake

    lake = Lake(settings.lake)
    landed = _landed(manifest)
    applied = [one for one in manifest.silver.values() if manifest.sources[one.source] in landed]
    names = [str(one.table_name) for one in landed] + [str(one.table_name) for one in applied]
    for name in names:
        checkpoint = newest_checkpoint(lake, name)
        ended, planned = last_committed(checkpoint), last_planned(checkpoint)
        if planned is not None:
            begun = ended is None or ended.batch_id < planned
            outcome = f"batch {planned} runs again" if begun else CURRENT
            yield Step(f"stream of {name}", f"batch {planned}", outcome)


def _views(settings: Settings, manifest: Manifest) -> Iterator[Step]:
    """Whether each published view is what this release would publish."""
    from spark_jobs.gold.base.publications import latest_publication
    from spark_jobs.storage.lake import Lake

    for view in manifest.gold.values():
        found = latest_publication(Lake(settings.lake).location(view.table_name))
        if found is not None:
            same = found.watermark.fingerprint == view.fingerprint
            outcome = (
                CURRENT if same else "defined otherwise: its next refresh computes what differs"
            )
            yield Step(str(view.table_name), f"version {found.version}", outcome)


def _landed(manifest: Manifest) -> list[SourceEntry]:
    """The sources whose bronze tables this project writes."""
    found = manifest.sources.values()
    return [source for source in found if source.format.streamed]
