"""``tidemark shell``: an interactive SQL shell in one Spark session."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.environments import EnvironmentName
from spark_jobs.cli.query import (
    DEFAULT_ROWS,
    DEFAULT_SECONDS,
    NOT_TEXT,
    Limit,
    Personal,
    Seconds,
    print_limit_note,
    run_shown,
)
from spark_jobs.errors import LakehouseError
from spark_jobs.serving.sql.session import QuerySession
from spark_jobs.settings import load_settings
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from rich.console import RenderableType

HELP = r"""A query ends with a semicolon and may take several lines. Ctrl-C stops it.
\d        list the tables; same as SHOW TABLES [IN layer]
\d TABLE  list the columns of a table with types; same as DESCRIBE TABLE
\q        quit; same as Ctrl-D"""
HISTORY_FILE = "shell_history"
HISTORY_LINES = 1000


def shell(
    context: typer.Context,
    limit: Limit = DEFAULT_ROWS,
    seconds: Seconds = DEFAULT_SECONDS,
    pii: Personal = False,
    env: EnvironmentName = None,
) -> None:
    r"""Open an interactive SQL shell; \d lists the tables, \? the other commands."""
    settings = load_settings(context.obj)
    typed = Shell(QuerySession(settings, limit, seconds, pii, environment=env))
    if not sys.stdin.isatty():
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict")
        try:
            typed.loop("", "")
        except UnicodeDecodeError as error:
            raise typer.BadParameter(NOT_TEXT) from error
        # A person has seen the errors; a script needs the exit status.
        raise typer.Exit(1 if typed.failed else 0)
    typer.echo("Tidemark. A query ends with a semicolon; \\? shows the commands.")
    with history(settings.state / HISTORY_FILE):
        typed.loop("tidemark> ", "     ...> ")


@dataclass
class Shell:
    """Reads commands and queries, and prints the results.

    Attributes:
        lines: of a query that is not complete yet.
        failed: whether any command or query failed.
    """

    session: QuerySession
    lines: list[str] = field(default_factory=list)
    failed: bool = False

    def loop(self, prompt: str, further: str) -> None:
        r"""Process lines until the input ends or ``\q`` is entered."""
        while True:
            try:
                line = input(further if self.lines else prompt)
            except KeyboardInterrupt:
                self.lines.clear()
                typer.echo()
                continue
            except UnicodeDecodeError:
                if not prompt:
                    # What follows in a script would be cut.
                    raise
                self.lines.clear()
                typer.echo(NOT_TEXT, err=True)
                continue
            except EOFError:
                self.answer(self.take())
                return
            if not self.lines and line.strip() == r"\q":
                return
            self.take_line(line)

    def take_line(self, line: str) -> None:
        """Run a command immediately, and a query when its semicolon is entered."""
        if not self.lines and line.lstrip().startswith("\\"):
            self.answer(line.strip())
            return
        if line.strip() or self.lines:
            self.lines.append(line)
        if line.rstrip().endswith(";"):
            self.answer(self.take())

    def take(self) -> str:
        """Return the lines of the query so far, and reset them."""
        text = "\n".join(self.lines)
        self.lines.clear()
        return text

    def answer(self, text: str) -> None:
        """Run a command or a query; an error is printed and does not end the shell."""
        if not text.strip():
            return
        messages = Console(stderr=True, highlight=False, soft_wrap=True)
        try:
            if text.startswith("\\"):
                Console().print(self.command_output(text))
            else:
                self.run(text)
        except LakehouseError as error:
            self.failed = True
            messages.print(error.render(), markup=False)
        except KeyboardInterrupt:
            self.failed = True
            messages.print("stopped")

    def run(self, text: str) -> None:
        """Run a query, SHOW or DESCRIBE, and print the rows.

        Raises:
            LakehouseError: it is refused, or fails.
        """
        from spark_jobs.serving.sql.catalog import catalog_answer
        from spark_jobs.serving.sql.output import rows_table

        if (answer := catalog_answer(self.session, text)) is not None:
            Console().print(rows_table(answer))
            return
        messages = Console(stderr=True)
        result = run_shown(self.session, self.session.pinned(text), messages)
        Console().print(rows_table(result.rows))
        print_limit_note(result, self.session.limit, messages)

    def command_output(self, command: str) -> RenderableType:
        """The output of a command that starts with a backslash.

        Raises:
            TableUnknownError: it names a table that does not exist.
        """
        match command.rstrip(";").split():
            case [r"\d"]:
                return listed(("table", "description"), self.session.tables())
            case [r"\d", name]:
                columns = self.session.columns(name.lower())
                rows = [(one.name, one.type, one.description) for one in columns]
                return listed(("column", "type", "description"), rows)
            case _:
                return Text(HELP)


def listed(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Texts in columns; the last one wraps."""
    table = FittedTable()
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


@contextmanager
def history(file: Path) -> Iterator[None]:
    """Enable line editing, and a history that later shells share."""
    # Without Python's readline module, there is no line editing.
    import readline

    readline.set_history_length(HISTORY_LINES)
    # A shell works without a history where the state directory cannot be read or written.
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)
            readline.write_history_file(file)
