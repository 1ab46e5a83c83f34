"""``tidemark quarantine``: the records that no row could be made of, and why."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.project import open_project

if TYPE_CHECKING:
    from spark_jobs.silver.quarantine import RejectedRecord, Rejection

app = typer.Typer(no_args_is_help=True, help="Records that no row could be made of, and why.")

SHOWN_CHARACTERS = 120

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def quarantine() -> None:
    """Verbs about records in quarantine."""


@app.command("list")
def list_tables(context: typer.Context, as_json: AsJson = False) -> None:
    """Count the records of every silver table's quarantine by reason."""
    from spark_jobs.silver.quarantine import rejections
    from spark_jobs.storage.lake import Lake

    with open_project(context) as project:
        lake, names = Lake(project.settings.lake), sorted(project.manifest.silver)
    found = [one for name in names for one in rejections(name, lake.quarantine(name))]
    if as_json:
        typer.echo(json.dumps([vars(one) for one in found], indent=2, default=str))
    elif found:
        Console().print(rejections_table(found))
    else:
        Console().print("Nothing is in quarantine.")


@app.command()
def show(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="The silver table that rejected the records.")],
    reason: Annotated[
        str | None, typer.Option(help="Only records that were rejected for this reason.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Records at most, the newest first.")] = 20,
    raw: Annotated[bool, typer.Option("--raw", help="Show every byte of key and value.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show records in quarantine: where they came from, why they are there, and what they hold."""
    from spark_jobs.silver.quarantine import SilverTableUnknownError, rejected_records
    from spark_jobs.storage.lake import Lake

    name = table.removeprefix("silver.")
    with open_project(context) as project:
        known = sorted(project.manifest.silver)
        location = Lake(project.settings.lake).quarantine(name)
    if name not in known:
        raise SilverTableUnknownError(name, known)
    found = rejected_records(location, limit=limit, reason=reason)
    if as_json:
        typer.echo(json.dumps([record_json(one, raw=raw) for one in found], indent=2, default=str))
        return
    for one in found:
        typer.echo(record_text(one, raw=raw))
    if not found:
        typer.echo("No such record is in quarantine.")


def rejections_table(found: list[Rejection]) -> Table:
    """One row per silver table and reason."""
    table = Table(title="Records in quarantine", title_justify="left")
    table.add_column("silver table", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    table.add_column("records", justify="right")
    table.add_column("latest arrival")
    for one in found:
        arrival = f"{one.latest_arrival:%Y-%m-%d %H:%M:%S} UTC"
        table.add_row(one.silver, one.reason, f"{one.records:,}", arrival)
    return table


def record_text(record: RejectedRecord, *, raw: bool) -> str:
    """A record in a few lines."""
    why = " ".join(filter(None, (record.reason, record.detail)))
    place = f"{record.topic} partition {record.partition} offset {record.offset}"
    lines = [
        f"{place}: {why}",
        f"  arrived {record.arrived_at:%Y-%m-%d %H:%M:%S} UTC",
        f"  key     {shown(record.key, raw=raw)}",
        f"  value   {shown(record.value, raw=raw)}",
        *(f"  header  {name}: {shown(value, raw=raw)}" for name, value in record.headers),
    ]
    return "\n".join(lines)


def record_json(record: RejectedRecord, *, raw: bool) -> dict[str, Any]:
    """A record for programs; its bytes in Base64 where all of them are asked for."""

    def told(value: bytes | None) -> str | None:
        if value is None:
            return None
        return base64.b64encode(value).decode() if raw else shown(value, raw=False)

    suffix = "_base64" if raw else ""
    row = {name: value for name, value in vars(record).items() if name not in {"key", "value"}}
    return {
        **row,
        "headers": [[name, told(value)] for name, value in record.headers],
        f"key{suffix}": told(record.key),
        f"value{suffix}": told(record.value),
    }


def shown(value: bytes | None, *, raw: bool) -> str:
    r"""Bytes as text that no terminal takes for a command.

    >>> shown(b'{"a": "\xff\x1b[2J"}', raw=True)
    '{"a": "\\xff\\x1b[2J"}'
    """
    if value is None:
        return "NULL"
    # A sign takes four bytes at most.
    start = value if raw else value[: 4 * SHOWN_CHARACTERS]
    text = start.decode("utf-8", "backslashreplace")
    safe = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    if raw or (len(safe) <= SHOWN_CHARACTERS and len(start) == len(value)):
        return safe
    return f"{safe[:SHOWN_CHARACTERS]}... ({len(value):,} bytes)"
