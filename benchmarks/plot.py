"""The plot of a run as SVG: the speed-up in CPU time of a refresh, for each query and share."""

from __future__ import annotations

from math import ceil, floor, log10

from benchmarks.records import Cell, mean, speedup

_LEFT, _TOP, _ROW, _WIDTH, _RIGHT = 70, 60, 20, 560, 30
# From small to large shares; distinguished by shape as well.
_COLOURS = ("#0b5394", "#2a9d8f", "#e9a03b", "#c0392b")


def plot(cells: dict[tuple[str, float, str], Cell]) -> str:
    """One row for each query and one for the geometric mean, on a logarithmic axis."""
    queries = sorted({query for query, _, _ in cells})
    shares = sorted({share for _, share, _ in cells})
    rows = {query: [speedup(cells, query, share) for share in shares] for query in queries}
    rows["mean"] = [mean(rows[query][at] for query in queries) for at in range(len(shares))]
    values = [value for row in rows.values() for value in row]
    low, high = floor(log10(min(values))), max(1, ceil(log10(max(values))))

    def place(value: float) -> float:
        return _LEFT + _WIDTH * (log10(value) - low) / (high - low)

    height = _TOP + _ROW * len(rows) + 40
    size = f'width="{_LEFT + _WIDTH + _RIGHT}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(_LEFT, 18, "CPU of Spark's full recomputation over CPU of our refresh", "start"),
    ]
    for at, share in enumerate(shares):
        parts.append(mark(_LEFT + 8 + 130 * at, 36, at))
        parts.append(text(_LEFT + 20 + 130 * at, 40, f"{share * 100:.3g} % changed", "start"))
    bottom = _TOP + _ROW * len(rows)
    for tick in _ticks(low, high):
        colour = "#888" if tick == 1 else "#ddd"
        parts.append(
            f'<path d="M{place(tick):.1f} {_TOP - 6}V{bottom}" stroke="{colour}" fill="none"/>'
        )
        parts.append(text(place(tick), bottom + 16, f"{tick:g}x", "middle"))
    for index, (name, row) in enumerate(rows.items()):
        y = _TOP + _ROW * index + 6
        parts.append(text(_LEFT - 12, y + 4, name, "end"))
        parts += [mark(place(value), y, at) for at, value in enumerate(row)]
    return "\n".join([*parts, "</svg>", ""])


def _ticks(low: int, high: int) -> list[float]:
    return [step * 10.0**power for power in range(low, high) for step in (1, 2, 5)] + [10.0**high]


def mark(x: float, y: float, at: int) -> str:
    """The marker of a series, by its number."""
    colour = _COLOURS[at % len(_COLOURS)]
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y}" r="4.5"',
        f'<rect x="{x - 4:.1f}" y="{y - 4}" width="8" height="8"',
        f'<path d="M{x:.1f} {y - 5}l5 9h-10z"',
        f'<path d="M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z"',
    )
    return f'{shapes[at % len(shapes)]} fill="{colour}" fill-opacity="0.85"/>'


def text(x: float, y: float, words: str, anchor: str) -> str:
    """A text at a position."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'
