"""The console for tables with many columns."""

from __future__ import annotations

from rich.console import Console

TABLE_WIDTH = 140


def wide_console() -> Console:
    """The terminal; where there is none, lines wide enough for the tables."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=TABLE_WIDTH)
