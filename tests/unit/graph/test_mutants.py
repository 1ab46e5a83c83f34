"""Whatever is wrong with a view, ``validate`` names it; no mistake ends in a traceback."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.unit.graph.mutants import View, mutants, validated, views


@pytest.fixture(scope="module")
def right() -> list[View]:
    return views()


def check(right: list[View], project: Path, *, seed: int, count: int) -> None:
    told = 0
    for at, (view, sql, missing) in enumerate(islice(mutants(right, seed), count)):
        try:
            problems = validated(project, view, sql, missing=missing)
        except Exception as error:
            error.add_note(f"mutant {at} of seed {seed}, {view.name}, without {missing}:\n{sql}")
            raise
        told += bool(problems)
        for problem in problems:
            assert problem.location is not None
            assert problem.location.file
            assert problem.hint or problem.detail
    # Most of them are mistakes, and those that are not show that the rest compiles.
    assert count // 3 < told < count


def test_the_views_themselves_are_right(right: list[View], tmp_path: Path) -> None:
    for view in right[::6]:
        assert validated(tmp_path, view, view.sql, missing=set()) == []


def test_no_mistake_ends_in_a_traceback(right: list[View], tmp_path: Path) -> None:
    check(right, tmp_path, seed=1, count=200)


def test_an_order_by_a_number_that_is_no_position(right: list[View], tmp_path: Path) -> None:
    view = next(one for one in right if one.name == "q03")
    sql = view.sql.replace("revenue DESC", "1e400 DESC")
    assert sql != view.sql
    assert validated(tmp_path, view, sql, missing=set()) == []


def test_a_percentile_without_a_percentage(right: list[View], tmp_path: Path) -> None:
    view = next(one for one in right if one.name == "request_latency_p95")
    sql = view.sql.replace("latency_ms, 0.95)", "latency_ms)")
    assert sql != view.sql
    [problem] = validated(tmp_path, view, sql, missing=set())
    assert problem.condition == "FUNCTION_ARGUMENTS"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_mistake_of_very_many_ends_in_a_traceback(right: list[View], tmp_path: Path) -> None:
    check(right, tmp_path, seed=2, count=10_000)
