from __future__ import annotations

from spark_jobs.demo.operations import (
    Ending,
    Malformation,
    Operation,
    Record,
    Trait,
    Transaction,
    insert,
    update,
)
from spark_jobs.demo.tally import Tally

CHANGES = (
    insert("users", {"user_id": 1}, {"tier": "gold"}),
    update("users", {"user_id": 1}, {"tier": "silver"}),
)


def a_tally(*actions: Transaction | Record) -> Tally:
    tally = Tally()
    for action in actions:
        tally.add(Operation(0.0, action))
    return tally


def test_changes_that_were_rolled_back_do_not_count():
    tally = a_tally(Transaction(CHANGES), Transaction(CHANGES, Ending.ROLLBACK))
    assert tally.as_dict() == {
        "transactions": {"committed": 1, "rolled_back": 1},
        "changes": {"users": {"insert": 1, "update": 1}},
        "records": {},
        "malformed": {},
    }


def test_a_tombstone_is_no_candidate_for_quarantine():
    tally = a_tally(
        Record("clicks", b"1", b"{}", Trait.FRESH),
        Record("clicks", b"1", b"", Trait.MALFORMED, Malformation.EMPTY_VALUE),
        Record("clicks", b"1", None, Trait.MALFORMED, Malformation.TOMBSTONE),
        Record("views", b"1", None, Trait.MALFORMED, Malformation.TOMBSTONE),
    )
    assert tally.sent_to("clicks") == 3
    assert tally.quarantinable("clicks") == 1
    assert tally.malformed == {
        ("clicks", "empty_value"): 1,
        ("clicks", "tombstone"): 1,
        ("views", "tombstone"): 1,
    }
