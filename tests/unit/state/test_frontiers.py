"""What is noted of the versions that show whole transactions."""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.frontiers import FRONTIERS_KEPT, TableAtFrontier
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now

ACCOUNTS, TELLERS = map(TableName.parse, ("silver.accounts", "silver.tellers"))


def note(position: int, table: TableName, version: int, database: str = "shop") -> TableAtFrontier:
    return TableAtFrontier(database, position, table, TableVersion("id", version), utc_now())


def told(found: Iterable[TableAtFrontier]) -> list[tuple[int, str, int]]:
    return [(one.position, one.table.name, one.version.version) for one in found]


def test_the_newest_position_comes_first_and_a_note_replaces_its_own(store: ControlStore) -> None:
    # A position needs more than 32 bits.
    store.note_frontiers([note(2**40, ACCOUNTS, 1), note(2**40, TELLERS, 4)])
    store.note_frontiers([note(2**40 + 1, ACCOUNTS, 2), note(7, ACCOUNTS, 9, "bank")])
    store.note_frontiers([note(2**40, TELLERS, 5)])
    assert told(store.frontiers("shop")) == [
        (2**40 + 1, "accounts", 2),
        (2**40, "accounts", 1),
        (2**40, "tellers", 5),
    ]
    assert told(store.frontiers("bank")) == [(7, "accounts", 9)]


def test_only_the_newest_positions_are_kept(store: ControlStore) -> None:
    store.note_frontiers([note(1, TELLERS, 0, "bank")])
    for position in range(FRONTIERS_KEPT + 5):
        store.note_frontiers([note(position, ACCOUNTS, position)])
    found = store.frontiers("shop")
    assert len(found) == FRONTIERS_KEPT
    assert found[0].position == FRONTIERS_KEPT + 4
    assert store.frontiers("bank")


def test_old_positions_that_tables_still_need_are_kept(store: ControlStore) -> None:
    store.note_frontiers([note(0, ACCOUNTS, 0), note(0, TELLERS, 0), note(1, TELLERS, 1)])
    for position in range(1, FRONTIERS_KEPT + 5):
        store.note_frontiers([note(position, ACCOUNTS, position)], keep=[2])
    found = told(store.frontiers("shop"))
    # The newest of the late table, and one at which it may still be cut.
    assert found[-3:] == [(2, "accounts", 2), (1, "accounts", 1), (1, "tellers", 1)]
    assert len(found) == FRONTIERS_KEPT + 3
    store.note_frontiers([note(2, TELLERS, 2)])
    assert told(store.frontiers("shop"))[-2:] == [(2, "accounts", 2), (2, "tellers", 2)]
