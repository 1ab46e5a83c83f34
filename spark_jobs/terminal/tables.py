"""Tables that fit the width of the terminal: they wrap between words and never split one.

If the columns do not fit side by side, each row becomes a record with a line per column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Final

from rich.box import HEAVY_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

# A longer word is a generated identifier or a path, and may be split.
LONGEST_WORD: Final = 60
# A cell with more lines than this is easier to read in a record.
MOST_LINES: Final = 6
# Maximum of options that limit rows: databases and Spark accept limits of 32 bits.
MOST_ROWS: Final = 1_000_000_000
# Maximum of options that limit time, 31 years: the system's clocks cannot wait for every number.
MOST_SECONDS: Final = 1_000_000_000
# A width without limit, to measure the natural width of a cell.
_UNLIMITED: Final = 100_000


class FittedTable(Table):
    """A table of rich whose columns are at least as wide as their longest word.

    Args:
        numbered: a record starts with its number. Without it, a record starts with the first cell
            alone, which names what the row is about.
        plain: without lines around the cells.
    """

    def __init__(
        self,
        *headers: Column | str,
        title: str | Text | None = None,
        caption: str | Text | None = None,
        numbered: bool = False,
        plain: bool = False,
    ) -> None:
        super().__init__(
            *headers,
            title=title,
            caption=caption,
            title_justify="left",
            caption_justify="left",
            box=None if plain else HEAVY_HEAD,
            padding=(0, 2, 0, 0) if plain else (0, 1),
        )
        self.numbered = numbered

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(console, options)
        if widths is None:
            yield self._records()
            return
        table = copy(self)
        table.columns = [
            replace(column, width=width, no_wrap=False, overflow="fold")
            for column, width in zip(self.columns, widths, strict=True)
        ]
        yield from super(FittedTable, table).__rich_console__(console, options)

    def _widths(self, console: Console, options: ConsoleOptions) -> list[int] | None:
        """The width of each column; None if they do not fit side by side."""
        # Each column has a blank on both sides and a border on the left; one border ends the table.
        # Without borders, each is followed by two blanks.
        beside = 3 * len(self.columns) + 1 if self.box else 2 * len(self.columns)
        room = options.max_width - beside
        wide = options.update(width=_UNLIMITED, height=None)
        spans = [
            [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
            for column in self.columns
        ]
        longest = [
            max(min(one.minimum, LONGEST_WORD) if not column.no_wrap else one.maximum for one in of)
            for column, of in zip(self.columns, spans, strict=True)
        ]
        wanted = [max(one.maximum for one in of) for of in spans]
        widths = fitted(longest, wanted, room=room)
        if widths is None or any(
            want > MOST_LINES * width for want, width in zip(wanted, widths, strict=True)
        ):
            return None
        return widths

    def _records(self) -> Group:
        parts: list[RenderableType] = []
        if self.title:
            parts += [_text(self.title, "table.title")]
        rows = list(zip(*(column.cells for column in self.columns), strict=True))
        for at, (row, kept) in enumerate(zip(rows, self.rows, strict=True)):
            if self.numbered:
                parts.append(Text(f"row {at + 1}", style="bold"))
                parts.append(self._record(self.columns, row))
            else:
                head = _text(row[0], "bold")
                head.style = f"bold {kept.style}".strip()
                parts += [head, self._record(self.columns[1:], row[1:])]
        if self.caption:
            parts.append(_text(self.caption, "table.caption"))
        return Group(*parts)

    @staticmethod
    def _record(columns: Sequence[Column], cells: Sequence[RenderableType]) -> Table:
        record = Table.grid(padding=(0, 2))
        record.add_column(no_wrap=True, style="dim")
        record.add_column(overflow="fold")
        for column, cell in zip(columns, cells, strict=True):
            if not _empty(cell):
                record.add_row(Text("  ").append_text(_text(column.header, "")), cell)
        return record


def fitted(least: Sequence[int], wanted: Sequence[int], *, room: int) -> list[int] | None:
    """Widths of columns: the natural one or a common limit, and never below the minimum.

    >>> fitted([4, 6], [4, 40], room=30)
    [4, 26]
    >>> fitted([4, 6], [10, 12], room=30)
    [10, 12]
    >>> fitted([20, 16], [20, 40], room=30) is None
    True
    """
    if sum(least) > room:
        return None

    def within(limit: int) -> list[int]:
        pairs = zip(least, wanted, strict=True)
        return [max(low, min(high, limit)) for low, high in pairs]

    for limit in _limits(max(wanted, default=0)):
        if sum(widths := within(limit)) <= room:
            return widths
    return list(least)


def _limits(highest: int) -> Iterator[int]:
    return iter(range(highest, 0, -1))


def _text(value: RenderableType, style: str) -> Text:
    if isinstance(value, Text):
        return value.copy()
    return Text.from_markup(str(value), style=style)


def _empty(cell: RenderableType) -> bool:
    return isinstance(cell, str | Text) and not str(cell).strip()
