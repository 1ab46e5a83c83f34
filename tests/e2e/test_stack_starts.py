"""A stack comes up, goes down and is found again, whatever happened before."""

from __future__ import annotations

import socket
import subprocess

import psycopg
import pytest

from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.errors import PartFailedError, PortsTakenError, RestartNeededError
from spark_jobs.stack.kafka import admin, ensure_topics
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.postgres import dsn
from spark_jobs.stack.session import SessionRecord
from spark_jobs.stack.stack import Stack
from tests.e2e.running import TIDEMARK, kill


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


def test_changed_settings_restart_parts_only_on_request(small_stack):
    small_stack.up("postgres")
    settings = small_stack.settings
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
    moved = settings.model_copy(
        update={"ports": settings.ports.model_copy(update={"postgres": port})}
    )
    with pytest.raises(RestartNeededError) as needed:
        type(small_stack)(moved).up("postgres")
    assert "ports.postgres" in needed.value.differing
    with psycopg.connect(dsn(settings, database="shop", role="shop")):
        pass
    Stack(moved).up(lambda _: None, parts=["postgres"], restart=True)
    with psycopg.connect(dsn(moved, database="shop", role="shop")) as connection:
        assert connection.info.port == port


def test_all_taken_ports_are_reported_before_anything_starts(small_stack):
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


def test_a_part_that_cannot_start_is_reported_with_its_log(small_stack):
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
