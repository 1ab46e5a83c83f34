"""In which order views take their turns, and what a long one keeps waiting."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.gold.continuous.turns import Turn, Turns
from spark_jobs.names import TableName

SECONDS = 30


class Session:
    """Stands in for a Spark session: turns only get it, and its pool is set."""

    def __init__(self) -> None:
        self.pools: list[str] = []
        self.sparkContext = SimpleNamespace(
            setLocalProperty=lambda _, pool: self.pools.append(pool)
        )


@pytest.fixture
def taken() -> list[str]:
    return []


def turn(name: str, taken: list[str], *after: Turn, until: Event | None = None) -> Turn:
    def take(session: Any) -> bool:
        del session
        if until is not None:
            assert until.wait(SECONDS)
        taken.append(name)
        return True

    return Turn(TableName.parse(f"gold.{name}"), take, after)


def sessions(count: int) -> list[Any]:
    return [Session() for _ in range(count)]


def ended(*turns: Turn) -> bool:
    return all(one.ended.wait(SECONDS) for one in turns)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_view_comes_after_those_that_it_reads(taken: list[str], threads: int) -> None:
    may_end = Event()
    first = turn("a", taken, until=may_end)
    second = turn("b", taken, first)
    third = turn("c", taken, first, second)
    turns = Turns()
    with turns.threads(sessions(threads), stop_seconds=SECONDS):
        turns.give([first, second, third])
        may_end.set()
        assert ended(first, second, third)
    assert taken == ["a", "b", "c"]
    assert all(one.was_due for one in (first, second, third))


def test_a_long_turn_keeps_one_thread_only(taken: list[str]) -> None:
    may_end = Event()
    turns, long = Turns(), turn("long", taken, until=may_end)
    with turns.threads(sessions(2), stop_seconds=SECONDS):
        turns.give([long, turn("a", taken)])
        later = turn("b", taken)
        turns.give([later])
        assert ended(later)
        assert (turns.busy, taken) == ({long.table}, ["a", "b"])
        may_end.set()
        assert ended(long)
    assert turns.busy == frozenset()


def test_a_turn_that_must_wait_keeps_no_thread(taken: list[str]) -> None:
    may_end = Event()
    turns, long = Turns(), turn("long", taken, until=may_end)
    reader, other = turn("reader", taken, long), turn("other", taken)
    with turns.threads(sessions(2), stop_seconds=SECONDS):
        turns.give([long, reader, other])
        assert ended(other)
        assert (turns.busy, taken) == ({long.table, reader.table}, ["other"])
        may_end.set()
        assert ended(reader)
    assert taken == ["other", "long", "reader"]


def test_each_thread_has_a_session_in_the_pool_of_gold() -> None:
    used = sessions(2)
    with Turns().threads(used, stop_seconds=SECONDS):
        pass
    assert [one.pools for one in used] == [["gold"], ["gold"]]


def test_an_open_turn_delays_the_end_only_for_a_while(taken: list[str]) -> None:
    turns, may_end = Turns(), Event()
    with turns.threads(sessions(1), stop_seconds=0.01):
        turns.give([turn("long", taken, until=may_end)])
    assert turns.busy
    may_end.set()
