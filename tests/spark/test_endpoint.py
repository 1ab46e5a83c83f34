"""The SQL endpoint as a process of its own, asked by Hive's beeline and by a client of DB-API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from impala.error import Error
from thrift.transport.TTransport import TTransportException

from spark_jobs.endpoint_sections import EndpointRole, EndpointSettings
from spark_jobs.sections import Ports
from spark_jobs.settings import load_settings
from spark_jobs.stack.endpoint import USER, endpoint_part
from spark_jobs.stack.endpoint_users import add_user, remove_user
from spark_jobs.storage import log
from spark_jobs.storage.compiled import compile_settings
from tests.spark.exploits import HIDDEN, PLAIN
from tests.spark.sql_client import SqlClient
from tests.spark.test_gold_over_connect import HEADER, SOURCE, free_port

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

START_SECONDS = 240
QUERY_SECONDS = 6
REFRESHES_SEEN = 10
BETWEEN_REFRESHES = 0.1
ROLES = {"other": EndpointRole(tables=("gold.other",))}
BY_CITY = """SELECT
  p.city AS city, -- Where they go.
  COUNT(*) AS parcels
FROM bronze.parcels AS p
GROUP BY ALL
"""
CITIES = "SELECT c.city AS city, length(c.city) AS letters FROM gold.by_city AS c\n"
SELF_JOIN = "FROM by_city AS a JOIN gold.by_city AS b USING (city)"


def by_city(client: SqlClient) -> str:
    return f"{client.settings.lake}/gold/by_city"


def declare(folder: Path, view: str, sql: str, description: str, *, marks: str = "") -> None:
    file = folder / "sql/gold" / f"{view}.sql"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(HEADER.format(f"{description}\n{marks}") + sql)


def publish(place: str, mode: Any = "append", **columns: list[Any]) -> None:
    write_deltalake(place, pa.table(columns), mode=mode)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlClient]:
    folder = tmp_path_factory.mktemp("endpoint with space")
    (folder / "sources").mkdir()
    (folder / "sources/parcels.yml").write_text(SOURCE)
    weight = pa.array([None], pa.decimal128(9, 2))
    write_deltalake(folder / "data/parcels", pa.table({"city": ["Bonn"], "weight": weight}))
    declare(folder, "by_city", BY_CITY, "How many parcels go to each city.")
    settings = load_settings(
        folder,
        state_dir=folder / "state",
        ports=Ports(endpoint=free_port()),
        endpoint=EndpointSettings(query_seconds=QUERY_SECONDS, roles=ROLES),
    )
    publish(f"{settings.lake}/gold/by_city", city=["Bonn"], parcels=[3])
    part = endpoint_part(settings)
    part.prepare()
    with (folder / "server.log").open("w") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from spark_jobs.cli.main import run; run()",
                "endpoint",
                "--foreground",
            ],
            env={
                **os.environ,
                **part.environment,
                "TIDEMARK_PROJECT": str(folder),
                "TIDEMARK_STATE_DIR": str(settings.state),
                "TIDEMARK_PORTS__ENDPOINT": str(settings.ports.endpoint),
                "TIDEMARK_ENDPOINT__QUERY_SECONDS": str(QUERY_SECONDS),
                "TIDEMARK_ENDPOINT__ROLES": json.dumps({"other": {"tables": ["gold.other"]}}),
                "TIDEMARK_SPARK__MASTER": "local[2]",
            },
            cwd=folder,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while (problem := part.probe()) is not None:
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < deadline, problem
            time.sleep(0.5)
        yield SqlClient(settings)
        left = {one.name for one in folder.iterdir()}
        assert left == {"data", "server.log", "sources", "sql", "state"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (folder / "server.log").read_text()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_jdbc_client_finds_tables_reads_them_and_cannot_write(client: SqlClient) -> None:
    version = log.table_version(by_city(client))
    asked = client.beeline(
        "!tables",
        "DESCRIBE gold.by_city;",
        "USE gold;",
        f"SELECT a.city, a.parcels + b.parcels {SELF_JOIN};",
        "SELECT parcels FROM by_city VERSION AS OF 0 AS b;",
        "INSERT INTO gold.by_city VALUES ('Berlin', 1);",
    )
    # What beeline would ask a person stands before the answers.
    cells = [line.rpartition("> ")[2].split("\t") for line in asked.stdout.splitlines()]
    assert ["city", "string", "Where they go."] in cells, asked
    assert ["Bonn", "6"] in cells, asked
    assert ["3"] in cells, asked
    listed = [line for line in cells if "by_city" in line and "gold" in line]
    assert "How many parcels go to each city." in listed[0], asked
    assert "QUERY_NOT_READ_ONLY" in asked.stderr, asked
    assert log.table_version(by_city(client)) == version


def test_a_wrong_password_is_refused(client: SqlClient) -> None:
    client.knock(USER, client.password)
    with pytest.raises(TTransportException, match="Error validating the login"):
        client.knock(USER, "guessed")


def test_each_user_reads_what_the_role_grants(client: SqlClient) -> None:
    reader = replace(client, user="ada", own_password=add_user(client.settings, "ada", "other"))
    assert reader.rows("SELECT 1 AS one") == [(1,)]
    query = "SELECT c.city FROM gold.by_city AS c"
    assert "[TABLE_NOT_GRANTED]" in reader.refusal(query)
    assert "[TABLE_NOT_GRANTED]" in reader.refusal("SELECT * FROM ops.freshness")
    assert "[UNKNOWN_TABLE]" in reader.refusal("DESCRIBE gold.by_city")
    # Sessions side by side keep their users, whichever thread opened one last.
    with reader.cursor() as theirs, client.cursor() as ours:
        with pytest.raises(Error, match="TABLE_NOT_GRANTED"):
            theirs.execute(query)
        ours.execute(query)
        assert ours.fetchall()
        with pytest.raises(Error, match="TABLE_NOT_GRANTED"):
            theirs.execute(query)
        remove_user(client.settings, "ada")
        with pytest.raises(Error, match="USER_UNKNOWN"):
            theirs.execute("SELECT 1 AS one")
    with pytest.raises(TTransportException, match="Error validating the login"):
        client.knock("ada", reader.password)


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("DELETE FROM gold.by_city", "QUERY_NOT_READ_ONLY"),
        ("DROP VIEW gold.by_city", "QUERY_NOT_READ_ONLY"),
        ("CREATE TEMPORARY VIEW x AS SELECT 1", "QUERY_NOT_READ_ONLY"),
        ("CREATE FUNCTION f AS 'java.lang.String' USING JAR '/tmp/x.jar'", "QUERY_NOT_READ_ONLY"),
        ("ADD JAR '/tmp/x.jar'", "QUERY_NOT_READ_ONLY"),
        ("BEGIN DROP VIEW gold.by_city; END", "QUERY_NOT_READ_ONLY"),
        ("EXECUTE IMMEDIATE 'DROP VIEW gold.by_city'", "QUERY_NOT_READ_ONLY"),
        ("SET spark.sql.thriftServer.queryTimeout=0", "SETTING_REFUSED"),
        ("SELECT * FROM bronze.parcels", "UNKNOWN_TABLE"),
        ("DESCRIBE delta.`/lake`", "UNKNOWN_TABLE"),
        ("DESCRIBE IDENTIFIER('delta.' || '`/lake`')", "QUERY_NOT_READ_ONLY"),
        ("SHOW COLUMNS IN IDENTIFIER(concat('gold', '.by_city'))", "QUERY_NOT_READ_ONLY"),
        ("SHOW TABLES IN global_temp", "SCHEMA_UNKNOWN"),
    ],
)
def test_nothing_but_reading_is_done(client: SqlClient, statement: str, condition: str) -> None:
    assert f"[{condition}]" in client.refusal(statement)


@pytest.mark.parametrize("name", HIDDEN)
def test_statements_hidden_in_comments_are_refused(
    client: SqlClient, tmp_path: Path, name: str
) -> None:
    secret, output = tmp_path / "secret", tmp_path / "output"
    secret.write_text("a secret")
    bronze = client.settings.project_dir / "data/parcels"
    places = {"secret": secret, "output": output, "table": by_city(client), "bronze": bronze}
    for sql in (HIDDEN[name].format(**places), f"EXPLAIN {HIDDEN[name].format(**places)}"):
        refusal = client.refusal(sql)
        assert "[SQL_SYNTAX]" in refusal or "[QUERY_NOT_READ_ONLY]" in refusal, refusal
    assert not output.exists()


# Clients may ask the endpoint for the names of tables, and get those that it serves.
@pytest.mark.parametrize("name", [one for one in PLAIN if one != "names"])
def test_the_same_statements_without_comments_are_refused(
    client: SqlClient, tmp_path: Path, name: str
) -> None:
    output = tmp_path / "output"
    places = {"secret": tmp_path, "output": output, "table": by_city(client), "bronze": tmp_path}
    client.refusal(PLAIN[name].format(**places))
    assert not output.exists()


@pytest.mark.parametrize(
    "bomb",
    [
        "SELECT size(sequence(1, 300000000)) AS n",
        "SELECT size(sequence(1, 300000000 + r.id)) AS n FROM range(1) AS r",
        "SELECT size(collect_list(repeat('x', 10000))) AS n FROM range(2000000) AS r",
    ],
)
def test_a_statement_without_memory_ends_and_the_server_does_not(
    client: SqlClient, bomb: str
) -> None:
    assert client.refusal(bomb)
    assert client.rows("SELECT 1 AS one") == [(1,)]
    assert client.rows("SELECT parcels FROM gold.by_city") == [(3,)]


def test_the_schemas_and_a_sample_of_a_table_are_shown(client: SqlClient) -> None:
    assert {("silver",), ("gold",), ("ops",)} <= {*client.rows("SHOW SCHEMAS")}
    assert client.rows("SHOW DATABASES LIKE 'gol*'") == [("gold",)]
    sample = "SELECT by_city.parcels FROM gold.by_city TABLESAMPLE (3 ROWS)"
    assert client.rows(sample) == [(3,)]


def test_a_connection_brings_no_settings(client: SqlClient) -> None:
    brought = {"set:hiveconf:spark.sql.ansi.enabled": "false"}
    assert "'spark.sql.ansi.enabled'" in client.refusal("SELECT 1", **brought)
    assert client.refusal("SELECT 1", **{"set:system:a.property": "x"})
    (row,) = client.rows("SELECT '${env:HOME}', '${system:user.home}'")
    assert row == ("${env:HOME}", "${system:user.home}")
    zone = {"set:hiveconf:spark.sql.session.timeZone": "Asia/Tokyo"}
    assert client.rows("SELECT date_format(TIMESTAMP '2024-01-01 00:00:00Z', 'HH')", **zone) == [
        ("09",)
    ]


def test_ops_tables_show_the_freshness(client: SqlClient) -> None:
    question = "SELECT f.table_name, f.freshness FROM ops.freshness AS f"
    assert ("gold.by_city", "unpublished") in client.rows(question)
    assert ("freshness",) in [row[1:2] for row in client.rows("SHOW TABLES IN ops")]


def test_personal_data_is_masked_below_the_query(client: SqlClient) -> None:
    declare(client.settings.project_dir, "people", BY_CITY, "Who.", marks="pii: [city, parcels]")
    compile_settings(client.settings)
    place = f"{client.settings.lake}/gold/people"
    for parcels in (3, 4):
        publish(place, city=["Ann"], parcels=[parcels])
    assert client.rows("SELECT * FROM gold.people AS p") == [("***", None)] * 2
    assert client.rows("SELECT p.parcels FROM gold.people AS p WHERE p.city = 'Ann'") == []
    joined = "SELECT p.parcels FROM gold.people AS p JOIN gold.people AS q ON p.parcels = q.parcels"
    assert client.rows(joined) == []
    older = "SELECT p.city FROM gold.people VERSION AS OF 0 AS p"
    assert "[MASKED_VERSION]" in client.refusal(older)


def test_a_query_that_works_for_too_long_is_stopped(client: SqlClient) -> None:
    endless = "SELECT sum(r.id % 7) AS s FROM range(200000000000) AS r"
    assert f"a query may run for {QUERY_SECONDS} seconds" in client.refusal(endless)
    assert client.rows("SELECT 1 AS one") == [(1,)]


def test_a_query_of_many_short_jobs_is_stopped(client: SqlClient) -> None:
    # A job for each partition of the result, and for each branch.
    short = "SELECT r.id FROM range(0, {rows}, 1, {parts}) AS r WHERE r.id % 7 = 9"
    many = short.format(rows=100_000_000_000, parts=1000)
    branches = " UNION ALL ".join([short.format(rows=200_000_000, parts=1)] * 200)
    for statement in (many, branches):
        started = time.monotonic()
        assert f"a query may run for {QUERY_SECONDS} seconds" in client.refusal(statement)
        assert time.monotonic() - started < 5 * QUERY_SECONDS
    assert client.rows("SELECT 1 AS one") == [(1,)]


def test_a_version_that_was_removed_is_an_error(client: SqlClient) -> None:
    declare(client.settings.project_dir, "kept", BY_CITY, "Kept for a while.")
    compile_settings(client.settings)
    place = f"{client.settings.lake}/gold/kept"
    publish(place, city=["old"], parcels=[1])
    (gone,) = DeltaTable(place).file_uris()
    publish(place, mode="overwrite", city=["new"], parcels=[2])
    Path(unquote(gone)).unlink()
    rows = "SELECT k.city FROM gold.kept VERSION AS OF {} AS k"
    assert client.rows(rows.format(1)) == [("new",)]
    assert "FILE_NOT_EXIST] " in (told := client.refusal(rows.format(0)))
    assert "gold/kept/" in told
    assert "Cannot time travel Delta table to version 9" in client.refusal(rows.format(9))


def test_readers_see_one_refresh_or_the_next_and_never_wait_for_it(client: SqlClient) -> None:
    place, stop = f"{client.settings.lake}/gold/moving", threading.Event()
    declare(client.settings.project_dir, "moving", BY_CITY, "Moves.")
    compile_settings(client.settings)
    publish(place, city=["a", "b"], parcels=[0, 0])

    def refresh() -> int:
        number = 0
        while not stop.wait(BETWEEN_REFRESHES):
            number += 1
            publish(place, mode="overwrite", city=["a", "b"], parcels=[number, number])
        return number

    join = "SELECT a.parcels, b.parcels FROM gold.moving AS a JOIN gold.moving AS b"
    seen: list[tuple[int, int]] = []
    with ThreadPoolExecutor(max_workers=1) as pool, client.cursor() as cursor:
        writer = pool.submit(refresh)
        try:
            # One read after the other, without a pause, until enough refreshes were seen.
            while len(set(seen)) < REFRESHES_SEEN:
                assert not writer.done(), writer.result()
                cursor.execute(f"{join} ON a.city = 'a' AND b.city = 'b'")
                seen += cursor.fetchall()
        finally:
            stop.set()
    assert all(left == right for left, right in seen), seen
    assert seen == sorted(seen), "a reader went back to an older refresh"
    assert writer.result() >= REFRESHES_SEEN - 1


def test_a_view_declared_at_run_time_appears(client: SqlClient) -> None:
    declare(client.settings.project_dir, "cities", CITIES, "The cities.")
    compile_settings(client.settings)
    assert "[TABLE_NOT_WRITTEN]" in client.refusal("SELECT * FROM gold.cities")
    publish(f"{client.settings.lake}/gold/cities", city=["Bonn"], letters=[4])
    assert client.rows("SELECT c.letters FROM gold.cities AS c") == [(4,)]
    deadline = time.monotonic() + 60
    while ("letters", "bigint", "") not in (shown := described(client, "cities")):
        assert time.monotonic() < deadline, shown
        time.sleep(0.5)


def described(client: SqlClient, view: str) -> list[tuple[Any, ...]]:
    with suppress(Error):
        return [
            (name, kind, text or "") for name, kind, text in client.rows(f"DESCRIBE gold.{view}")
        ]
    return []
