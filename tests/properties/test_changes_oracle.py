"""Changes applied in any order, repeated and in any batches end as a dictionary would hold them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_jobs.state.batches import SilverBatch
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.reader import read
from tests.spark.silver.world import CHANGES, ORDERS, applier, bronze, change, counts

KEYS = 12
BATCHES = 3
HIDDEN = "hidden"


@dataclass(frozen=True)
class Change:
    """One change; its place in the list of changes is the order of commits."""

    operation: str
    key: int
    status: str
    amount: int


changes = st.builds(
    Change,
    operation=st.sampled_from("cuurd"),
    key=st.integers(0, KEYS - 1),
    status=st.sampled_from(["placed", "paid", HIDDEN]),
    amount=st.integers(0, 999),
)


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[Change], list[list[int]]]:
    """Changes in the order of commits, and batches of their numbers as they are delivered."""
    history = draw(st.lists(changes, min_size=1, max_size=40))
    numbers = st.integers(0, len(history) - 1)
    again = draw(st.lists(numbers, max_size=10))
    order = draw(st.permutations([*range(len(history)), *again]))
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=BATCHES - 1)))
    edges = [0, *cuts, len(order)]
    return history, [order[start:end] for start, end in pairwise(edges)]


def oracle(history: list[Change]) -> dict[int, tuple[str, Decimal]]:
    """The table as the source has it after the last commit."""
    table: dict[int, tuple[str, Decimal]] = {}
    for one in history:
        if one.operation == "d" or one.status == HIDDEN:
            table.pop(one.key, None)
        else:
            table[one.key] = (one.status, Decimal(2 * one.amount))
    return table


@pytest.mark.timeout(600)
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(delivered=deliveries())
def test_silver_equals_the_oracle(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    delivered: tuple[list[Change], list[list[int]]],
) -> None:
    history, batches = delivered
    record: list[SilverBatch] = []
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    orders = applier(lake, CHANGES, ORDERS, record=record)
    orders.tables.create(spark, CHANGES)
    first = 0
    for number, places in enumerate(batches):
        records = [
            change(
                history[place].operation,
                history[place].key,
                100 + place,
                commit=10 + place,
                status=history[place].status,
                amount=str(history[place].amount),
            )
            for place in places
        ]
        orders.apply(bronze(spark, records, first=first), number)
        first += len(records)
    found = read(spark, orders.tables.table).select("order_id", "status", "twice").collect()
    assert {row[0]: (row[1], row[2]) for row in found} == oracle(history)
    assert len(found) == len(oracle(history))
    assert sum(batch.records for batch in record) == first
    assert all(set(counts(batch)) <= {"applied", "superseded", "duplicate"} for batch in record)
