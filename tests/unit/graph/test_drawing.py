"""Columns of a picture: nothing is lost, and no order is worse than that of the names."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.graph.drawing import crossings, ordered

COLUMNS = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(
    lambda sizes: [[f"{at}.{row}" for row in range(size)] for at, size in enumerate(sizes)]
)


@st.composite
def graphs(draw) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """Columns, and lines from left to right, which may pass over a column."""
    columns = draw(COLUMNS)
    names = [name for column in columns for name in column]
    pairs = [(one, other) for one, other in combinations(names, 2) if one[0] < other[0]]
    lines = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return columns, lines


def counted(columns: list[list[str]], lines: list[tuple[str, str]]) -> int:
    """The definition: pairs of lines that begin in one order and end in the other."""
    row = {name: at for column in columns for at, name in enumerate(column)}
    return sum(
        (row[a] - row[c]) * (row[b] - row[d]) < 0
        for (a, b), (c, d) in combinations(lines, 2)
        if (a[0], b[0]) == (c[0], d[0])
    )


@given(graphs())
def test_crossings_are_counted(graph) -> None:
    assert crossings(*graph) == counted(*graph)


@given(graphs())
def test_each_column_keeps_its_own_and_lines_cross_no_more_than_by_name(graph) -> None:
    columns, lines = graph
    found = ordered(columns, lines)
    assert list(map(sorted, found)) == list(map(sorted, columns))
    assert counted(found, lines) <= counted(columns, lines)
    assert ordered([list(reversed(column)) for column in columns], lines) == found


def test_a_tree_is_drawn_without_a_crossing() -> None:
    columns = [["a", "b"], ["c", "d", "e"], ["f", "g", "h"]]
    lines = [("a", "e"), ("b", "c"), ("b", "d"), ("c", "h"), ("d", "g"), ("e", "f")]
    assert crossings(columns, lines) > 0
    assert crossings(ordered(columns, lines), lines) == 0
