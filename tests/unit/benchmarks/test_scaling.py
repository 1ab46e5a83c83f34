"""The page of the scaling benchmark."""

from __future__ import annotations

from benchmarks.records import run_facts
from benchmarks.scaling import Point, page
from spark_jobs.sections import SparkSettings


def point(query: str, workers: int, wall: float) -> Point:
    return Point(query, workers, wall=wall, cpu=2 * wall, others=0.5, wall_each=(wall,))


def test_each_query_is_compared_with_itself_on_one_worker() -> None:
    facts = run_facts(seed=0, spark=SparkSettings()).finished()
    points = [point("q01", 1, 6), point("q18", 1, 9), point("q01", 2, 4), point("q18", 2, 10)]
    rows = [
        line
        for line in page(facts, 0.1, points).splitlines()
        if line.startswith(("| q01", "| q18"))
    ]
    assert [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows] == [
        ["q01", "1", "6.00", "12.00", "0.50", "1.00"],
        ["q01", "2", "4.00", "8.00", "0.50", "1.50"],
        ["q18", "1", "9.00", "18.00", "0.50", "1.00"],
        ["q18", "2", "10.00", "20.00", "0.50", "0.90"],
    ]
