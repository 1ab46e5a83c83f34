from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from spark_jobs.definitions.batch_rules import BETWEEN, GREATER, IN_SET, NOT_NULL, batch_rules
from spark_jobs.demo.malformed import OVERSIZED_BYTES, REQUIRED_FIELD, encode, spoil
from spark_jobs.demo.operations import (
    Change,
    ChangeKind,
    Ending,
    Malformation,
    Operation,
    Record,
    Trait,
    Transaction,
)
from spark_jobs.demo.plan import IDS_PER_RUN, LATEST_HOURS, LoadRun, plan
from spark_jobs.demo.tally import Tally
from spark_jobs.sections import StreamSettings
from spark_jobs.settings import REPOSITORY

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PARENTS = {
    "orders": {"user_id": "users", "product_id": "products"},
    "order_items": {"order_id": "orders", "product_id": "products"},
}
KEYS = {
    "users": ("user_id",),
    "products": ("product_id",),
    "titles": ("title_id",),
    "orders": ("order_id",),
    "order_items": ("order_id", "line"),
}


def a_run(*, seed: int = 7, run: int = 1, rate: float = 200, seconds: float = 30) -> LoadRun:
    return LoadRun(seed, run, START, rate, seconds)


@pytest.fixture(scope="module")
def operations() -> list[Operation]:
    return list(plan(a_run(seconds=60)))


def records(operations: list[Operation]) -> Iterator[Record]:
    return (one.action for one in operations if isinstance(one.action, Record))


def transactions(operations: list[Operation]) -> Iterator[Transaction]:
    return (one.action for one in operations if isinstance(one.action, Transaction))


def test_the_same_numbers_give_the_same_plan():
    assert list(plan(a_run())) == list(plan(a_run()))


@pytest.mark.parametrize("other", [a_run(seed=8), a_run(run=2)])
def test_another_seed_or_run_gives_another_plan(other: LoadRun):
    assert list(plan(other)) != list(plan(a_run()))


def test_a_longer_run_begins_like_a_shorter_one():
    short = list(plan(a_run(seconds=5)))
    assert list(plan(a_run(seconds=10)))[: len(short)] == short


def test_rate_and_seconds_bound_the_operations(operations: list[Operation]):
    opening, *rest = operations
    count = sum(one.action.weight for one in rest)
    assert 200 * 60 <= count < 200 * 60 + 20
    assert all(one.at < 60 for one in rest)
    assert [one.at for one in operations] == sorted(one.at for one in operations)
    assert opening.at == 0


def test_ids_of_two_runs_never_meet(operations: list[Operation]):
    ids = [
        value
        for transaction in transactions(operations)
        for change in transaction.changes
        for name, value in change.key.items()
        if name != "line"
    ]
    assert min(ids) > IDS_PER_RUN
    assert max(ids) < 2 * IDS_PER_RUN


def test_every_transaction_is_valid_on_what_the_ones_before_left(operations: list[Operation]):
    tables: dict[str, dict[tuple[object, ...], dict[str, object]]] = {name: {} for name in KEYS}
    for transaction in transactions(operations):
        before = {name: dict(rows) for name, rows in tables.items()}
        for change in transaction.changes:
            _apply(tables, change)
        if transaction.ending is Ending.ROLLBACK:
            tables = before
    lines = {order for order, _ in tables["order_items"]}
    assert lines == {order for (order,) in tables["orders"]}


def _apply(tables: dict[str, dict[tuple[object, ...], dict[str, object]]], change: Change) -> None:
    rows = tables[change.table]
    key = tuple(change.key[name] for name in KEYS[change.table])
    for column, parent in PARENTS.get(change.table, {}).items():
        value = {**change.key, **change.values}.get(column)
        if value is not None and change.kind is not ChangeKind.DELETE:
            assert (value,) in tables[parent]
    match change.kind:
        case ChangeKind.INSERT:
            assert key not in rows
            rows[key] = dict(change.values)
        case ChangeKind.UPDATE:
            rows[key].update(change.values)
        case ChangeKind.DELETE:
            del rows[key]


def test_the_load_shows_every_kind_of_change(operations: list[Operation]):
    tally = Tally()
    for operation in operations:
        tally.add(operation)
    for table in ("orders", "order_items", "titles"):
        assert tally.changes[table, "insert"]
        assert tally.changes[table, "delete"]
    for table in ("users", "products", "orders", "order_items"):
        assert tally.changes[table, "update"]
    assert tally.rolled_back
    assert any(_changes_a_key_twice(one) for one in transactions(operations))


def _changes_a_key_twice(transaction: Transaction) -> bool:
    keys = [(one.table, tuple(one.key.values())) for one in transaction.changes]
    return len(set(keys)) < len(keys)


@pytest.mark.parametrize(
    ("trait", "least", "most"),
    [
        (Trait.FRESH, 0.75, 0.85),
        (Trait.OUT_OF_ORDER, 0.06, 0.12),
        (Trait.DUPLICATE, 0.03, 0.06),
        (Trait.LATE, 0.02, 0.05),
        (Trait.NULL_KEY, 0.005, 0.03),
        (Trait.MALFORMED, 0.005, 0.03),
    ],
)
def test_traits_have_their_share(
    operations: list[Operation], trait: Trait, least: float, most: float
):
    traits = [one.trait for one in records(operations)]
    assert least < traits.count(trait) / len(traits) < most


def test_every_topic_gets_records(operations: list[Operation]):
    assert {one.topic for one in records(operations)} == set(REQUIRED_FIELD)


def test_a_duplicate_repeats_earlier_bytes(operations: list[Operation]):
    seen = set()
    for one in records(operations):
        sent = (one.topic, one.key, one.value)
        assert (sent in seen) == (one.trait is Trait.DUPLICATE)
        if one.trait is not Trait.MALFORMED:
            seen.add(sent)


def test_event_ids_are_unique_but_for_duplicates(operations: list[Operation]):
    ids = [
        json.loads(one.value or b"")["event_id"]
        for one in records(operations)
        if one.trait not in {Trait.DUPLICATE, Trait.MALFORMED}
    ]
    assert len(ids) == len(set(ids))


def test_ages_follow_the_trait(operations: list[Operation]):
    for operation in operations:
        match operation.action:
            case Record(trait=Trait.LATE | Trait.OUT_OF_ORDER | Trait.FRESH as trait, value=value):
                now = START + timedelta(seconds=operation.at)
                age = now - datetime.fromisoformat(json.loads(value or b"")["event_time"])
                bounds = {
                    Trait.FRESH: (timedelta(0), timedelta(milliseconds=1)),
                    Trait.OUT_OF_ORDER: (timedelta(seconds=1), timedelta(minutes=2, seconds=1)),
                    Trait.LATE: (timedelta(minutes=6), timedelta(hours=LATEST_HOURS)),
                }
                assert bounds[trait][0] <= age <= bounds[trait][1]
            case _:
                pass


def test_null_keys_are_well_formed_otherwise(operations: list[Operation]):
    for one in records(operations):
        if one.trait is Trait.NULL_KEY:
            assert one.key is None
            assert json.loads(one.value or b"")


def test_account_events_count_from_one(operations: list[Operation]):
    last: dict[int, int] = {}
    for one in records(operations):
        if one.topic != "account_events" or one.trait in {Trait.DUPLICATE, Trait.MALFORMED}:
            continue
        event = json.loads(one.value or b"")
        # A malformed record takes its number with it, so numbers can be missing.
        assert event["sequence"] > last.get(event["account_id"], 0)
        assert (event["event"] == "opened") == (event["sequence"] == 1)
        last[event["account_id"]] = event["sequence"]


BODY: dict[str, object] = {"event_id": "1-1", "user_id": 5, "title_id": 3, "event_time": "x"}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Malformation.TRUNCATED_JSON, encode(BODY)[: len(encode(BODY)) // 2]),
        (Malformation.EMPTY_VALUE, b""),
        (Malformation.WRONG_TYPE, encode({**BODY, "event_time": "the day before yesterday"})),
        (Malformation.ARRAY, b"[" + encode(BODY) + b"]"),
        (Malformation.INVALID_UTF8, encode(BODY)[:-1] + b',"note":"\xff\xfe"}'),
        (Malformation.MISSING_ID, b'{"user_id":5,"title_id":3,"event_time":"x"}'),
        (Malformation.MISSING_FIELD, b'{"event_id":"1-1","user_id":5,"event_time":"x"}'),
        (Malformation.TOMBSTONE, None),
    ],
)
def test_each_malformation(kind: Malformation, value: bytes | None):
    assert spoil(kind, "view_events", BODY) == value


def test_an_oversized_record_is_above_the_limit_and_below_the_brokers():
    value = spoil(Malformation.OVERSIZED, "view_events", BODY) or b""
    assert len(value) > OVERSIZED_BYTES > StreamSettings().max_record_bytes
    assert len(value) < 1_040_000
    assert json.loads(value)


def test_a_long_run_contains_every_malformation():
    kinds = {one.malformation for one in records(list(plan(a_run(rate=1000, seconds=60))))}
    assert kinds >= set(Malformation)


def test_the_shops_orders_fit_their_suite(operations: list[Operation]):
    """The suite of silver.orders, over every order that the load writes."""
    text = (REPOSITORY / "expectations/silver/orders.json").read_text(encoding="utf-8")
    rules = batch_rules(json.loads(text))
    [statuses] = [rule.kwargs["value_set"] for rule in rules if rule.type == IN_SET]
    tables: dict[str, dict[tuple[object, ...], dict[str, object]]] = {name: {} for name in KEYS}
    orders = []
    for transaction in transactions(operations):
        before = {
            name: {key: dict(row) for key, row in rows.items()} for name, rows in tables.items()
        }
        for change in transaction.changes:
            _apply(tables, change)
            if change.table == "orders" and change.kind is not ChangeKind.DELETE:
                orders.append(dict(tables["orders"][tuple(change.key.values())]))
        if transaction.ending is Ending.ROLLBACK:
            tables = before
    assert {rule.type for rule in rules} == {NOT_NULL, BETWEEN, IN_SET, GREATER}
    assert {order["status"] for order in orders} == set(statuses)
    assert all(order["user_id"] is not None for order in orders)
    assert min(Decimal(str(order["amount"])) for order in orders) >= 0
    assert all(str(order["updated_at"]) >= str(order["created_at"]) for order in orders)
