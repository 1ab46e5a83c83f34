"""What holds of a full stack that runs; and a database that is killed."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from spark_jobs.access.secrets import UNAVAILABLE_VALUE
from spark_jobs.stack.connect import client, wait_until_running
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.postgres import dsn
from tests.e2e import oracle

LOOPBACK_ADDRESSES = {LOOPBACK, "::1", f"::ffff:{LOOPBACK}"}


def test_a_killed_database_comes_back(stack):
    # A connector that connects at that moment fails; the streaming application restarts it.
    pid = stack.kill("postgres")
    stack.wait_restarted("postgres", pid)
    assert stack.part("postgres").restarts > 0
    stack.wait_ready()


def test_everything_serves(stack):
    assert {one.part: one.lacks for one in stack.stack.status() if not one.ready} == {}

    def shown() -> bool:
        # Airflow's heartbeats, which its health tells, come late after its database was away.
        told = stack.tidemark("stack", "status", "--json", check=False)
        parts = json.loads(told.stdout)
        assert told.returncode == int(not all(one["ready"] for one in parts))
        return told.returncode == 0

    oracle.wait_until(shown, seconds=120, what="the command line says that everything serves")


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
