"""Every corner case of a database's changes, through Connect and the broker: silver is Postgres.

The tables, the connector and the streams are those of each test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.bronze.delete_records import DELETED_BY, DELETED_WHY, produce
from spark_jobs.silver.check.quarantine import rejections
from spark_jobs.silver.errors import SchemaDriftError
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.silver.repair.delete_backfill import missed_deletions
from spark_jobs.stack.connect import client, states
from spark_jobs.stack.postgres import DEBEZIUM, SHOP, connect, dsn
from spark_jobs.stack.resnapshot import resnapshot
from spark_jobs.stack.slot import lost, unread
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.tables import read
from tests.e2e import oracle
from tests.e2e.corner_world import SECONDS, TABLES, Corner, assert_sound, large, values
from tests.e2e.running import RunningStack
from tests.servers import outgrown_slots

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def corner(capture: RunningStack, spark: SparkSession, tmp_path: Path) -> Iterator[Corner]:
    found = Corner(capture, spark, tmp_path / "project")
    try:
        found.create()
        yield found
    finally:
        found.drop()


@contextmanager
def following(corner: Corner) -> Iterator[ControlStore]:
    """The streams run while the block does."""
    with ControlStore.open(corner.settings.control_url) as store, ExitStack() as running:
        flows = corner.flows(store)
        for flow in flows:
            flow.create_tables(corner.spark)
        for flow in flows:
            running.callback(flow.start(corner.spark).stop)
        yield store


def test_silver_equals_postgres(corner: Corner) -> None:
    plain = {"mood": "calm", "price": "1.250", "amount": "12345678901234567890.5", "ratio": 0.1}
    times = {
        "at": "2026-01-02 03:04:05.123456+02",
        "local": "2026-01-02 03:04:05",
        "day": "2024-02-29",
    }
    parts = {"tags": ["a", None, 'quo"te', "{}"], "numbers": [1, None, 3], "raw": b"\x00\xff"}
    for number in range(1, 7):
        corner.insert(
            id=number, body=large(number), doc='{"a": [1, 2.50]}', **plain, **times, **parts
        )
    corner.capture()
    with following(corner) as store:
        corner.wait_equal()

        # What is left out of an update, several changes of a key at once, and keys that change.
        corner.everywhere("UPDATE THE_TABLE SET price = 2 WHERE id = 1")
        corner.everywhere(
            "UPDATE THE_TABLE SET price = 3 WHERE id = 2",
            "UPDATE THE_TABLE SET mood = 'cross', tags = '{}' WHERE id = 2",
            "DELETE FROM THE_TABLE WHERE id = 3",
            "INSERT INTO THE_TABLE (id, body) VALUES (3, 'again')",
            "UPDATE THE_TABLE SET ratio = 'NaN', small = 'Infinity', amount = 'NaN' WHERE id = 3",
        )
        corner.everywhere("UPDATE THE_TABLE SET id = 44, body = NULL WHERE id = 4")
        corner.everywhere("DELETE FROM THE_TABLE WHERE id = 5")
        corner.everywhere("INSERT INTO THE_TABLE (id, ratio) VALUES (7, '-Infinity')")
        corner.wait_equal()

        # The worker is killed before it has noted how far it came, so it sends again.
        corner.everywhere("UPDATE THE_TABLE SET price = price + 1 WHERE id IN (1, 2)")
        pid = corner.stack.kill("connect")
        corner.everywhere("UPDATE THE_TABLE SET day = '2026-02-03' WHERE id = 6")
        corner.stack.wait_restarted("connect", pid)
        corner.wait_equal()

        # Rows that the connector never saw come by a snapshot that was asked for.
        data = [f"public.{table}" for table in TABLES]
        signal = json.dumps({"data-collections": data, "type": "incremental"})
        rows = sum(len(corner.silver(table)) for table in TABLES)
        corner.execute(
            "INSERT INTO corner_signals VALUES ('one', 'execute-snapshot', %s)", values=[signal]
        )
        corner.everywhere("UPDATE THE_TABLE SET doc = '[]' WHERE id = 1")
        places = [corner.lake.location(one.table_name) for one in corner.manifest.sources.values()]

        def snapshot_came() -> bool:
            read_again = [b'"snapshot":"incremental"' in (one or b"") for one in values(places)]
            # A row that changes meanwhile is not told twice.
            return sum(read_again) >= rows - len(TABLES)

        oracle.wait_until(snapshot_came, seconds=SECONDS, what="the incremental snapshot")
        corner.wait_equal()

        # A time that no table can hold is rejected, and the row stays as it was until the next.
        corner.everywhere("UPDATE THE_TABLE SET at = 'infinity' WHERE id = 6")
        corner.everywhere("UPDATE THE_TABLE SET at = now() WHERE id = 6")
        corner.wait_equal()
        for table in TABLES:
            [rejected] = rejections(table, corner.lake.quarantine(table))
            assert (rejected.reason, rejected.records) == ("TYPE_MISMATCH", 1)

        corner.everywhere("TRUNCATE THE_TABLE", "INSERT INTO THE_TABLE (id) VALUES (1), (8)")
        corner.wait_equal()
        assert_sound(corner, store, transactions=8)


def test_altered_tables_are_reported_and_no_wrong_row_is_written(corner: Corner) -> None:
    corner.insert(id=1, body="one", mood="calm", day="2024-02-29", price="1.5")
    corner.insert(id=2, body="two", mood="calm")
    corner.capture()
    with following(corner) as store:
        corner.wait_equal()
        # None of these takes anything away: all goes on, and what is new is said.
        corner.everywhere(
            "ALTER TABLE THE_TABLE ADD COLUMN extra INT DEFAULT 5",
            "ALTER TABLE THE_TABLE ALTER COLUMN price TYPE NUMERIC(20, 3)",
            "ALTER TABLE THE_TABLE ALTER COLUMN body SET DEFAULT 'by default'",
        )
        corner.execute("ALTER TYPE corner_mood ADD VALUE 'glad'")
        corner.everywhere("INSERT INTO THE_TABLE (id, mood) VALUES (3, 'glad')")
        corner.wait_equal()
        assert said(store) == {
            (table, *one)
            for table in TABLES
            for one in (("unknown", "extra", "number"), ("value", "mood", "glad"))
        }
        oracle.wait_until(
            lambda: all(len(rows_of(corner, f"{table}_past", "id")) == 3 for table in TABLES),
            seconds=SECONDS,
            what="the histories have all rows",
        )
        # A rename and an update: the row as it would be is nobody's.
        corner.everywhere(
            "ALTER TABLE THE_TABLE RENAME COLUMN body TO content",
            "UPDATE THE_TABLE SET ratio = 2 WHERE id = 1",
        )
        wait_held(corner, store, "body")
        for table in TABLES:
            past = rows_of(corner, f"{table}_past", "id", "body", "ratio")
            assert (1, "one", None) in past
            assert [row for row in past if row[0] == 1] == [(1, "one", None)]
            assert (1, "one", None) in rows_of(corner, table, "id", "body", "ratio")
        for table in TABLES:
            columns = ["body", "content", "extra", "mood"]
            store.accept_drifts(table, columns=columns, by="tests", reason="renamed and back")
        corner.everywhere(
            "ALTER TABLE THE_TABLE RENAME COLUMN content TO body",
            "UPDATE THE_TABLE SET ratio = 3 WHERE id = 1",
        )
    with following(corner) as store:
        corner.wait_equal()
        corner.everywhere(
            "ALTER TABLE THE_TABLE DROP COLUMN day", "UPDATE THE_TABLE SET ratio = 4 WHERE id = 1"
        )
        wait_held(corner, store, "day")
        for table in TABLES:
            assert (1, 3.0) in rows_of(corner, table, "id", "ratio")
            store.accept_drifts(table, columns=["day"], by="tests", reason="dropped on purpose")
        # Another primary key is another Kafka key, which identifies no declared row.
        corner.everywhere(
            "UPDATE THE_TABLE SET mood = 'calm'",
            "ALTER TABLE THE_TABLE DROP CONSTRAINT THE_TABLE_pkey",
            "ALTER TABLE THE_TABLE ADD PRIMARY KEY (id, mood)",
        )
        corner.everywhere("UPDATE THE_TABLE SET ratio = 5 WHERE id = 2")
    with following(corner):
        oracle.wait_until(
            lambda: all(
                any(one.reason == "KEY_COLUMNS_DIFFER" for one in found)
                for table in TABLES
                for found in [rejections(table, corner.lake.quarantine(table))]
            ),
            seconds=SECONDS,
            what="changes with another key are in quarantine",
        )
        assert all((1, 4.0) in rows_of(corner, table, "id", "ratio") for table in TABLES)


def said(store: ControlStore) -> set[tuple[str, str, str, str]]:
    return {(one.source, one.kind.value, one.column, one.detail) for one in store.drifts()}


def wait_held(corner: Corner, store: ControlStore, column: str) -> None:
    """Wait until every silver table refuses to go on without a column."""

    def held() -> bool:
        found = []
        for flow in corner.flows(store):
            error = flow.diagnose(RuntimeError()) if isinstance(flow, SilverFlow) else None
            if isinstance(flow, SilverFlow):
                found.append(isinstance(error, SchemaDriftError) and column in str(error.detail))
        return all(found)

    oracle.wait_until(held, seconds=SECONDS, what=f"the tables wait without {column}")


def rows_of(corner: Corner, table: str, *columns: str) -> list[tuple[object, ...]]:
    place = corner.lake.location(corner.manifest.silver[table].table_name)
    rows = DeltaTable(place).to_pyarrow_table(columns=list(columns)).to_pylist()
    return [tuple(row[name] for name in columns) for row in rows]


@pytest.mark.long
@pytest.mark.parametrize("how", ["dropped", "outgrown"])
def test_changes_lost_with_a_slot_are_captured_again(corner: Corner, how: str) -> None:
    for number in range(1, 7):
        corner.insert(id=number, body="as it was", price=number)
    corner.capture()
    with following(corner) as store:
        corner.wait_equal()
        # A newest change that is no snapshot's; deletions and times are told behind either.
        corner.everywhere("UPDATE THE_TABLE SET price = 50 WHERE id = 5")
        corner.wait_equal()

        with client(corner.stack.settings) as api:

            def are(*wanted: str) -> bool:
                return states(api.get(f"/connectors/{corner.name}/status").json()) == list(wanted)

            api.put(f"/connectors/{corner.name}/stop").raise_for_status()
            oracle.wait_until(lambda: are("STOPPED"), seconds=SECONDS, what="it has stopped")
            if how == "dropped":
                oracle.wait_until(corner.slot_dropped, seconds=SECONDS, what="the slot is lost")
            corner.everywhere("DELETE FROM THE_TABLE WHERE id IN (4, 5)")
            corner.everywhere("UPDATE THE_TABLE SET price = 10 WHERE id = 1")
            corner.everywhere(
                "DELETE FROM THE_TABLE WHERE id = 2",
                "INSERT INTO THE_TABLE (id, body) VALUES (2, 'again'), (9, 'new')",
            )
            role = dsn(corner.stack.settings, database=SHOP, role=DEBEZIUM)
            if how == "outgrown":
                with connect(corner.stack.settings, SHOP) as database, outgrown_slots(database):
                    oracle.wait_until(
                        lambda: lost(role, corner.name), seconds=SECONDS, what="the slot is lost"
                    )
            api.put(f"/connectors/{corner.name}/resume").raise_for_status()
            if how == "dropped":
                oracle.wait_until(
                    lambda: are("RUNNING", "FAILED"), seconds=SECONDS, what="the connector fails"
                )
            else:
                log = corner.stack.stack.supervisor.part_log("connect")
                waits = f"Cannot obtain valid replication slot '{corner.name}'"
                oracle.wait_until(
                    lambda: waits in log.read_text(), seconds=SECONDS, what="the connector waits"
                )
                assert not unread(role, corner.name)

        resnapshot(corner.stack.settings, dsn=role, connector=corner.name, slot=corner.name)
        gone = {4, 5}
        oracle.wait_until(
            lambda: all(
                {row[0] for row in corner.silver(table)}
                == {row[0] for row in corner.postgres(table)} | gone
                for table in TABLES
            ),
            seconds=SECONDS,
            what="the snapshot brings what is there, and says nothing of what is gone",
        )

        def missed() -> dict[str, frozenset[int]]:
            """Tell the deletions; returns what was told."""
            found = {}
            for source in corner.manifest.sources.values():
                bronze = read(corner.spark, corner.lake.location(source.table_name))
                found_here = missed_deletions(
                    corner.spark, bronze, source, dsn=corner.shop, max_bytes=10**6
                )
                lost = list(found_here.rows)
                assert len(lost) == found_here.count
                access = kafka_access(corner.stack.settings, Principal.CONNECT)
                records = (record for one in lost for record in one.records(utc_now()))
                headers = {DELETED_BY: "me@here", DELETED_WHY: "the slot was lost"}
                assert produce(access, source.topic or "", records, headers=headers) == 2 * len(
                    lost
                )
                found[source.name] = frozenset(one.row["id"] for one in lost)
            return found

        assert missed() == dict.fromkeys(TABLES, frozenset(gone))
        corner.wait_equal()
        assert missed() == dict.fromkeys(TABLES, frozenset())

        # A row that is there again is newer than what was told of it; so is all that follows.
        corner.everywhere("INSERT INTO THE_TABLE (id, body) VALUES (5, 'back')")
        corner.everywhere("UPDATE THE_TABLE SET price = 11 WHERE id = 1")
        corner.wait_equal()
        assert_sound(corner, store, transactions=2)


@pytest.mark.long
def test_a_transaction_that_was_open_during_the_first_snapshot(corner: Corner) -> None:
    for key in (1, 2, 3):
        corner.insert(id=key, body=large(key), price=key)
    role = dsn(corner.stack.settings, database=SHOP, role=DEBEZIUM)
    # With a slot that is there, as after a snapshot that did not end, the snapshot does not wait
    # for open transactions.
    with psycopg.connect(role, autocommit=True) as database:
        slot = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
        database.execute(slot, [corner.name])
    with psycopg.connect(corner.shop) as opened:
        for table in TABLES:
            # Also a large value that the connector does not send again.
            opened.execute(f"UPDATE {table} SET price = 10 WHERE id = 1".encode())
            opened.execute(f"DELETE FROM {table} WHERE id = 2".encode())
        corner.insert(id=4)
        corner.capture()
        for table in TABLES:
            opened.execute(f"UPDATE {table} SET price = 11 WHERE id = 3".encode())
    with following(corner) as store:
        corner.wait_equal()
        corner.everywhere("UPDATE THE_TABLE SET price = 12 WHERE id = 1")
        corner.wait_equal()
        places = [corner.lake.location(one.table_name) for one in corner.manifest.sources.values()]
        # Otherwise another transaction came first, and nothing was shown.
        parts = b'"op":"u"', b'"sequence":"[null'
        assert any(all(part in (one or b"") for part in parts) for one in values(places))
        assert_sound(corner, store, transactions=2)


@pytest.mark.long
def test_the_log_of_tables_that_are_not_captured_is_released(corner: Corner) -> None:
    corner.insert(id=1)
    corner.capture()
    kept = b"SELECT pg_wal_lsn_diff(%s, restart_lsn) FROM pg_replication_slots WHERE slot_name = %s"
    with connect(corner.stack.settings, SHOP) as database:
        database.execute("CREATE TABLE busy (body TEXT)")
        try:

            def write(rows: int) -> None:
                text = f"SELECT repeat('x', 1000) FROM generate_series(1, {rows})"
                database.execute(f"INSERT INTO busy {text}".encode())

            write(30_000)
            ((end,),) = database.execute("SELECT pg_current_wal_lsn()").fetchall()

            def megabytes() -> float:
                ((found,),) = database.execute(kept, [end, corner.name]).fetchall()
                return float(found) / 1e6

            def released() -> bool:
                # PostgreSQL moves the slot's oldest position with a later message than the first.
                write(1000)
                return megabytes() <= 0

            assert megabytes() > 20
            oracle.wait_until(released, seconds=SECONDS, what="the log is released")
        finally:
            database.execute("DROP TABLE busy")
    # The stored offset has advanced as well: a slot that is ahead of it would be an error.
    with corner.lagging():
        corner.insert(id=2)
    with following(corner):
        corner.wait_equal()
