"""Shows the steps of a long command: which one runs, for how long, and which are done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

# Without a terminal, a step prints a new note at most this often.
NEWS_SECONDS = 10

Note = Callable[[str], None]


class Steps:
    """Shows the steps of one command, with their durations."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the command began."""
        return time.monotonic() - self._began

    @contextmanager
    def step(self, title: str) -> Iterator[Note]:
        """Show a step while the block runs; the yielded function shows a note beside it."""
        began = time.monotonic()
        if self.console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            with Progress(*columns, console=self.console, transient=True) as progress:
                task = progress.add_task(title)

                def redraw(note: str) -> None:
                    progress.update(task, description=f"{title} [dim]{note}[/]")

                yield redraw
        else:
            self.console.print(f"... {title}")
            yield self._printer()
        took = time.monotonic() - began
        self.console.print(
            f"[green]done[/] {title} [dim]{took:.0f} s, {self.seconds:.0f} s in all[/]"
        )

    def _printer(self) -> Note:
        said, said_at = "", time.monotonic()

        def tell(note: str) -> None:
            nonlocal said, said_at
            if note != said and time.monotonic() - said_at >= NEWS_SECONDS:
                self.console.print(f"    {note}")
                said, said_at = note, time.monotonic()

        return tell
