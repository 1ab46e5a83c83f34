"""``tidemark quarantine reprocess``: records unchanged, corrected or discarded."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from spark_jobs.names import Disposition
from spark_jobs.serving.project import OpenProject, asker, open_project
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.faithful_json import is_object, members, parse, printed, whole_number
from spark_jobs.terminal.payloads import one_line
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.silver.repair.requests import Reprocessed, ReprocessRequest

SHOWN_RECORDS = 50
_RANGE = re.compile(r"(\d+):(\d+)(?:-(\d+))?")
LONGEST_RANGE = 1_000_000

Place = tuple[int, int]


def reprocess(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="The silver table that rejected the records.")],
    reason: Annotated[
        str | None, typer.Option(help="Only records rejected for this reason.")
    ] = None,
    offsets: Annotated[
        str | None, typer.Option(help="Only these: PARTITION:OFFSET or PARTITION:FROM-TO, by ','.")
    ] = None,
    fixed: Annotated[
        Path | None,
        typer.Option("--with", help="A file with edited values, as written by show --to."),
    ] = None,
    discard: Annotated[
        bool, typer.Option("--discard", help="Discard these records permanently.")
    ] = False,
    words: Annotated[
        str | None,
        typer.Option(
            "--reason-text", help="The reason; it is recorded with your name and the time."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the outcome of each record.")
    ] = False,
    let_pass: Annotated[
        bool,
        typer.Option("--let-pass", help="Allow more than 100 records and 5 % of them."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Reprocess rejected records and apply those that are valid now; exit with 1 if one stays."""
    from spark_jobs.silver.repair.requests import ReprocessRequest

    if fixed is not None and (offsets is not None or discard):
        raise typer.BadParameter("--with names its records itself, and fixes them")
    if discard and not words:
        raise typer.BadParameter("--discard needs --reason-text")
    if discard and reason is None and offsets is None:
        raise typer.BadParameter("--discard needs --reason or --offsets")
    asked = ReprocessRequest(
        by=asker(),
        words=words,
        reason=reason,
        places=None if offsets is None else frozenset(places(offsets)),
        values={} if fixed is None else fixed_values(fixed),
        discard=discard,
        let_pass=let_pass,
    )
    with open_project(context) as project:
        found = reprocessed(project, table.removeprefix("silver."), asked, dry_run=dry_run)
    print_outcomes(found, as_json=as_json, dry_run=dry_run)
    if any(one.disposition is Disposition.QUARANTINED for one in found):
        raise typer.Exit(1)


def reprocessed(
    project: OpenProject, name: str, asked: ReprocessRequest, *, dry_run: bool
) -> list[Reprocessed]:
    """Reprocess records of a silver table's quarantine in a Spark session of this process.

    Without such records, none is started.

    Raises:
        NotInQuarantineError: a named record was never rejected.
        SilverTableUnknownError: there is no such silver table.
        DeletionTooLargeError: too many would be discarded, and this is not allowed explicitly.
    """
    from spark_jobs.silver.errors import SilverTableUnknownError
    from spark_jobs.silver.flow import SilverFlow
    from spark_jobs.silver.repair.requests import requested, unfinished
    from spark_jobs.silver.store.tables import SilverTables
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.session import command_session

    entry = project.manifest.silver.get(name)
    if entry is None:
        raise SilverTableUnknownError(name, sorted(project.manifest.silver))
    tables = SilverTables.of(Lake(project.settings.lake), entry)
    if not requested(tables, asked) and (dry_run or not unfinished(tables)):
        return []
    source = project.manifest.sources[entry.source]
    flow = SilverFlow(source, entry, project.settings, project.store)
    with command_session(project.settings, "tidemark reprocess") as spark:
        taking = flow.reprocessor(spark)
        return taking.preview(asked) if dry_run else taking.run(asked)


def print_outcomes(found: list[Reprocessed], *, as_json: bool, dry_run: bool) -> None:
    """Print the records' outcomes: the number of each, and the first records one by one."""
    if as_json:
        typer.echo(json.dumps([vars(one) for one in found], indent=2))
        return
    if not found:
        typer.echo("No such record is in quarantine.")
        return
    counts = Counter(one.disposition for one in found)
    head = "Would become" if dry_run else "Became"
    table = FittedTable(title="Records of quarantine")
    for column in ("partition", "offset", head.lower(), "reason"):
        table.add_column(column, no_wrap=True)
    for one in found[:SHOWN_RECORDS]:
        why = " ".join(filter(None, (one.reason, one.detail)))
        table.add_row(
            str(one.partition), str(one.offset), str(one.disposition), Text(one_line(why))
        )
    wide_console().print(table)
    summary = ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items()))
    typer.echo(f"{head}: {summary}.")


def places(text: str) -> Iterator[Place]:
    """The records in a list of partitions and offsets.

    Raises:
        BadParameter: the text has another format.

    >>> list(places("0:7, 1:3-5"))
    [(0, 7), (1, 3), (1, 4), (1, 5)]
    """
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if not found:
            raise typer.BadParameter(f"{part!r} is neither PARTITION:OFFSET nor PARTITION:FROM-TO")
        partition, first, last = int(found[1]), int(found[2]), int(found[3] or found[2])
        if not first <= last < first + LONGEST_RANGE:
            raise typer.BadParameter(f"{part!r} is empty or longer than {LONGEST_RANGE:,} offsets")
        yield from ((partition, offset) for offset in range(first, last + 1))


def fixed_values(file: Path) -> dict[Place, bytes]:
    """The values of a file with corrected records, by the record's place.

    Raises:
        FixedValuesFileError: a line cannot be parsed, or a record occurs twice.
    """
    from spark_jobs.silver.errors import FixedValuesFileError

    found: dict[Place, bytes] = {}
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file}: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            place, value = _fixed(members(parse(line)))
            if place in found:
                raise ValueError("the record is listed twice")
        except ValueError as error:
            raise FixedValuesFileError(str(file), number, str(error)) from error
        found[place] = value
    if not found:
        raise FixedValuesFileError(str(file), 1, "the file holds no record")
    return found


def _fixed(line: dict[str, Any]) -> tuple[Place, bytes]:
    partition, offset = whole_number(line.get("partition")), whole_number(line.get("offset"))
    if partition is None or offset is None:
        raise ValueError("partition or offset is missing or no whole number")
    value, encoded = line.get("value"), line.get("value_base64")
    if isinstance(value, str):
        return (partition, offset), value.encode()
    if is_object(value):
        return (partition, offset), printed(value).encode()
    if isinstance(encoded, str):
        try:
            return (partition, offset), base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise ValueError("value_base64 is not Base64") from error
    raise ValueError("value is neither an object nor a text")
