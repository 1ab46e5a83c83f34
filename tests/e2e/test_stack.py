"""The stack comes up, stays up and goes down, whatever happens to it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from spark_jobs.access.secrets import UNAVAILABLE_VALUE
from spark_jobs.local.connect import client, wait_until_running
from spark_jobs.local.environment import stack_environment
from spark_jobs.local.errors import PartFailedError, PortsTakenError
from spark_jobs.local.kafka import admin, ensure_topics
from spark_jobs.local.ports import LOOPBACK
from spark_jobs.local.postgres import dsn
from spark_jobs.local.session import SessionRecord
from tests.e2e.running import TIDEMARK, kill

LOOPBACK_ADDRESSES = {LOOPBACK, "::1", f"::ffff:{LOOPBACK}"}


def test_a_second_start_changes_nothing(small_stack):
    small_stack.stack.down()
    first = small_stack.up("postgres", "kafka")
    pids = [one.pid for one in small_stack.stack.status(["postgres", "kafka"])]
    second = small_stack.up("postgres", "kafka")
    assert not first.already_up
    assert second.already_up
    assert [one.pid for one in small_stack.stack.status(["postgres", "kafka"])] == pids


def test_two_starts_at_the_same_time_make_one_stack(small_stack):
    small_stack.stack.down()
    starts = [
        subprocess.Popen(
            [TIDEMARK, "stack", "up", "--parts", "postgres"],
            env=stack_environment(small_stack.settings),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [start.communicate(timeout=120)[0] for start in starts]
    assert [start.returncode for start in starts] == [0, 0]
    assert sorted("already up" in output for output in outputs) == [False, True]


def test_what_was_stored_is_there_after_a_restart(small_stack):
    small_stack.up("postgres", "kafka")
    ensure_topics(small_stack.settings, ["kept"], partitions=2)
    url = dsn(small_stack.settings, database="shop", role="shop")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    assert small_stack.stack.down()
    assert not small_stack.stack.pids()
    assert not small_stack.stack.down()
    small_stack.up("postgres", "kafka")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT one FROM kept").fetchall() == [(1,)]
    topics = admin(small_stack.settings).list_topics(timeout=5).topics
    assert len(topics["kept"].partitions) == 2


def test_changed_settings_restart_what_runs(small_stack):
    small_stack.up("postgres")
    settings = small_stack.settings
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
    moved = settings.model_copy(
        update={"ports": settings.ports.model_copy(update={"postgres": port})}
    )
    type(small_stack)(moved).up("postgres")
    with psycopg.connect(dsn(moved, database="shop", role="shop")) as connection:
        assert connection.info.port == port


def test_every_taken_port_is_told_before_anything_starts(small_stack):
    small_stack.stack.down()
    ports = small_stack.settings.ports
    with (
        socket.create_server((LOOPBACK, ports.kafka)),
        socket.create_server((LOOPBACK, ports.postgres)),
        pytest.raises(PortsTakenError) as caught,
    ):
        small_stack.up("postgres", "kafka")
    assert {one.port for one in caught.value.taken} == {ports.kafka, ports.postgres}
    assert not small_stack.stack.pids()


def test_a_stack_that_died_half_way_is_cleaned_up_and_started(small_stack):
    small_stack.up("postgres", "kafka")
    record = SessionRecord.read(small_stack.stack.supervisor.record)
    before = {one.pid for one in small_stack.stack.status(["postgres", "kafka"])}
    kill(record.pid)
    assert before <= small_stack.stack.pids()
    started = small_stack.up("postgres", "kafka")
    assert before <= set(started.left_over)
    assert not before & small_stack.stack.pids()
    assert all(one.ready for one in small_stack.stack.status(["postgres", "kafka"]))


def test_down_stops_a_stack_whose_supervisor_was_killed(small_stack):
    small_stack.up("postgres")
    kill(SessionRecord.read(small_stack.stack.supervisor.record).pid)
    assert small_stack.stack.down()
    assert not small_stack.stack.pids()


def test_a_part_that_cannot_start_is_told_with_its_log(small_stack):
    small_stack.up("kafka")
    small_stack.stack.down()
    meta = small_stack.settings.state / "kafka" / "data" / "meta.properties"
    right = meta.read_text()
    meta.write_text(right.replace("node.id=1", "node.id=7"))
    with pytest.raises(PartFailedError) as caught:
        small_stack.up("kafka")
    small_stack.stack.down()
    meta.write_text(right)
    assert caught.value.part == "kafka"
    assert "node.id" in caught.value.detail or "node id" in caught.value.detail.lower()


def test_a_killed_database_comes_back(stack):
    # A connector that starts just then fails, and waits for a person.
    with client(stack.settings) as api:
        wait_until_running(api)
    pid = stack.kill("postgres")
    stack.wait_restarted("postgres", pid)
    assert stack.part("postgres").restarts > 0
    stack.wait_ready()


def test_everything_serves(stack):
    assert {one.part: one.lacks for one in stack.stack.status() if not one.ready} == {}
    shown = stack.tidemark("stack", "status", "--json")
    assert all(one["ready"] for one in json.loads(shown.stdout))


def test_everything_listens_on_loopback_only(stack):
    found = {}
    for pid in stack.stack.pids():
        try:
            process = psutil.Process(pid)
            for one in process.net_connections("inet"):
                if one.status == psutil.CONN_LISTEN:
                    found[one.laddr.port] = (one.laddr.ip, process.name())
        except psutil.NoSuchProcess:
            continue
    ports = stack.settings.ports
    assert {ports.postgres, ports.kafka, ports.connect, ports.spark_connect} <= set(found)
    assert {port: one for port, one in found.items() if one[0] not in LOOPBACK_ADDRESSES} == {}


def test_no_secret_is_in_a_command_line_or_a_log(stack):
    files = [one for one in stack.settings.secrets_dir.rglob("*") if one.is_file()]
    # Connect's log shows the placeholder, and so does every record that holds it: it opens nothing.
    files = [one for one in files if one.name != Path(UNAVAILABLE_VALUE).name]
    secrets = [one.read_text().strip() for one in files if one.suffix != ".json"]
    secrets = [one for one in secrets if "BEGIN CERTIFICATE-----" not in one[:40]]
    lines = []
    for pid in stack.stack.pids():
        with suppress(psutil.NoSuchProcess):
            lines.append(" ".join(psutil.Process(pid).cmdline()))
    lines += [log.read_text(errors="replace") for log in stack.stack.supervisor.logs.iterdir()]
    assert secrets
    assert not [text[:200] for text in lines for secret in secrets if secret in text]


def test_the_connector_is_registered_and_runs(stack):
    with client(stack.settings) as api:
        # A worker that was killed gives its task out again; that takes a moment.
        wait_until_running(api)
        status = api.get("/connectors/shop/status").json()
    assert [one["state"] for one in (status["connector"], *status["tasks"])] == ["RUNNING"] * 2


def test_debezium_may_read_the_shop_and_nothing_else(stack):
    settings = stack.settings
    name = f"grants_{time.time_ns()}"
    with psycopg.connect(dsn(settings, database="shop", role="shop")) as connection:
        connection.execute(f"CREATE TABLE {name} AS SELECT 1 AS one")
    with psycopg.connect(dsn(settings, database="shop", role="debezium")) as connection:
        assert connection.execute(f"SELECT one FROM {name}").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"INSERT INTO {name} VALUES (2)")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(dsn(settings, database="airflow", role="debezium"))
