"""New sources reach a view by plan and apply alone, and no other part is disturbed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.cli.plan import CHANGES
from spark_jobs.names import Layer, TableName
from spark_jobs.stack.postgres import dsn
from spark_jobs.storage.lake import Lake
from tests.e2e.running import QUICK, RunningStack, new_stack, write_files

GOLD = "/* gold\ndescription: Of a test.\nowner: tests\nrefresh: {}\n*/\n"
SILVER = "/* silver\ndescription: Of a test.\n*/\n"
DEBEZIUM = """\
format: debezium
topic: shop.public.{name}
table: public.{name}
keys: [id]
columns: {{id: {{type: BIGINT, required: true}}, amount: BIGINT}}
"""
BASE = {
    "sources/accounts.yml": DEBEZIUM.format(name="accounts"),
    "sql/silver/accounts.sql": SILVER + "SELECT id, amount FROM bronze.accounts\n",
    "sql/gold/accounts_now.sql": GOLD.format("continuous")
    + "SELECT a.id, a.amount FROM silver.accounts AS a\n",
}
MORE = {
    "sources/tellers.yml": DEBEZIUM.format(name="tellers"),
    "sql/silver/tellers.sql": SILVER + "SELECT id, amount FROM bronze.tellers\n",
    "sources/visits.yml": """\
format: json
topic: visits
event_id: id
event_time: at
columns: {id: STRING, teller: BIGINT, at: TIMESTAMP}
""",
    "sql/silver/visits.sql": SILVER + "SELECT id, teller, at FROM bronze.visits\n",
    "sql/gold/teller_visits.sql": GOLD.format("continuous")
    + """\
SELECT t.id, t.amount, COUNT(v.id) AS visits
FROM silver.tellers AS t
LEFT JOIN silver.visits AS v ON v.teller = t.id
GROUP BY ALL
""",
}
PARTS = ("postgres", "kafka", "connect", "streams")
ROWS = 50
SECONDS = 180


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """Capture and the streams, for a project that grows."""
    project = tmp_path_factory.mktemp("deployed")
    write_files(project, BASE)
    with new_stack(project, streams=QUICK) as running:
        running.up("postgres")
        with database(running) as connection:
            for name in ("accounts", "tellers"):
                connection.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, amount BIGINT)")
            fill(connection, "accounts")
            fill(connection, "tellers")
        running.up(*PARTS)
        yield running


def database(running: RunningStack) -> psycopg.Connection:
    return psycopg.connect(dsn(running.settings, database="shop", role="shop"), autocommit=True)


def fill(connection: psycopg.Connection, table: str) -> None:
    connection.execute(f"INSERT INTO {table} SELECT i, 10 * i FROM generate_series(1, {ROWS}) AS i")


def published(running: RunningStack, view: str) -> list[dict]:
    location = Lake(running.settings.lake).location(TableName(Layer.GOLD, view))
    return DeltaTable(location).to_pyarrow_table().to_pylist()


def processes(running: RunningStack) -> dict[str, int | None]:
    return {name: running.part(name).pid for name in PARTS}


def send(running: RunningStack, number: int) -> None:
    access = kafka_access(running.settings, Principal.LOADER)
    producer = Producer(access.librdkafka())
    for at in range(number):
        event = {"id": f"v{at}", "teller": 1 + at % 5, "at": "2026-01-01T00:00:00Z"}
        producer.produce("visits", json.dumps(event).encode())
    assert producer.flush(30) == 0


def test_new_sources_reach_a_view_and_nothing_else_is_restarted(shop: RunningStack) -> None:
    before = processes(shop)
    # The files alone change nothing.
    write_files(Path(shop.settings.project_dir), MORE)
    planned = shop.tidemark("plan", "--json", check=False)
    plan = json.loads(planned.stdout)
    assert planned.returncode == CHANGES, planned.stderr
    assert "snapshot tellers" in plan["steps"]
    with database(shop) as connection:
        # Changes flow while the rows from before are read.
        connection.execute("UPDATE tellers SET amount = -1 WHERE id = 7")
        began = time.monotonic()
        applied = shop.tidemark("apply", "--yes", check=False, seconds=600)
        assert applied.returncode == 0, applied.stdout + applied.stderr
        print(f"applied in {time.monotonic() - began:.0f} s")
        print(applied.stderr)
        connection.execute("UPDATE tellers SET amount = -2 WHERE id = 8")
        connection.execute("DELETE FROM tellers WHERE id = 9")
        expected = dict(connection.execute("SELECT id, amount FROM tellers").fetchall())
    send(shop, 20)
    wanted = {id_: (amount, 4 if id_ <= 5 else 0) for id_, amount in expected.items()}
    deadline = time.monotonic() + SECONDS
    found: dict[int, tuple[int, int]] = {}
    while found != wanted and time.monotonic() < deadline:
        rows = published(shop, "teller_visits")
        found = {row["id"]: (row["amount"], row["visits"]) for row in rows}
        time.sleep(1)
    assert found == wanted
    assert processes(shop) == before
    assert shop.tidemark("plan", check=False).returncode == 0
    assert shop.tidemark("stack", "up", "--parts", ",".join(PARTS)).returncode == 0
    assert processes(shop) == before


def test_a_source_without_a_table_is_refused_before_anything_is_done(shop: RunningStack) -> None:
    project = Path(shop.settings.project_dir)
    write_files(
        project,
        {
            "sources/nothing.yml": DEBEZIUM.format(name="nothing"),
            "sql/silver/nothing.sql": SILVER + "SELECT id FROM bronze.nothing\n",
        },
    )
    refused = shop.tidemark("apply", "--yes", check=False)
    (project / "sources/nothing.yml").unlink()
    (project / "sql/silver/nothing.sql").unlink()

    assert refused.returncode == 1
    assert "SOURCE_TABLE_MISSING" in refused.stderr
    assert shop.tidemark("plan", check=False).returncode == 0
