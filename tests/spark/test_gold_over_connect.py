"""The command line against a real Spark Connect server: refresh, kill, hold, verify.

The project holds nothing but a foreign Delta table and SQL; no Kafka and no Airflow is near.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.access.secrets import CONNECT_TOKEN, read_secret, token_file
from spark_jobs.gold.recover import release, rollback
from spark_jobs.gold.refresh.steps import FAILPOINTS
from spark_jobs.graph.query import QueryNotReadOnlyError
from spark_jobs.sections import Ports
from spark_jobs.serving.sql.query import PinnedQuery, run_query
from spark_jobs.settings import REPOSITORY, Settings, load_settings
from spark_jobs.silver.check.source_rows import as_bronze
from spark_jobs.stack.secrets import write_secret
from spark_jobs.stack.spark_connect import spark_connect_part
from spark_jobs.state.failpoints import EXIT_CODE
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log
from spark_jobs.storage.guard import AllowedTable, Policy
from spark_jobs.storage.session import remote_session
from tests.e2e import doors
from tests.spark.apart import apart
from tests.spark.exploits import HIDDEN, PLAIN

START_SECONDS = 240
# Each kill takes two processes: `make test` has the one after which most is done and not recorded.
KILLED = ("gold.publish.committed",)
SOURCE = """description: Parcels that a partner writes.
format: delta
location: data/parcels
columns: {city: STRING, weight: "DECIMAL(9,2)"}
"""
HEADER = "/* gold\ndescription: {}\nowner: tests\nrefresh: bulk\nstrategy: incremental\n*/\n"
BY_CITY = "SELECT p.city AS city, COUNT(*) AS parcels FROM bronze.parcels AS p GROUP BY ALL\n"
CITIES = "SELECT COUNT(*) AS cities FROM gold.by_city AS c\n"
BY_DAY = """SELECT DATE '2026-01-01' AS day, p.city AS city, COUNT(*) AS parcels
FROM bronze.parcels AS p
GROUP BY ALL
"""
AT_MOST_TWO = {
    "name": "by_city",
    "expectations": [
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "parcels", "max_value": 2},
            "severity": "critical",
        }
    ],
}


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


@dataclass(frozen=True)
class Server:
    """Where a server listens, with the rights that a part of the stack has, and its settings."""

    url: str
    settings: Settings
    pid: int

    @property
    def token(self) -> str:
        return read_secret(self.settings, CONNECT_TOKEN)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server as the local stack starts it, on ports of its own."""
    folder = tmp_path_factory.mktemp("connect")
    settings = load_settings(
        folder,
        state_dir=folder / "state",
        ports=Ports(spark_connect=free_port(), spark_ui=free_port()),
        spark={"master": "local[2]", "connect_memory": "1g"},
    )
    part = spark_connect_part(settings)
    part.prepare()
    with (folder / "server.log").open("w") as output:
        process = subprocess.Popen(
            part.command,
            env={**os.environ, **part.environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
            umask=0o077,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while (problem := part.probe()) is not None:
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < deadline, problem
            time.sleep(0.5)
        url = f"sc://127.0.0.1:{settings.ports.spark_connect}"
        yield Server(url, settings, process.pid)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclass(frozen=True)
class Answer:
    """What a command ended with."""

    status: int
    output: str
    errors: str

    @property
    def results(self) -> Any:
        assert self.output, self.errors
        return json.loads(self.output)


@dataclass(frozen=True)
class Project:
    """A project directory, worked on by its command line alone."""

    folder: Path
    url: str

    def tidemark(self, *words: str, failpoint: str = "", typed: str = "") -> Answer:
        program = "from spark_jobs.cli.main import run; run()"
        done = subprocess.run(
            [sys.executable, "-c", program, "--project", str(self.folder), *words],
            env={**os.environ, "TIDEMARK_SPARK__REMOTE": self.url, "TIDEMARK_FAILPOINT": failpoint},
            cwd=REPOSITORY,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    @property
    def settings(self) -> Settings:
        return load_settings(self.folder)

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def add(self, *cities: str | None) -> None:
        weights = pa.array([None] * len(cities), pa.decimal128(9, 2))
        rows = pa.table({"city": pa.array(cities, pa.string()), "weight": weights})
        feed = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(self.folder / "data/parcels", rows, mode="append", configuration=feed)

    @property
    def published(self) -> str:
        return str(self.folder / "state/lake/gold/by_city")

    def rows(self) -> list[dict[str, Any]]:
        found = DeltaTable(self.published).to_pyarrow_table().to_pylist()
        return sorted(found, key=lambda row: str(row["city"]))


@pytest.fixture
def project(tmp_path: Path, server: Server) -> Project:
    project = Project(tmp_path / "with space", server.url)
    project.write("tidemark.yml", "state_dir: state\n")
    write_secret(project.settings, CONNECT_TOKEN, server.token)
    project.write("sources/parcels.yml", SOURCE)
    project.write("sql/gold/by_city.sql", HEADER.format("Parcels per city.") + BY_CITY)
    project.write("sql/gold/cities.sql", HEADER.format("How many cities.") + CITIES)
    project.add("Bonn", None, None)
    return project


def test_views_are_refreshed_explained_and_verified(project: Project) -> None:
    refreshed = project.tidemark("refresh", "--all", "--json")
    assert refreshed.status == 0, refreshed.errors
    assert [(one["view"], one["status"]) for one in refreshed.results] == [
        ("by_city", "published"),
        ("cities", "published"),
    ]
    assert project.rows() == [{"city": "Bonn", "parcels": 1}, {"city": None, "parcels": 2}]
    explained = project.tidemark("explain", "--all", "--json").results
    assert {one["reason_code"] for one in explained} == {"NO_UPSTREAM_CHANGE"}
    verified = project.tidemark("verify", "--all", "--json")
    assert verified.status == 0, verified.errors
    assert [one["finding"] for one in verified.results] == ["EQUAL", "EQUAL"]
    shown = project.tidemark("explain", "by_city", "--sql")
    assert "VERSION AS OF 0" in shown.output


def test_the_server_is_asked_about_views_before_they_are_applied(project: Project) -> None:
    right = project.tidemark("validate")
    assert "2 gold views. Spark analyzed 2 views: 2 new, 0 cached." in right.output, right.errors
    select = f"SELECT p.city AS city, {'9' * 60} AS n FROM bronze.parcels AS p\n"
    project.write("sql/gold/long.sql", HEADER.format("A number that is too long.") + select)
    for words in (("validate",), ("plan",), ("apply", "--yes")):
        refused = project.tidemark(*words)
        told = refused.output + refused.errors
        assert refused.status == 1
        assert "sql/gold/long.sql:1:1: gold.long: Spark refuses the SQL: " in told
    with ControlStore.open(project.settings.control_url) as store:
        assert store.newest_deployment() is None

    # Nobody must have the server's token to validate.
    token_file(project.settings).unlink()
    unasked = project.tidemark("validate")
    assert unasked.status == 0
    assert "Spark was not asked about 1 view: " in unasked.errors


def write_as_client(server: Server, table: Path) -> None:
    """Write two versions of a table through the server."""
    spark = remote_session(server.settings, server.url)
    rows = spark.range(100).repartition(3).selectExpr("id", "id % 3 AS third")
    rows.write.format("delta").partitionBy("third").save(str(table))
    rows.write.format("delta").mode("append").save(str(table))


def test_others_may_read_the_tables_of_the_server_and_nothing_else_of_it(
    project: Project, server: Server
) -> None:
    table = project.folder / "written"
    apart(write_as_client, server, table)
    written = [table, *table.rglob("*")]
    assert [one for one in written if not one.stat().st_mode & stat.S_IROTH] == []
    shuffled = list((server.settings.state / "spark-local").rglob("shuffle_*"))
    assert shuffled
    assert [one for one in shuffled if one.stat().st_mode & 0o077] == []


def read_an_empty_source(server: Server) -> None:
    """A source table without rows has no Arrow batch, from which columns could be inferred."""
    spark = remote_session(server.settings, server.url)
    nothing = pa.table({"key": pa.array([], pa.binary()), "value": pa.array([], pa.binary())})
    assert as_bronze(spark, nothing).select("key", "offset").collect() == []


def test_a_source_table_without_rows_is_compared(server: Server) -> None:
    apart(read_an_empty_source, server)


def test_the_driver_s_own_ports_ask_for_a_login(server: Server) -> None:
    """Whoever is let in there runs code as the server does."""
    answers = doors.spark_ports(server.pid, known=server.settings.ports.spark_connect)
    # The driver's own, and the one of its blocks; its pages are off.
    assert list(answers.values()) == ["asks for a login"] * 2


@pytest.mark.parametrize("token", [None, "guessed"])
def test_a_missing_or_wrong_token_is_refused(project: Project, token: str | None) -> None:
    token_file(project.settings).unlink()
    if token:
        write_secret(project.settings, CONNECT_TOKEN, token)
    refused = project.tidemark("refresh", "by_city")
    assert refused.status != 0
    assert "refuses the call" in refused.errors
    assert not token or token not in refused.errors


def test_queries_do_no_more_than_read(project: Project, tmp_path: Path) -> None:
    output, parcels = tmp_path / "output", project.folder / "data/parcels"
    places = {"secret": tmp_path / "secret", "output": output, "table": parcels, "bronze": parcels}
    hidden = [sql.format(**places) for sql in HIDDEN.values()]
    right = "SELECT p.city, count(*) AS n FROM bronze.parcels AS p GROUP BY ALL"
    answer = project.tidemark("shell", typed="".join(f"{sql}\n;\n" for sql in [*hidden, right]))
    assert answer.errors.count("[SQL_SYNTAX]") == len(hidden), answer.errors
    assert "Bonn" in answer.output, answer.errors
    assert not output.exists()


def query_under_policy(server: Server, parcels: Path, folder: Path) -> None:
    """Every exploit is refused by the server itself, and what the policy names is read."""
    places = {"secret": folder, "output": folder / "output", "bronze": folder, "table": parcels}
    policy = Policy((AllowedTable(str(parcels), 0),))
    spark = remote_session(server.settings, server.url)
    for sql in PLAIN.values():
        if "VERSION AS OF" not in sql:
            query = PinnedQuery(sql.format(**places), policy=policy)
            with pytest.raises(QueryNotReadOnlyError):
                run_query(spark, query, limit=1, seconds=0)
    read = PinnedQuery(f"SELECT count(*) AS n FROM delta.`{parcels}`", policy=policy)
    assert run_query(spark, read, limit=1, seconds=0).rows.to_pylist() == [{"n": 3}]


def test_the_server_refuses_what_a_policy_does_not_allow(
    project: Project, server: Server, tmp_path: Path
) -> None:
    apart(query_under_policy, server, project.folder / "data/parcels", tmp_path)
    assert not (tmp_path / "output").exists()


@pytest.mark.long
def test_a_change_of_which_a_view_sees_nothing_is_followed(project: Project) -> None:
    joined = "FROM bronze.parcels AS p JOIN bronze.parcels AS q ON q.city = p.city"
    select = f"SELECT p.city AS city, q.weight AS weight {joined} WHERE p.city = 'Rome'\n"
    project.write("sql/gold/romans.sql", HEADER.format("Parcels to Rome.") + select)
    assert project.tidemark("refresh", "romans").status == 0
    project.add("Bonn")
    (followed,) = project.tidemark("refresh", "romans", "--json").results
    assert (followed["decision"], followed["status"]) == ("incremental", "published"), followed
    assert not followed["changed"]


@pytest.mark.parametrize(
    "name",
    [one if one in KILLED else pytest.param(one, marks=pytest.mark.long) for one in FAILPOINTS],
)
def test_a_process_that_is_killed_is_made_good_by_the_next(project: Project, name: str) -> None:
    killed = project.tidemark("refresh", "by_city", failpoint=name)
    assert killed.status == EXIT_CODE, killed.errors
    again = project.tidemark("refresh", "by_city", "--json")
    assert again.status == 0, again.errors
    assert len(project.rows()) == 2
    assert len(log.commits(project.published)) == 1


@pytest.mark.long
def test_a_blocked_view_keeps_its_content_and_stops_no_other(project: Project) -> None:
    assert project.tidemark("refresh", "--all").status == 0
    project.write("expectations/gold/by_city.json", json.dumps(AT_MOST_TWO))
    project.add("Bonn", "Bonn")
    blocked = project.tidemark("refresh", "--all", "--json")
    assert blocked.status == 1
    first, second = blocked.results
    assert (first["status"], first["error"]["condition"]) == ("blocked", "GATE_BLOCKED")
    assert "parcels" in first["error"]["primary"]
    assert second["reason_code"] == "NO_UPSTREAM_CHANGE"
    assert project.rows()[0] == {"city": "Bonn", "parcels": 1}


@pytest.mark.long
def test_the_same_command_continues_a_killed_release(project: Project) -> None:
    project.tidemark("refresh", "by_city")
    project.write("expectations/gold/by_city.json", json.dumps(AT_MOST_TWO))
    project.add("Bonn", "Bonn")
    assert project.tidemark("refresh", "by_city").status == 1
    command = ["release", "by_city", "--reason", "a test wants it"]
    for point in (*release.FAILPOINTS, "gold.publish.committed"):
        killed = project.tidemark(*command, failpoint=point)
        assert killed.status == EXIT_CODE, killed.errors
    again = project.tidemark(*command)
    assert again.status == 0, again.errors
    assert project.rows()[0] == {"city": "Bonn", "parcels": 3}
    assert len(log.commits(project.published)) == 2


@pytest.mark.long
def test_the_same_command_continues_a_killed_rollback(project: Project) -> None:
    project.tidemark("refresh", "by_city")
    project.add("Bonn")
    project.tidemark("refresh", "by_city")
    command = ["rollback", "by_city", "--to", "0", "--reason", "a test wants it"]
    for point in rollback.FAILPOINTS:
        killed = project.tidemark(*command, failpoint=point)
        assert killed.status == EXIT_CODE, (point, killed.errors)
    again = project.tidemark(*command)
    assert again.status == 0, again.errors
    assert project.rows()[0] == {"city": "Bonn", "parcels": 1}
    rules = [one.metadata["rule"] for one in log.commits(project.published) if one.metadata]
    assert rules.count("rollback") == 1


@pytest.mark.long
def test_the_same_command_continues_a_killed_replay_and_a_rollback_stays(
    project: Project,
) -> None:
    header = HEADER.format("Parcels per day.").replace(
        "strategy: incremental", "grain: [day, city]"
    )
    project.write("sql/gold/by_day.sql", header + BY_DAY)
    project.tidemark("refresh", "by_day")
    days = ["--from", "2026-01-01", "--to", "2026-01-03", "--chunk", "1 day"]
    command = ["replay", "by_day", *days, "--run", "--reason", "a test wants it", "--json"]
    killed = project.tidemark(*command, failpoint="gold.stage.piece_written")
    assert killed.status == EXIT_CODE, killed.errors
    again = project.tidemark(*command)
    assert again.status == 0, again.errors
    (row,) = again.results["progress"]
    assert (again.results["status"], row["status"]) == ("done", "published")
    assert (row["difference"]["leaving"], row["difference"]["entering"]) == (0, 0)
    back = project.tidemark("rollback", "by_day", "--to", "0", "--reason", "a test wants it")
    assert back.status == 0, back.errors
    (refreshed,) = project.tidemark("refresh", "by_day", "--force", "--json").results
    assert refreshed["reason_code"] == "VIEW_PINNED"
    commits = log.commits(str(project.folder / "state/lake/gold/by_day"))
    rules = [one.metadata["rule"] for one in commits if one.metadata]
    assert rules == ["rollback", "range", "full"]


@pytest.mark.long
def test_a_shell_reads_ops_and_outlives_a_query_that_is_stopped(project: Project) -> None:
    project.tidemark("refresh", "by_city")
    typed = """
    SELECT sum(r.id % 7) AS s FROM range(2000000000000) AS r;
    SELECT f.table_name, f.freshness FROM ops.freshness AS f;
    SELECT c.city, v.attempt_id FROM gold.by_city AS c LEFT JOIN ops.verdicts AS v ON FALSE;
    """
    answer = project.tidemark("shell", "--seconds", "12", typed=typed)
    assert answer.errors.count("QUERY_TIMED_OUT") == 1, answer.errors
    assert "stopped after 12 seconds" in answer.errors
    words = answer.output.replace("│", " ").split()
    assert words[words.index("gold.by_city") + 1] == "current", answer.output
    assert words[words.index("gold.cities") + 1] == "unpublished"
    assert "Bonn" in words, answer.errors
    assert answer.status == 1


def test_a_server_that_does_not_answer_is_named(project: Project) -> None:
    elsewhere = Project(project.folder, f"sc://127.0.0.1:{free_port()}")
    answer = elsewhere.tidemark("refresh", "by_city", "--json")
    assert answer.status == 1
    assert answer.results[0]["error"]["condition"] == "SPARK_UNREACHABLE"
    assert project.tidemark("refresh", "by_city").status == 0
