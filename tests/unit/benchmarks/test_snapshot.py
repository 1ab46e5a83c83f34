"""The page of the first rows of a table."""

from __future__ import annotations

from benchmarks.snapshot import Snapshot, page


def test_only_what_the_rows_add_to_a_start_is_compared_with_jdbc() -> None:
    found = Snapshot(
        rows=1_000,
        stack_cpu=50,
        start_cpu=30,
        jdbc_cpu=8,
        stack_seconds=40,
        start_seconds=25,
        jdbc_seconds=4,
        load=1.5,
    )
    assert found.ratio == 2.5
    assert "The rows cost 2.5 times the CPU of JDBC." in page(found)
    assert "| JDBC, warm session | 8 | 4 |" in page(found)
