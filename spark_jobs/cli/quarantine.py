"""``tidemark quarantine``: records that were rejected, with the reason."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spark_jobs.cli.reprocess import reprocess
from spark_jobs.serving.project import open_project
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.faithful_json import is_object, parse, printed
from spark_jobs.terminal.payloads import one_line, readable, shown
from spark_jobs.terminal.tables import MOST_ROWS

if TYPE_CHECKING:
    from spark_jobs.silver.check.quarantine import RejectedRecord

app = typer.Typer(no_args_is_help=True, help="Rejected records and their reasons.")

app.command()(reprocess)
# The name of older releases.
app.command("readmit", hidden=True, deprecated=True)(reprocess)

# Kafka has 32 bits for a partition, and 64 for an offset.
LAST_PARTITION = 2**31 - 1
LAST_OFFSET = 2**63 - 1
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def quarantine() -> None:
    """Commands for records in quarantine."""


@app.command("list")
def list_tables(
    context: typer.Context,
    tables: Annotated[list[str] | None, typer.Argument(help="Silver tables. Default: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Count records in quarantine by silver table and reason."""
    from spark_jobs.serving.report.status_tables import rejections_table
    from spark_jobs.silver.check.quarantine import rejections
    from spark_jobs.storage.lake import Lake

    with open_project(context) as project:
        lake, known = Lake(project.settings.lake), sorted(project.manifest.silver)
    names = [known_table(one, known) for one in tables or known]
    found = [one for name in names for one in rejections(name, lake.quarantine(name))]
    if as_json:
        typer.echo(json.dumps([vars(one) for one in found], indent=2, default=str))
    elif found:
        wide_console().print(rejections_table(found))
    else:
        typer.echo("Nothing is in quarantine.")


@app.command()
def show(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="The silver table that rejected the records.")],
    reason: Annotated[
        str | None, typer.Option(help="Only records rejected for this reason.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, max=LAST_PARTITION, help="Only this Kafka partition.")
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=LAST_OFFSET,
            help="Only this offset; with --partition, the whole record.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=MOST_ROWS, help="Maximum number of records, newest first.")
    ] = 20,
    raw: Annotated[bool, typer.Option("--raw", help="Show every byte of key and value.")] = False,
    as_json: AsJson = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write them as JSON lines to edit, for reprocess --with."),
    ] = None,
) -> None:
    """Show records in quarantine with Kafka coordinates, reason and content."""
    from spark_jobs.silver.check.quarantine import rejected_records
    from spark_jobs.storage.lake import Lake

    with open_project(context) as project:
        name = known_table(table, sorted(project.manifest.silver))
        location = Lake(project.settings.lake).quarantine(name)
    found = rejected_records(
        location, limit=limit, reason=reason, partition=partition, offset=offset
    )
    if as_json:
        typer.echo(json.dumps([record_json(one, raw=raw) for one in found], indent=2, default=str))
        return
    if to is not None:
        write_private(to, "".join(f"{record_line(one)}\n" for one in found))
        typer.echo(f"Wrote {len(found):,} records to {to}.")
        return
    whole = partition is not None and offset is not None
    for one in found:
        typer.echo(record_text(one, raw=raw, whole=whole))
    if not found:
        typer.echo("No such record is in quarantine.")


def known_table(table: str, known: Sequence[str]) -> str:
    """The name of a silver table that was given with or without its layer.

    Raises:
        SilverTableUnknownError: it does not exist.
    """
    from spark_jobs.silver.errors import SilverTableUnknownError

    name = table.removeprefix("silver.")
    if name not in known:
        raise SilverTableUnknownError(name, list(known))
    return name


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read: records may contain personal data."""
    try:
        stream = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8")
        # A file that was there has the rights that somebody gave it; a device keeps its own.
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            os.fchmod(stream.fileno(), 0o600)
            stream.truncate(0)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from error
    with stream:
        stream.write(text)


def record_text(record: RejectedRecord, *, raw: bool, whole: bool = False) -> str:
    """A record in a few lines, or in full with its value formatted."""
    why = one_line(" ".join(filter(None, (record.reason, record.detail))))
    place = f"{record.topic} partition {record.partition} offset {record.offset}"
    lines = [
        f"{place}: {why}",
        f"  arrived {record.arrived_at:%Y-%m-%d %H:%M:%S} UTC",
        f"  key     {shown(record.key, raw=raw)}",
        *([] if whole else [f"  value   {shown(record.value, raw=raw)}"]),
        *(f"  header  {one_line(name)}: {shown(value, raw=raw)}" for name, value in record.headers),
    ]
    if whole:
        lines += [f"  tried   {record.attempts}", "  value", readable(record.value, raw=raw)]
    return "\n".join(lines)


def record_line(record: RejectedRecord) -> str:
    """A record as one line for correction: its value as a JSON object, or else as text."""
    place: dict[str, Any] = {"partition": record.partition, "offset": record.offset}
    place |= {"reason": record.reason, "detail": record.detail}
    start = json.dumps(place)[:-1]
    try:
        text = (record.value or b"").decode()
    except UnicodeDecodeError:
        encoded = base64.b64encode(record.value or b"").decode()
        return f'{start}, "value_base64": {json.dumps(encoded)}}}'
    try:
        document = parse(text)
        value = printed(document) if is_object(document) else json.dumps(text)
    except ValueError:
        value = json.dumps(text)
    return f'{start}, "value": {value}}}'


def record_json(record: RejectedRecord, *, raw: bool) -> dict[str, Any]:
    """A record as a JSON object: the attributes by name, with bytes as text.

    Args:
        record: the rejected record.
        raw: give bytes in Base64; key and value are then ``key_base64`` and ``value_base64``.
    """

    def encoded(value: bytes | None) -> str | None:
        if value is None:
            return None
        return base64.b64encode(value).decode() if raw else shown(value, raw=False)

    suffix = "_base64" if raw else ""
    row = {name: value for name, value in vars(record).items() if name not in {"key", "value"}}
    return {
        **row,
        "headers": [[name, encoded(value)] for name, value in record.headers],
        f"key{suffix}": encoded(record.key),
        f"value{suffix}": encoded(record.value),
    }
