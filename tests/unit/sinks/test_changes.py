"""Netting and encoding: whatever happened, and however it is cut, the fold is the table."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.cimpl import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.definitions.vocabulary import KafkaFormat, SinkSystem
from spark_jobs.names import TableName
from spark_jobs.sinks.changes import Change, difference, net
from spark_jobs.sinks.errors import (
    SinkKeysNotUniqueError,
    SinkUnreachableError,
    SinkValueError,
)
from spark_jobs.sinks.kafka import KafkaTarget
from spark_jobs.sinks.messages import Message, fold, messages
from spark_jobs.sinks.redis import RedisTarget
from spark_jobs.sinks.rows import RowCodec
from spark_jobs.sinks.topics import Topics
from tests.unit.sinks.conftest import SCHEMA, sink_of_users

TABLE = TableName.parse("gold.users")
SENT = {"table": TABLE, "version": 7, "at_ms": 99}
KEYS = st.integers(0, 4)
# What a commit does: rows by key, or None for a delete; and whether it rewrites all other rows.
COMMITS = st.lists(
    st.tuples(st.dictionaries(KEYS, st.none() | st.integers(0, 3)), st.booleans()), max_size=12
)
State = dict[str, str]
Move = tuple[str, str, bool]


def key_of(key: int) -> str:
    return json.dumps({"id": key}, separators=(",", ":"))


def row_of(key: int, value: int) -> str:
    return json.dumps({"id": key, "n": value}, separators=(",", ":"))


def commit(state: State, change: dict[int, int | None], rewrite: bool) -> Iterator[Move]:
    """Change the state, and tell what a change feed would: rows that came and rows that went."""
    if rewrite:
        for key, row in state.items():
            yield key, row, False
            yield key, row, True
    for number, value in change.items():
        key = key_of(number)
        if (old := state.pop(key, None)) is not None:
            yield key, old, False
        if value is not None:
            state[key] = row_of(number, value)
            yield key, state[key], True


@given(history=COMMITS, size=st.integers(1, 5), shuffle=st.randoms(use_true_random=False))
@pytest.mark.parametrize("form", KafkaFormat)
def test_the_fold_of_what_is_delivered_is_the_table(form, history, size, shuffle) -> None:
    state: State = {}
    topic: list[Message] = []
    for start in range(0, len(history), size):
        before = dict(state)
        moves = [one for part in history[start : start + size] for one in commit(state, *part)]
        shuffle.shuffle(moves)
        changes = net("users", moves)
        assert len({one.key for one in changes}) == len(changes)
        for one in changes:
            assert one.before == before.get(one.key)
            assert one.after == state.get(one.key)
            assert one.before != one.after
            topic += messages(one, form, table=TABLE, version=start, at_ms=0)
        assert {one.key for one in changes} == {
            key for key in before.keys() | state.keys() if before.get(key) != state.get(key)
        }
    assert fold(topic, form) == state


@given(
    table=st.dictionaries(KEYS, st.integers(0, 3)), held=st.dictionaries(KEYS, st.integers(0, 3))
)
def test_a_difference_makes_a_sink_equal(table: dict[int, int], held: dict[int, int]) -> None:
    rows = {key_of(key): row_of(key, value) for key, value in table.items()}
    sink = {key_of(key): row_of(key, value) for key, value in held.items()}
    changes = list(difference("users", rows.items(), dict(sink)))
    for one in changes:
        assert sink.pop(one.key, None) == one.before
        if one.after is not None:
            sink[one.key] = one.after
    assert sink == rows
    assert not list(difference("users", rows.items(), sink))


def told(form: KafkaFormat, before: str | None, after: str | None) -> list[tuple[str, object]]:
    change = Change('{"id":1}', before, after)
    return [
        (one.key, None if one.value is None else json.loads(one.value))
        for one in messages(change, form, table=TABLE, version=7, at_ms=99)
    ]


OLD, NEW = {"id": 1, "n": 1}, {"id": 1, "n": 2}
OLD_TEXT, NEW_TEXT = json.dumps(OLD), json.dumps(NEW)


def test_upserts_are_rows_and_tombstones() -> None:
    assert told(KafkaFormat.UPSERT, OLD_TEXT, NEW_TEXT) == [('{"id":1}', NEW)]
    assert told(KafkaFormat.UPSERT, OLD_TEXT, None) == [('{"id":1}', None)]


def test_a_changelog_has_four_kinds_of_rows() -> None:
    def kinds(before: str | None, after: str | None) -> list[object]:
        return [value for _, value in told(KafkaFormat.CHANGELOG, before, after)]

    assert kinds(None, NEW_TEXT) == [{"op": "+I", "data": NEW}]
    assert kinds(OLD_TEXT, None) == [{"op": "-D", "data": OLD}]
    assert kinds(OLD_TEXT, NEW_TEXT) == [{"op": "-U", "data": OLD}, {"op": "+U", "data": NEW}]


@pytest.mark.parametrize(
    ("before", "after", "op"), [(None, NEW, "c"), (OLD, NEW, "u"), (OLD, None, "d")]
)
def test_a_debezium_envelope(before: object, after: object, op: str) -> None:
    first, *rest = told(
        KafkaFormat.DEBEZIUM,
        None if before is None else json.dumps(before),
        None if after is None else json.dumps(after),
    )
    source = {"connector": "tidemark", "schema": "gold", "table": "users", "version": 7}
    assert first[1] == {"before": before, "after": after, "source": source, "op": op, "ts_ms": 99}
    assert rest == ([] if after else [('{"id":1}', None)])


@pytest.mark.parametrize("text", ["no json", "[]", "{}", '{"op": 1, "data": null}'])
@pytest.mark.parametrize("form", [KafkaFormat.CHANGELOG, KafkaFormat.DEBEZIUM])
def test_a_strange_record_is_no_row_of_the_table(form: KafkaFormat, text: str) -> None:
    assert fold([Message("k", text)], form) == {"k": "null"}


@pytest.mark.parametrize("form", [*KafkaFormat])
def test_binary_records_of_others_are_rows_that_a_rebuild_removes(form: KafkaFormat) -> None:
    held = fold([Message.decoded(b"\x00\xff", b"\xfe"), Message.decoded(None, b"x")], form)
    assert len(held) == 2
    changes = difference("users", [], held)
    sent = [one for change in changes for one in messages(change, form, **SENT)]
    assert fold([Message.decoded(*one.encoded()) for one in sent], form) == {}
    assert {one.encoded()[0] for one in sent} == {b"\x00\xff", b""}


@pytest.mark.parametrize("key", [b"users:\xff", b"users:7", b"users:\xc3\xa9"])
def test_foreign_keys_in_redis_are_rows_that_a_rebuild_removes(key: bytes) -> None:
    sink = sink_of_users("users", SinkSystem.REDIS)
    target = RedisTarget(sink, RowCodec(SCHEMA, sink.keys), "")
    changes = difference("users", [], dict([target._row(key, {b"\xfe": b"?"})]))
    assert [target._address(change.key) for change in changes] == [key]


@pytest.mark.parametrize(
    "moves",
    [
        [("k", "a", True), ("k", "b", True)],
        [("k", "a", True), ("k", "a", True)],
        [("k", "a", False), ("k", "b", False)],
    ],
)
def test_two_rows_of_a_key_are_refused(moves: list[Move]) -> None:
    with pytest.raises(SinkKeysNotUniqueError):
        net("users", moves)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError.TOPIC_EXCEPTION, SinkValueError),
        (KafkaError.REQUEST_TIMED_OUT, SinkUnreachableError),
    ],
)
def test_a_topic_that_the_broker_does_not_take_waits_for_a_person(
    code: int, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise KafkaException(KafkaError(code, "Topic 'a_b' collides with existing topics: a.b"))

    monkeypatch.setattr(Topics, "make", refused)
    sink = sink_of_users("users", SinkSystem.KAFKA).model_copy(
        update={"format": KafkaFormat.UPSERT}
    )
    access = KafkaAccess("127.0.0.1:1")
    with pytest.raises(expected):
        KafkaTarget(sink, RowCodec(SCHEMA, sink.keys), access).prepare()
