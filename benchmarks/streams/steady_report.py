"""The memory of a steady run: a table with some samples, and a plot of all."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from benchmarks.plot import text
from benchmarks.streams.results import Moment, Steady

_ROWS = 12
_MIB = 2**20
# Each line of the plot: its name, its colour, and its value for a sample.
_LINES: tuple[tuple[str, str, Callable[[Moment], int | None]], ...] = (
    ("resident", "#0b5394", lambda one: one.resident),
    ("heap in use", "#e9a03b", lambda one: one.heap),
    ("old generation after a collection", "#2a9d8f", lambda one: one.old),
)


def page(found: Steady, *, picture: str) -> Iterator[str]:
    """The section of the page below its heading."""
    yield f"![Memory over time]({picture})"
    yield ""
    yield from textwrap.wrap(
        f"{found.events:,} events at {found.rate:,} a second, at a pace of {found.pace}; the "
        f"application used {found.cost.cpu / found.cost.wall:.2f} cores, the rest of the machine "
        f"{found.cost.others:.2f}. Memory is that of all its processes, in MiB. By the run's "
        f"second half it grows by {found.growth_per_hour / _MIB:+,.0f} MiB an hour.",
        width=88,
    )
    yield ""
    yield "| minute | resident | heap in use | old generation after a collection | files |"
    yield "|---:|---:|---:|---:|---:|"
    for one in _some(found.moments):
        yield (
            f"| {one.seconds / 60:.1f} | {one.resident / _MIB:,.0f} | {_mib(one.heap)} "
            f"| {_mib(one.old)} | {one.files} |"
        )


def plot(found: Steady) -> str:
    """Memory over time, as SVG."""
    left, top, width, height = 70, 50, 600, 240
    last = max(one.seconds for one in found.moments) or 1.0
    most = 1.05 * max(one.resident for one in found.moments)
    size = f'width="{left + width + 30}" height="{top + height + 50}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(left, 18, "Memory of the streaming application in MiB, by minute", "start"),
    ]
    for tick in range(5):
        y, x = top + height * (1 - tick / 4), left + width * tick / 4
        parts.append(f'<path d="M{left} {y:.1f}h{width}" stroke="#ddd" fill="none"/>')
        parts.append(text(left - 8, y + 4, f"{most * tick / 4 / _MIB:,.0f}", "end"))
        parts.append(text(x, top + height + 20, f"{last * tick / 4 / 60:.1f}", "middle"))
    for at, (name, colour, value) in enumerate(_LINES):
        places = [
            f"{left + width * one.seconds / last:.1f} {top + height * (1 - used / most):.1f}"
            for one in found.moments
            if (used := value(one)) is not None
        ]
        if places:
            drawn = f'stroke="{colour}" stroke-width="2" fill="none"'
            parts.append(f'<path d="M{"L".join(places)}" {drawn}/>')
            x = left + 170 * at
            parts.append(f'<path d="M{x} 34h16" {drawn}/>')
            parts.append(text(x + 22, 38, name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def _some(moments: Sequence[Moment]) -> list[Moment]:
    """The first, the last and some evenly spaced samples in between."""
    last = len(moments) - 1
    rows = min(_ROWS, last)
    places = sorted({round(last * at / rows) for at in range(rows + 1)}) if rows else [0]
    return [moments[at] for at in places]


def _mib(size: int | None) -> str:
    return "" if size is None else f"{size / _MIB:,.0f}"
