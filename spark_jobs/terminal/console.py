"""The console for tables with many columns."""

from __future__ import annotations

import os
import sys
from typing import Final, TextIO

from rich.console import Console

TABLE_WIDTH: Final = 140
_LINE_WIDTH: Final = 10_000
# Instead of a table without rows.
NO_VIEW: Final = "The project has no gold view."


def wide_console() -> Console:
    """The console of the terminal; without a terminal, one wide enough for the tables."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=TABLE_WIDTH)


def line_console(file: TextIO | None = None) -> Console:
    """The console of the terminal; without one, a row is one line, for programs.

    Args:
        file: where to write; None for the standard output.
    """
    shown = (file or sys.stdout).isatty() or "COLUMNS" in os.environ
    return Console(file=file, highlight=False, width=None if shown else _LINE_WIDTH)
