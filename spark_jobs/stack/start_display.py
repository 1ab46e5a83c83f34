"""Shows the start of the local stack: a live table on a terminal, otherwise plain lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from rich.console import Console
from rich.live import Live
from rich.table import Table

from spark_jobs.access.secrets import secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.airflow_config import airflow_address
from spark_jobs.stack.secrets import AIRFLOW_USERS, airflow_users
from spark_jobs.stack.stack import Started
from spark_jobs.stack.startup import Phase, Progress, Report
from spark_jobs.terminal.tables import FittedTable

STYLES = {Phase.READY: "green", Phase.FAILED: "red"}


class Board:
    """A table of the running steps, refreshed several times a second."""

    def __init__(self) -> None:
        self.news: dict[str, tuple[Progress, float]] = {}
        self.lock = Lock()

    def take(self, progress: Progress) -> None:
        """Show the new state of a part."""
        with self.lock:
            self.news[progress.step] = (progress, time.monotonic())

    def __rich__(self) -> Table:
        table = Table.grid(padding=(0, 2))
        with self.lock:
            for progress, at in self.news.values():
                done = progress.phase in STYLES
                seconds = progress.seconds + (0 if done else time.monotonic() - at)
                style = STYLES.get(progress.phase, "yellow")
                table.add_row(
                    f"  {progress.step}",
                    f"[{style}]{progress.phase}[/]",
                    f"{seconds:.1f} s",
                    progress.note,
                )
        return table


@contextmanager
def showing_progress(console: Console) -> Iterator[Report]:
    """A receiver of progress: a live table on a terminal, otherwise a line per finished step."""
    if not console.is_terminal:

        def line(progress: Progress) -> None:
            if progress.phase in STYLES:
                console.print(
                    f"  {progress.step:<22} {progress.phase:<7} {progress.seconds:5.1f} s"
                )

        yield line
        return
    board = Board()
    with Live(board, console=console, refresh_per_second=8):
        yield board.take


def show_started(console: Console, settings: Settings, started: Started) -> None:
    """Print the result of a start; passwords only if they are new."""
    if started.left_over:
        count = len(started.left_over)
        console.print(f"Ended {count} processes that an earlier stack had left behind.")
    took = "already up" if started.already_up else f"up after {started.seconds:.0f} s"
    console.print(f"The stack is {took}.")
    if not started.users_made:
        return
    table = FittedTable("user", "role", "password", title=f"Airflow at {airflow_address(settings)}")
    for name, user in airflow_users(settings).items():
        table.add_row(name, user["role"], user["password"])
    console.print(table)
    console.print(f"Shown once; stored in {secret_path(settings, AIRFLOW_USERS)}", soft_wrap=True)
