"""A sink follows its table, to real servers: what it holds is what the table holds."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
import redis
from deltalake import write_deltalake

from spark_jobs.access.cassandra import cassandra_cluster
from spark_jobs.definitions.vocabulary import RedisFormat, SinkSystem
from spark_jobs.sinks.delivery import Delivery
from spark_jobs.sinks.errors import (
    SinkAddressMissingError,
    SinkClientMissingError,
    SinkGapError,
    SinkKeysNotUniqueError,
    SinkMovedError,
    SinkNotBuiltError,
    SinkOccupiedError,
    SinkUnreachableError,
    SinkValueError,
)
from spark_jobs.sinks.postgres_tables import index_name
from spark_jobs.sinks.target import Addresses, Watermark
from spark_jobs.sinks.verify import verify_sink
from spark_jobs.state.errors import TableLockedError
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.history import vacuum
from tests.unit.sinks.conftest import SCHEMA, Make, Table, rows

SYSTEMS = [SinkSystem.POSTGRES, SinkSystem.REDIS]
every_system = pytest.mark.parametrize("system", SYSTEMS)


@every_system
def test_it_is_built_and_then_follows(system: SinkSystem, table: Table, make: Make) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink = make(system)
    built = sink.catch_up()
    assert (built.built, built.changes, built.watermark.version) == (True, 2, 0)
    assert sink.step().changes == 0

    table.upsert(rows({2: "Bill", 3: "Cat"}))
    table.delete("id = 1")
    done = sink.catch_up()
    assert (done.built, done.changes, done.watermark.version) == (False, 3, 2)
    found = verify_sink(sink)
    assert (found.passed, found.rows, found.watermark) == (True, 2, done.watermark)


@pytest.mark.parametrize("one", SYSTEMS)
def test_null_is_a_key(one: SinkSystem, table: Table, make: Make) -> None:
    table.create(rows({1: "Ann", None: "nobody"}))
    sink = make(one)
    assert sink.catch_up().changes == 2
    table.delete("id IS NULL")
    assert sink.catch_up().changes == 1
    assert verify_sink(sink).rows == 1


@every_system
def test_rows_that_only_moved_are_no_changes(system: SinkSystem, table: Table, make: Make) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink = make(system)
    sink.catch_up()
    table.upsert(rows({1: "Anna"}))
    table.upsert(rows({1: "Ann"}))
    write_deltalake(table.location, table.open().to_pyarrow_table(), mode="overwrite")
    assert sink.catch_up().changes == 0
    table.open().optimize.compact()
    done = sink.catch_up()
    assert (done.changes, done.watermark.version) == (0, table.open().version())
    assert verify_sink(sink).passed


@every_system
@pytest.mark.parametrize("form", [RedisFormat.HASH, RedisFormat.JSON])
def test_every_type_comes_back_as_it_was(
    system: SinkSystem, form: RedisFormat, table: Table, make: Make
) -> None:
    instant = datetime(2024, 5, 2, 12, 30, 0, 123456, tzinfo=UTC)
    columns = {
        "id": pa.array(["a:b", "50 %", "%"], pa.string()),
        "flag": pa.array([True, False, None]),
        "tiny": pa.array([-(2**7), 2**7 - 1, None], pa.int8()),
        "big": pa.array([-(2**63), 2**63 - 1, None]),
        "single": pa.array([0.1, float("nan"), None], pa.float32()),
        "double": pa.array([-0.0, float("-inf"), 1e22]),
        "money": pa.array([Decimal("0.10"), Decimal("-9999999999.99"), None], pa.decimal128(12, 2)),
        "huge": pa.array([Decimal("9" * 36 + ".99"), None, None], pa.decimal128(38, 2)),
        "text": pa.array(["", "NULL \\N\t\n'\"{}", "é\u2028🙂"], pa.string()),
        "raw": pa.array([b"", b"\x00\xff", None], pa.binary()),
        "day": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
        "at": pa.array([instant, instant.replace(microsecond=0), None], pa.timestamp("us", "UTC")),
        "local": pa.array([instant.replace(tzinfo=None)] * 3, pa.timestamp("us")),
        "list": pa.array([[1.5, -0.0, None], [], None], pa.list_(pa.float64())),
        "nested": pa.array(
            [{"b": "2", "a": Decimal("1.50")}, {"b": None, "a": None}, None],
            pa.struct([("b", pa.string()), ("a", pa.decimal128(5, 2))]),
        ),
        "map": pa.array([[("y", 1), ("x", 2)], [], None], pa.map_(pa.string(), pa.int64())),
    }
    table.create(pa.table(columns))
    sink = make(system, columns=tuple(columns), format=form)
    sink.catch_up()
    assert verify_sink(sink).passed
    assert sink.rebuild().changes == 0


def test_tables_that_share_much_of_their_names_live_in_one_schema(
    table: Table, make: Make, addresses: Addresses
) -> None:
    table.create(rows({1: "Ann"}))
    first = make(SinkSystem.POSTGRES)
    names = [f"{first.sink.target}_{'a' * 40}_{end}" for end in ("one", "other")]
    sinks = [make(SinkSystem.POSTGRES, name=f"s_{one[-9:]}", target=one) for one in names]
    for sink in sinks:
        sink.catch_up()
        assert verify_sink(sink).passed
    # An index of an earlier release gets its own name, and the rows stay.
    short = names[0].removeprefix("serving.")
    with psycopg.connect(addresses.postgres) as connection:
        old = f"{short[:50]}_tidemark"
        connection.execute(f"ALTER INDEX serving.{index_name(short)} RENAME TO {old}".encode())
    assert sinks[0].rebuild().changes == 0
    with psycopg.connect(addresses.postgres) as connection:
        query = "SELECT indexname FROM pg_indexes WHERE tablename = %s"
        assert connection.execute(query, [short]).fetchall() == [(index_name(short),)]


def test_postgres_has_the_right_types(table: Table, make: Make, addresses: Addresses) -> None:
    table.create(rows({1: "Ann"}))
    sink = make(SinkSystem.POSTGRES)
    sink.catch_up()
    with psycopg.connect(addresses.postgres) as connection:
        found = connection.execute(
            "SELECT column_name, data_type, numeric_precision, numeric_scale "
            "FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position",
            [sink.sink.target.removeprefix("serving.")],
        ).fetchall()
    assert [one[:2] for one in found] == [
        ("id", "bigint"),
        ("name", "text"),
        ("spent", "numeric"),
    ]
    assert found[2][2:] == (12, 2)


def test_redis_holds_a_hash_for_each_key(table: Table, make: Make, addresses: Addresses) -> None:
    table.create(rows({1: "Ann"}))
    sink = make(SinkSystem.REDIS)
    sink.catch_up()
    with redis.Redis.from_url(addresses.redis, decode_responses=True) as client:
        assert client.hgetall(f"{sink.sink.target}1") == {"id": "1", "name": "Ann"}
        table.delete("id = 1")
        sink.catch_up()
        assert client.keys(f"{sink.sink.target}*") == []


@every_system
def test_key_columns_identify_rows(system: SinkSystem, table: Table, make: Make) -> None:
    two = pa.table({"a": ["x:y", "x"], "b": ["z", "y:z"], "n": [1, 2]})
    table.create(two)
    sink = make(system, columns=("a", "b", "n"), keys=("a", "b"))
    assert sink.catch_up().changes == 2
    assert verify_sink(sink).passed


@every_system
def test_rows_that_share_a_key_are_refused(system: SinkSystem, table: Table, make: Make) -> None:
    table.create(rows({1: "Ann"}))
    table.append(rows({1: "Anna"}))
    with pytest.raises(SinkKeysNotUniqueError) as caught:
        make(system).step()
    assert caught.value.key == '{"id":1}'


@every_system
def test_a_new_sink_takes_no_place_that_holds_rows(
    system: SinkSystem, table: Table, make: Make
) -> None:
    table.create(rows({1: "Ann"}))
    make(system).catch_up()
    other = make(system, name=f"other_{make(system).sink.name}")
    with pytest.raises(SinkOccupiedError):
        other.step()
    assert other.rebuild().built
    assert verify_sink(other).passed


@every_system
def test_a_gap_is_refused_and_a_rebuild_closes_it(
    system: SinkSystem, table: Table, make: Make
) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink = make(system)
    first = sink.catch_up().watermark

    table.delete("id = 2")
    table.upsert(rows({3: "Cat"}))
    table.open().optimize.compact()
    vacuum(table.location, days=0)
    with pytest.raises(SinkGapError, match="not all there"):
        sink.step()
    done = sink.rebuild()
    assert (done.changes, done.watermark.epoch) == (2, first.epoch + 1)
    assert verify_sink(sink).passed
    table.delete("id = 1")
    assert sink.catch_up().changes == 1


@every_system
def test_a_table_that_was_recreated_is_a_gap(
    system: SinkSystem, table: Table, make: Make, tmp_path
) -> None:
    table.create(rows({1: "Ann"}))
    make(system).catch_up()
    Path(table.location).rename(tmp_path / "aside")
    table.create(rows({7: "Gus"}))
    sink = make(system)
    with pytest.raises(SinkGapError, match="recreated"):
        sink.step()
    with pytest.raises(SinkGapError, match="not readable"):
        verify_sink(sink)
    assert sink.rebuild().changes == 2
    assert verify_sink(sink).passed


@every_system
def test_other_columns_are_a_gap_and_a_rebuild_brings_them(
    system: SinkSystem, table: Table, make: Make
) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    make(system).catch_up()
    wider = rows({1: "Ann"}).append_column("at", pa.array([None], pa.timestamp("us", "UTC")))
    write_deltalake(table.location, wider, mode="overwrite", schema_mode="overwrite")
    sink = make(system, columns=(*SCHEMA.names, "at"))
    with pytest.raises(SinkGapError, match="other columns"):
        sink.step()
    sink.rebuild()
    assert verify_sink(sink).passed
    other_key = make(system, columns=(*SCHEMA.names, "at"), keys=("name",))
    other_key.rebuild()
    assert verify_sink(other_key).rows == 1


@every_system
def test_verify_reports_differences(
    system: SinkSystem, table: Table, make: Make, addresses: Addresses
) -> None:
    table.create(rows({1: "Ann", 2: "Bob", 3: "Cat"}))
    sink = make(system)
    sink.catch_up()
    spoil(sink, addresses)
    found = verify_sink(sink)
    assert (found.missing, found.different, found.unexpected, found.passed) == (1, 1, 1, False)
    assert len(found.examples) == 3
    assert sink.rebuild().changes == 3
    assert verify_sink(sink).passed


def spoil(sink: Delivery, addresses: Addresses) -> None:
    """Take a row away, change one and add one."""
    if sink.sink.system is SinkSystem.POSTGRES:
        with psycopg.connect(addresses.postgres) as connection:
            for statement in (
                "DELETE FROM {} WHERE id = 1",
                "UPDATE {} SET name = 'Bert' WHERE id = 2",
                "INSERT INTO {} VALUES (9, 'Zoe', 1)",
            ):
                connection.execute(statement.format(sink.sink.target).encode())
        return
    if sink.sink.system is SinkSystem.CASSANDRA:
        with cassandra_cluster(addresses.cassandra) as cluster:
            session = cluster.connect()
            for statement in (
                "DELETE FROM {} WHERE id = 1",
                "UPDATE {} SET name = 'Bert' WHERE id = 2",
                "INSERT INTO {} (id, name, spent) VALUES (9, 'Zoe', 1)",
            ):
                session.execute(statement.format(sink.sink.target))
        return
    with redis.Redis.from_url(addresses.redis) as client:
        client.delete(f"{sink.sink.target}1")
        client.hset(f"{sink.sink.target}2", "name", "Bert")
        client.set(f"{sink.sink.target}9", "Zoe")


@every_system
def test_of_two_concurrent_deliveries_one_fails(
    system: SinkSystem, table: Table, make: Make
) -> None:
    table.create(rows({1: "Ann"}))
    one, other = make(system), make(system)
    mark = one.catch_up().watermark
    table.upsert(rows({2: "Bob"}))
    newest = other._newest()
    target = other.target(newest)
    assert target.watermark() == mark
    one.catch_up()
    with pytest.raises(SinkMovedError):
        target.deliver([], before=mark, after=replace(mark, version=mark.version + 1))
    assert verify_sink(one).passed


@every_system
def test_an_interrupted_build_continues_by_itself(
    system: SinkSystem, table: Table, make: Make
) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink = make(system)
    newest = sink._newest()
    target = sink.target(newest)
    target.prepare()
    target.deliver([], before=None, after=Watermark(newest.table_id, -1, 1))
    done = sink.step()
    assert (done.built, done.watermark.epoch, done.changes) == (True, 2, 2)


def test_very_many_rows_go_to_redis_in_several_transactions(
    table: Table, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.sinks.redis.ROWS_AT_ONCE", 3)
    table.create(rows({at: str(at) for at in range(10)}))
    sink = make(SinkSystem.REDIS)
    assert sink.catch_up().changes == 10
    table.upsert(rows(dict.fromkeys(range(7), "x")))
    assert sink.catch_up().changes == 7
    assert verify_sink(sink).passed


def test_a_delivery_in_several_transactions_that_was_cut_off_is_made_again(
    table: Table, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.sinks.redis.ROWS_AT_ONCE", 3)
    names = {at: str(at) for at in range(7)}
    table.create(rows(names))
    sink = make(SinkSystem.REDIS)
    sink.catch_up()
    table.upsert(rows(dict.fromkeys(names, "x")))
    with monkeypatch.context() as patch:
        patch.setattr("spark_jobs.sinks.redis.failpoint", CutOff(after=2))
        with pytest.raises(ConnectionAbortedError):
            sink.catch_up()
    with pytest.raises(SinkNotBuiltError):
        verify_sink(sink)
    # Taken together with this, the change that is half delivered is none.
    table.upsert(rows(names))
    assert (sink.catch_up().watermark, verify_sink(sink).passed) == (
        Watermark(sink._newest().table_id, 2, 1),
        True,
    )


@dataclass
class CutOff:
    """A failpoint that lets some pass."""

    after: int

    def __call__(self, name: str) -> None:
        self.after -= 1
        if self.after < 0:
            raise ConnectionAbortedError


@every_system
def test_missing_tables_and_addresses_are_errors(
    system: SinkSystem, table: Table, make: Make, tmp_path
) -> None:
    sink = make(system)
    with pytest.raises(TableMissingError):
        sink.step()
    table.create(rows({1: "Ann"}))
    sink.addresses = Addresses
    with pytest.raises(SinkAddressMissingError):
        sink.step()
    nowhere = str(tmp_path / "nowhere")
    sink.addresses = lambda: Addresses(
        postgres=f"postgresql://x@/x?host={nowhere}",
        redis=f"unix://{nowhere}",
        cassandra="cassandra://127.0.0.1:1",
    )
    with pytest.raises(SinkUnreachableError):
        sink.step()
    with sink.held(wait_seconds=0), pytest.raises(TableLockedError):
        make(system).rebuild(wait_seconds=0)


@pytest.mark.parametrize("system", [SinkSystem.REDIS, SinkSystem.CASSANDRA])
def test_a_missing_client_names_its_extra(
    system: SinkSystem, table: Table, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create(rows({1: "Ann"}))
    for name in [one for one in sys.modules if one.startswith(f"{system.value}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"spark_jobs.sinks.{system.value}", raising=False)
    monkeypatch.setitem(sys.modules, system.value, None)
    sink = make(system)
    sink.addresses = lambda: Addresses(redis="redis://nobody", cassandra="cassandra://nobody")
    with pytest.raises(SinkClientMissingError) as caught:
        sink.step()
    assert (caught.value.sink, caught.value.system) == (sink.sink.name, system.value)


def test_the_core_needs_no_extra() -> None:
    """The command line, the streams and the stack import without the clients of optional sinks."""
    script = """
import sys
sys.modules |= {"redis": None, "cassandra": None}
import spark_jobs.cli.commands, spark_jobs.stack.catalog, spark_jobs.streaming.application
import spark_jobs.sinks.delivery
dict(spark_jobs.cli.commands.Commands())
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_value_that_postgres_refuses_waits_for_a_person(table: Table, make: Make) -> None:
    table.create(rows({1: "a\x00b"}))
    with pytest.raises(SinkValueError):
        make(SinkSystem.POSTGRES).step()


def test_a_table_in_postgres_that_is_gone_is_a_gap(
    table: Table, make: Make, addresses: Addresses
) -> None:
    table.create(rows({1: "Ann"}))
    sink = make(SinkSystem.POSTGRES)
    sink.catch_up()
    with psycopg.connect(addresses.postgres) as connection:
        connection.execute(f"DROP TABLE {sink.sink.target}".encode())
    table.upsert(rows({2: "Bob"}))
    with pytest.raises(SinkGapError, match="is gone"):
        sink.step()
    assert sink.rebuild().changes == 2


def test_a_redis_that_lost_everything_is_built_again(
    table: Table, make: Make, addresses: Addresses
) -> None:
    table.create(rows({1: "Ann"}))
    sink = make(SinkSystem.REDIS)
    sink.catch_up()
    with redis.Redis.from_url(addresses.redis) as client:
        client.delete(f"tidemark:sink:{sink.sink.name}", f"{sink.sink.target}1")
    table.upsert(rows({2: "Bob"}))
    assert sink.step().built
    assert verify_sink(sink).rows == 2
