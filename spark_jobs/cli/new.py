"""``tidemark new``: start a declaration with a file that validates as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.errors import LakehouseError
from spark_jobs.names import IDENTIFIER
from spark_jobs.settings import Settings, load_settings

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest, SilverEntry, SourceEntry

app = typer.Typer(
    no_args_is_help=True, help="Create the file of a source, a silver table or a gold view."
)
Name = Annotated[str, typer.Argument(help="The name of the table and of the file.")]


@app.command()
def source(context: typer.Context, name: Name) -> None:
    """Create sources/NAME.yml: a Kafka topic of JSON events."""
    from spark_jobs.definitions.templates import write_source

    _print_created(write_source(load_settings(context.obj).project_dir, _checked("source", name)))


@app.command()
def silver(
    context: typer.Context,
    name: Name,
    of: Annotated[str | None, typer.Option("--from", help="The source. Default: NAME.")] = None,
) -> None:
    """Create sql/silver/NAME.sql: all columns of a source."""
    from spark_jobs.definitions.templates import write_silver

    settings = load_settings(context.obj)
    _checked("silver table", name)
    entry = _source(settings, of or name)
    columns = [column.name for column in entry.columns]
    source = _in_query(str(entry.table_name))
    path = write_silver(settings.project_dir, name, source=source, columns=columns)
    _print_created(path)


@app.command()
def gold(
    context: typer.Context,
    name: Name,
    of: Annotated[
        str | None,
        typer.Option("--from", help="A silver table. Default: the one with the most similar name."),
    ] = None,
) -> None:
    """Create sql/gold/NAME.sql: rows per day of a silver table."""
    from spark_jobs.definitions.templates import write_gold

    settings = load_settings(context.obj)
    _checked("gold view", name)
    table, columns = _readable(settings, of, name)
    time = next((one for one, kind in columns.items() if kind == "timestamp"), None)
    source = _in_query(table)
    _print_created(write_gold(settings.project_dir, name, source=source, time=time))
    if of is None:
        typer.echo(f"It reads {table}; --from names another table.")


def _checked(kind: str, name: str) -> str:
    from spark_jobs.definitions.errors import FileNameError

    if not IDENTIFIER.fullmatch(name):
        raise FileNameError(kind, name)
    return name


def _in_query(table: str) -> str:
    """The name of a table in a query: in backticks if it is a keyword."""
    from spark_jobs.graph.parsing import SqlText, parse_select

    try:
        parse_select(SqlText(table, f"SELECT\n  s.a\nFROM {table} AS s"))
    except LakehouseError:
        layer, _, name = table.partition(".")
        return f"{layer}.`{name}`"
    return table


def _manifest(settings: Settings) -> Manifest:
    """The valid part of the project: an error elsewhere must not prevent a new file."""
    from spark_jobs.storage.compiled import inspect_settings

    return inspect_settings(settings)[0]


def _source(settings: Settings, name: str) -> SourceEntry:

    sources = {
        key: entry for key, entry in _manifest(settings).sources.items() if entry.format.streamed
    }
    chosen = name.removeprefix("bronze.")
    if chosen not in sources:
        raise NothingToReadError(f"bronze.{chosen}", sorted(sources), settings.project_dir)
    return sources[chosen]


def _readable(settings: Settings, of: str | None, name: str) -> tuple[str, dict[str, str]]:

    manifest = _manifest(settings)
    tables: dict[str, SilverEntry | SourceEntry] = {
        f"silver.{key}": entry for key, entry in manifest.silver.items()
    }
    tables |= {
        f"bronze.{key}": entry
        for key, entry in manifest.sources.items()
        if not entry.format.streamed
    }
    wanted = of or _likeliest(name, tables)
    wanted = wanted if "." in wanted else f"silver.{wanted}"
    if wanted not in tables:
        raise NothingToReadError(wanted, sorted(tables), settings.project_dir)
    return wanted, {column.name: column.type for column in tables[wanted].columns}


def _likeliest(name: str, tables: Mapping[str, SilverEntry | SourceEntry]) -> str:
    """The table that a view most likely reads: most words in common, then one with a time."""
    words = set(name.split("_"))

    def likeness(table: str) -> tuple[int, float, bool]:
        plain = table.partition(".")[2]
        timed = any(column.type == "timestamp" for column in tables[table].columns)
        return len(words & set(plain.split("_"))), SequenceMatcher(None, name, plain).ratio(), timed

    return max(sorted(tables), key=likeness, default=name)


class NothingToReadError(LakehouseError):
    """A new declaration that reads a table that does not exist in the project."""

    condition = "NOTHING_TO_READ"
    table: str
    known: Sequence[str]
    project_dir: Path
    primary = 'there is no table "{table}" to read in {project_dir}'
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        if self.known:
            return f"Pass --from with one of {', '.join(self.known)}."
        return "Start with 'tidemark new source NAME', then 'tidemark new silver NAME'."


def _print_created(path: Path) -> None:
    typer.echo(f"wrote {path}")
    typer.echo("next: edit it, then run 'tidemark validate'")
