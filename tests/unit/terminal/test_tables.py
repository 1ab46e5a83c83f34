from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.terminal.tables import FittedTable

REASON = "skip: a later tick has published silver.account_events@1, so that nothing is left to do"


def table(numbered: bool = False) -> FittedTable:
    made = FittedTable(title="gold views", numbered=numbered)
    for name in ("view", "published", "freshness", "last attempt", "verdict"):
        made.add_column(name)
    made.add_row("account_audit", "3 min ago @12 row deltas", "current", REASON, "passed 7/7")
    made.add_row("checkout_latency_percentiles", "never", "unpublished", "none", "")
    return made


def shown(made: Table, *, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(made)
    return out.getvalue()


@pytest.mark.parametrize("width", [46, 60, 80, 100, 140, 220])
@pytest.mark.parametrize("numbered", [True, False])
def test_no_word_is_split_at_any_width(width: int, numbered: bool) -> None:
    text = shown(table(numbered), width=width)
    assert max(map(len, text.splitlines())) <= width
    for word in (*REASON.split(), "checkout_latency_percentiles", "unpublished"):
        assert re.search(rf"(?<!\S){re.escape(word)}(?!\S)", text), (word, text)


def test_rows_that_fit_are_printed_as_a_table() -> None:
    assert "┃ view" in shown(table(), width=220)


def test_wide_rows_are_printed_as_records() -> None:
    lines = [line.rstrip() for line in shown(table(), width=60).splitlines()]
    assert lines[:3] == [
        "gold views",
        "account_audit",
        "  published     3 min ago @12 row deltas",
    ]
    # A cell that is empty takes no line.
    assert sum("verdict" in line for line in lines) == 1


def test_numbered_records_show_the_first_column_too() -> None:
    lines = [line.strip() for line in shown(table(numbered=True), width=60).splitlines()]
    assert lines[1] == "row 1"
    assert lines[2].split() == ["view", "account_audit"]


def test_data_is_not_taken_for_markup_in_either_form() -> None:
    for width in (20, 200):
        made = FittedTable(numbered=True)
        made.add_column(Text("[b]x"))
        made.add_column("y")
        made.add_row(Text("[red]y"), Text("a long text " * 5))
        text = shown(made, width=width)
        assert "[b]x" in text
        assert "[red]y" in text


WORDS = st.lists(
    st.text(st.sampled_from("abcdefgh_@."), min_size=1, max_size=20), min_size=1, max_size=8
).map(" ".join)


@given(
    st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4),
    st.integers(min_value=45, max_value=160),
)
def test_every_word_of_every_cell_is_there(rows: list[tuple[str, str, str]], width: int) -> None:
    made = FittedTable()
    for name in ("one", "two", "three"):
        made.add_column(name)
    for row in rows:
        made.add_row(*map(Text, row))
    found = shown(made, width=width).split()
    for row in rows:
        for cell in row:
            assert set(cell.split()) <= set(found)
