"""Every type of PostgreSQL: what Debezium sends of it, and what the database is read as."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.column_types import canonical_type
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry, SourceEntry
from spark_jobs.settings import REPOSITORY
from spark_jobs.silver.check.quarantine import rejections
from spark_jobs.silver.check.source_database import compare_with_source
from spark_jobs.silver.check.source_rows import opened, read_rows, snapshot_records
from spark_jobs.silver.parse.nested import nested
from spark_jobs.silver.repair.delete_backfill import missed_deletions
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.reader import read
from tests.servers import Postgres
from tests.spark.silver.connector import Connector, running_connector
from tests.spark.silver.world import Record, applier, bronze, counts

PAGE = REPOSITORY / "docs" / "postgres-types.md"
LINE = re.compile(r"\| `?(?P<type>[^|`]+)`? \| (?P<sent>[^|]+) \| `?(?P<declared>[^|`]+)`? \|")
MOST_BYTES = 10**6
# Values of each type on the page; of a name that is no type, the type that stands for it.
VALUES: dict[str, tuple[str, ...]] = {
    "smallint": ("-32768",),
    "integer": ("2147483647",),
    "bigint": ("-9223372036854775808",),
    "oid": ("4294967295",),
    "numeric(12,2)": ("1.5", "-9999999999.99"),
    "numeric": ("1.50", "'NaN'", "'-Infinity'", "1e40", "0.0000000001"),
    "money": ("1234.5",),
    "real": ("0.1", "16777216", "'NaN'", "'-Infinity'", "1e-10"),
    "double precision": ("0.1", "1e300", "'NaN'", "'Infinity'", "100", "0.001"),
    "boolean": ("true", "false"),
    "text": ("'t '", "''", r"'ä\"{}'"),
    "character varying(9)": ("'v '",),
    "character(4)": ("'DE'", "'ABCD'", "'ä'"),
    '"char"': ("'q'",),
    "name": ("'nam'",),
    "citext": ("'Ci'",),
    "bytea": (r"'\x00ff'", r"repeat('x', 90)::bytea"),
    "date": ("'2024-02-29'", "'0001-01-01'", "'9999-12-31'"),
    "timestamp without time zone": ("'2024-02-29 12:34:56.5'", "'2024-02-29 00:00'"),
    "timestamp with time zone": ("'2024-02-29 12:34:56.123456+02'", "'2024-02-29 00:00+14'"),
    "timestamp(3) with time zone": ("'2024-02-29 12:34:56.12+00'",),
    "time without time zone": ("'12:34:56.5'", "'12:34'", "'24:00'"),
    "time with time zone": ("'12:34:56.5+02'", "'00:30+05:30'"),
    "interval": ("'1 year 2 months 3 days 04:05:06.789'", "'-1 day'", "'-00:00:01'", "'0'"),
    "uuid": ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",),
    "json": ("""'{"a" : 1.0, "a":2}'""",),
    "jsonb": ("""'{"b" : 1.0, "a":[2]}'""",),
    "xml": ("'<a/>'",),
    "hstore": (
        "'b=>1, a=>NULL'",
        "(SELECT hstore(array_agg('key ä'||i), array_agg('\"'||i)) FROM generate_series(1, 40) i)",
    ),
    "ltree": ("'a.b'",),
    "inet": ("'10.0.0.1'", "'10.0.0.1/8'", "'::1'"),
    "cidr": ("'10.0.0.0/8'",),
    "macaddr": ("'08:00:2b:01:02:03'",),
    "macaddr8": ("'08:00:2b:01:02:03:04:05'",),
    "bit(1)": ("B'1'", "B'0'"),
    "bit(9)": ("B'100000010'", "B'000000000'"),
    "bit varying": ("B'101'", "B'1000000000'"),
    "tsvector": ("'a:1 b:2'",),
    "int4range": ("'[1,5]'", "'empty'"),
    "int8range": ("'[1,)'",),
    "numrange": ("'[1.50,2)'",),
    "tsrange": ("'[2024-01-01,2024-01-02)'",),
    "tstzrange": ("'[2024-01-01 00:00+00,2024-01-02 00:00+00)'",),
    "daterange": ("'[2024-01-01,2024-01-02)'",),
    "point": ("'(1.5,-2)'",),
    "line": ("'{1,2,3}'",),
    "lseg": ("'[(1,2),(3,4)]'",),
    "box": ("'(3,4),(1,2)'",),
    "path": ("'[(1,2),(3,4)]'", "'((1,2),(3,4))'"),
    "polygon": ("'((1,2),(3,4),(5,6))'",),
    "circle": ("'<(1,2),3>'",),
    "an enumeration": ("'calm'",),
    "a domain": ("'D'",),
    "integer[]": ("'{1,NULL,3}'", "'{}'"),
    "numeric(8,2)[]": ("'{1.5,NULL}'",),
    "text[]": (r"""'{a,NULL,"q\"uo",""}'""",),
    "character(3)[]": ("'{a,NULL}'",),
    "boolean[]": ("'{t,f}'",),
    "double precision[]": ("'{0.1,100}'",),
    "bytea[]": (r"array['\x00ff'::bytea]",),
    "date[]": ("'{2024-02-29}'",),
    "timestamp with time zone[]": ("'{2024-02-29 12:00+02}'",),
    "uuid[]": ("'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'",),
    "jsonb[]": ("""array['{"a": 1}'::jsonb]""",),
    "hstore[]": ("array['a=>1'::hstore]",),
    "int4range[]": ("""'{"[1,5]"}'""",),
    "an array of an enumeration": ("'{calm}'",),
}
STANDS_FOR = {
    "an enumeration": "mood",
    "a domain": "code",
    "an array of an enumeration": "mood[]",
}
DECLARED_OF = {"as the type below it": "STRING"}
# The connector sends null of a name unless a snapshot reads it.
LOST_IN_CHANGES = {"name"}
# What the page says that the connector changes or leaves out: the type, a value, and what a
# snapshot sends where Connect is not the stack's own.
LOST: dict[str, tuple[str, str, Any]] = {
    "before_christ": ("DATE", "'0044-03-15 BC'", "0044-03-15Z"),
    "endless": ("DATE", "'infinity'", "+292278994-08-16Z"),
    "nested": ("INT[]", "'{{1,2},{3,4}}'", [None, None]),
    "no_number": ("NUMERIC[]", "'{1.50,NaN}'", None),
    "midnight": ("TIME", "'24:00'", "00:00:00Z"),
}
DECLARED_LOST = {
    "id": "bigint",
    "before_christ": "date",
    "endless": "date",
    "nested": "array<int>",
    "no_number": "array<decimal(8,2)>",
    "midnight": "string",
}
NEVER_SENT = {
    "composite": "pair",
    "query": "tsquery",
    "ranges": "int4multirange",
    "place": "pg_lsn",
    "transaction": "xid",
    "row_id": "tid",
    **{
        f"array_of_{name}": f"{name}[]"
        for name in ("money", "interval", "varbit", "xml", "name", "point", "code")
    },
}
SETUP = (
    "CREATE TYPE pair AS (a INT, b TEXT)",
    *(f"CREATE EXTENSION {name}" for name in ("hstore", "citext", "ltree")),
    "CREATE TYPE mood AS ENUM ('calm', 'cross')",
    "CREATE DOMAIN code AS CHAR(3)",
)


def declared() -> dict[str, str]:
    """What the page says how to declare each type."""
    rows = [found for line in PAGE.read_text().splitlines() if (found := LINE.fullmatch(line))]
    found = {row["type"]: row["declared"] for row in rows if row["type"] != "PostgreSQL"}
    return {name: DECLARED_OF.get(kind, kind) for name, kind in found.items()}


def test_the_page_has_each_type() -> None:
    assert list(declared()) == list(VALUES)


def column(name: str) -> str:
    return f"c{list(VALUES).index(name)}"


SOURCE = SourceEntry(
    name="every_type",
    format=SourceFormat.DEBEZIUM,
    topic="shop.public.every_type",
    table="public.every_type",
    keys=("id",),
    file="sources/every_type.yml",
    columns=(
        Column(name="id", type="bigint"),
        *(
            Column(name=column(name), type=canonical_type(kind))
            for name, kind in declared().items()
        ),
    ),
)
SILVER = SilverEntry(
    name="every_type",
    source="every_type",
    sql="",
    projection=f"SELECT {', '.join(f's.{one.name}' for one in SOURCE.columns)} FROM source AS s",
    columns=SOURCE.columns,
    keys=("id",),
    apply=ApplyMode.UPSERT,
    apply_as_deletes="__op = 'd'",
    file="sql/silver/every_type.sql",
    fingerprint="1",
)


@pytest.fixture(scope="module")
def shop(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:
    """The database, with a table that has one column of each type and one row for each value."""
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:

        def execute(statement: str) -> None:
            connection.execute(statement.encode())

        for statement in SETUP:
            execute(statement)
        columns = [f"{column(name)} {STANDS_FOR.get(name, name)}" for name in VALUES]
        execute(f"CREATE TABLE every_type (id BIGINT PRIMARY KEY, {', '.join(columns)})")
        execute("ALTER TABLE every_type REPLICA IDENTITY FULL")
        for at in range(max(map(len, VALUES.values())) + 1):
            row = {column(name): found[at] for name, found in VALUES.items() if at < len(found)}
            names, values = ", ".join(["id", *row]), ", ".join([str(at), *row.values()])
            execute(f"INSERT INTO every_type ({names}) VALUES ({values})")
        lossy = [f"{name} {kind}" for name, (kind, _, _) in LOST.items()]
        lossy += [f"{name} {kind}" for name, kind in NEVER_SENT.items()]
        execute(f"CREATE TABLE lossy (id BIGINT PRIMARY KEY, {', '.join(lossy)}, bits BIT(3)[])")
        for at, (name, (_, value, _)) in enumerate(LOST.items()):
            execute(f"INSERT INTO lossy (id, bits, {name}) VALUES ({at}, '{{101}}', {value})")
        execute("CREATE TABLE keyless (a INT, b TEXT)")
        execute("ALTER TABLE keyless REPLICA IDENTITY FULL")
        execute("INSERT INTO keyless VALUES (1, 'x'), (1, 'x')")
        yield connection
        for table in ("every_type", "lossy", "keyless"):
            execute(f"DROP TABLE {table}")


@pytest.fixture(scope="module")
def connector(
    postgres: Postgres, shop: psycopg.Connection[Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connector]:
    tables = [f"public.{name}" for name in ("every_type", "lossy", "keyless")]
    state = tmp_path_factory.mktemp("connector")
    # Debezium's default: it sends something also of values that it cannot convert.
    lenient = {"event_converting_failure_handling_mode": "warn"}
    with running_connector(postgres, tables, slot="types", state=state, **lenient) as running:
        yield running


@pytest.fixture(scope="module")
def sent(shop: psycopg.Connection[Any], connector: Connector) -> list[Record]:
    """What the connector writes of a snapshot, and of an update of each row."""
    found = shop.execute("SELECT count(*) FROM every_type").fetchone()
    rows = found[0] if found else 0
    connector.wait("public.every_type", rows)
    shop.execute("UPDATE every_type SET id = id")
    return connector.wait("public.every_type", 2 * rows)


def images(records: list[Record]) -> list[dict[str, Any]]:
    """The rows of records, each value as the JSON that it was written in."""
    found = [json.loads(value or b"", parse_float=str)["after"] for _, value in records]
    return sorted(found, key=lambda row: row["id"])


def test_the_database_is_read_as_the_connector_sends_it(
    postgres: Postgres, sent: list[Record]
) -> None:
    with opened(postgres.dsn, SOURCE) as (connection, table):
        pages = list(snapshot_records(connection, SOURCE, table.columns))
    read_here = [(row["key"], row["value"]) for page in pages for row in page.to_pylist()]
    rows = len(read_here)
    assert [key for key, _ in read_here] == [key for key, _ in sent[:rows]]
    assert images(read_here) == images(sent[:rows])
    lost = {column(name) for name in LOST_IN_CHANGES}
    updated = images(sent[rows:])
    assert all(row[name] is None for row in updated for name in lost)
    wanted = [row | dict.fromkeys(lost) for row in images(read_here)]
    assert updated == wanted


def test_values_that_the_connector_loses_are_reported(
    spark: SparkSession, postgres: Postgres, connector: Connector
) -> None:
    snapshot = images(connector.wait("public.lossy", len(LOST)))
    for row, (name, (_, _, loss)) in zip(snapshot, LOST.items(), strict=True):
        assert row[name] == loss
        assert row["bits"] is None
        assert not row.keys() & NEVER_SENT.keys()
    # The connector says nothing of an array of bits, and its words for it are not known.
    unsent = dict.fromkeys(NEVER_SENT, "string") | {"bits": "array<binary>"}
    source = SOURCE.model_copy(
        update={
            "table": "public.lossy",
            "columns": tuple(
                Column(name=name, type=kind) for name, kind in (DECLARED_LOST | unsent).items()
            ),
        }
    )
    rows = read_rows(spark, source, dsn=postgres.dsn, max_bytes=MOST_BYTES)
    assert {name for name, _ in rows.unread} == unsent.keys()
    found = {row["id"]: row["__problem"] for row in rows.typed.select("id", "__problem").collect()}
    rejected = {list(LOST)[at]: why["detail"] for at, why in found.items() if why is not None}
    assert rejected == {name: name for name in ("before_christ", "endless", "nested", "no_number")}


def test_a_value_that_cannot_be_converted_leaves_its_row_out_of_the_stack_s_own_connect(
    postgres: Postgres, shop: psycopg.Connection[Any], tmp_path: Path
) -> None:
    shop.execute("CREATE TABLE torn (id INT PRIMARY KEY, numbers NUMERIC[], bits BIT(3)[])")
    rows = b"INSERT INTO torn VALUES (%d, '{1.50,NaN}'), (%d, '{2}'), (%d, '{1}')"
    bits = b"UPDATE torn SET bits = '{101}' WHERE id = %d"
    shop.execute(rows % (1, 2, 3))
    shop.execute(bits % 2)
    try:
        with running_connector(postgres, ["public.torn"], slot="torn", state=tmp_path) as running:
            assert [row["id"] for row in images(running.wait("public.torn", 1))] == [3]
            shop.execute(rows % (4, 5, 6))
            shop.execute(bits % 5)
            shop.execute("INSERT INTO torn VALUES (7)")
            # In the snapshot, and in changes: of 5 what was sent stands.
            assert [row["id"] for row in images(running.wait("public.torn", 4))] == [3, 5, 6, 7]
    finally:
        shop.execute("DROP TABLE torn")


def test_silver_equals_the_database(
    spark: SparkSession, postgres: Postgres, sent: list[Record], tmp_path: Path
) -> None:
    snapshot = sent[: len(sent) // 2]
    silver = replace(applier(Lake(str(tmp_path)), SOURCE, SILVER), max_bytes=MOST_BYTES)
    silver.tables.create(spark, SOURCE)
    batch = silver.apply(bronze(spark, snapshot), 0)
    assert batch is not None
    assert (batch.applied, batch.quarantined) == (len(snapshot), 0)
    table = read(spark, silver.tables.table)
    found = compare_with_source(
        spark, table, SOURCE, SILVER, dsn=postgres.dsn, max_bytes=MOST_BYTES
    )
    assert found.equal, found.examples


def test_changes_of_a_table_without_a_key_are_quarantined_each(
    spark: SparkSession, shop: psycopg.Connection[Any], connector: Connector, tmp_path: Path
) -> None:
    connector.wait("public.keyless", 2)
    shop.execute("INSERT INTO keyless VALUES (2, 'y')")
    shop.execute("UPDATE keyless SET b = 'z' WHERE a = 2")
    shop.execute("DELETE FROM keyless WHERE a = 2")
    # A tombstone follows the deletion here too.
    records = connector.wait("public.keyless", 6)
    columns = (Column(name="a", type="int"), Column(name="b", type="string"))
    source = SOURCE.model_copy(update={"keys": ("a", "b"), "columns": columns})
    entry = SILVER.model_copy(
        update={
            "keys": ("a", "b"),
            "columns": columns,
            "projection": "SELECT s.a, s.b FROM source AS s",
        }
    )
    silver = replace(applier(Lake(str(tmp_path)), source, entry), max_bytes=MOST_BYTES)
    silver.tables.create(spark, source)
    assert counts(silver.apply(bronze(spark, records), 0)) == {"quarantined": 5, "ignored": 1}
    [found] = rejections("keyless", silver.tables.quarantine)
    assert (found.reason, found.records) == ("KEYLESS_CHANGE", 5)


@pytest.mark.parametrize("name", ["character(4)", "every scalar"])
def test_a_row_that_the_database_has_is_not_deleted(
    spark: SparkSession, postgres: Postgres, sent: list[Record], name: str
) -> None:
    scalars = tuple(one.name for one in SOURCE.columns[1:] if not nested(one.type))
    keys = scalars if name == "every scalar" else (column(name),)
    keyed = SOURCE.model_copy(update={"keys": keys})
    snapshot = sent[: len(sent) // 2]
    frame = bronze(spark, [(_key(value, keys), value) for _, value in snapshot])
    gone = missed_deletions(spark, frame, keyed, dsn=postgres.dsn, max_bytes=MOST_BYTES)
    assert list(gone.rows) == []


def _key(value: bytes | None, names: tuple[str, ...]) -> bytes:
    after = json.loads(value or b"")["after"]
    return json.dumps({name: after[name] for name in names}).encode()
