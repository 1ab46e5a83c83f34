"""What a table lacks to match its declaration, and what it cannot follow."""

from __future__ import annotations

from spark_jobs.graph.manifest import Column
from spark_jobs.silver.store.evolution import Evolution

HELD = {"id": "bigint", "note": "string"}


def test_a_name_in_another_case_is_no_new_column() -> None:
    found = Evolution.of(
        HELD, [Column(name="id", type="bigint"), Column(name="Note", type="string")]
    )
    assert found.unfit == ("Note", "spelled 'note'", "as 'Note'")
    more = Evolution.of(HELD, [Column(name="id", type="bigint"), Column(name="more", type="int")])
    assert (more.unfit, [one.name for one in more.added]) == (None, ["more"])
