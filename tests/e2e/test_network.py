"""Connections whose packets vanish, as when a firewall forgets them: clients connect again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from spark_jobs.stack.catalog import make_topics
from spark_jobs.stack.spark_connect import connect_url
from spark_jobs.stack.stack import write_manifest
from spark_jobs.state.engine import make_engine
from spark_jobs.storage.session import remote_session
from tests.e2e.running import QUICK, RunningStack, new_stack, write_files
from tests.e2e.topic_world import SOURCE, Events
from tests.walk.network import Network, network

pytestmark = pytest.mark.long
# The client's limit is 20 or 30 seconds. Without limits it is a quarter of an hour.
SECONDS = 120


@pytest.fixture
def filtered() -> Iterator[Network]:
    with network() as found:
        if found is None:
            pytest.skip("only root may filter packets")
        yield found


@pytest.fixture
def running() -> Iterator[RunningStack]:
    with new_stack(secured=False, local={"control": "postgres"}) as found:
        yield found


def test_a_query_of_a_silent_spark_connect_session_is_answered(
    running: RunningStack, filtered: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session sets it for the process, in which tests with a classic session follow.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    running.up("spark-connect")
    spark = remote_session(running.settings, connect_url(running.settings))
    assert spark.sql("SELECT 1").collect()[0][0] == 1
    filtered.forget(psutil.Process(), running.settings.ports.spark_connect)
    began = time.monotonic()
    assert spark.sql("SELECT 2").collect()[0][0] == 2
    assert time.monotonic() - began < SECONDS
    # While the server runs: otherwise the client tries for minutes when Python ends.
    spark.stop()


def test_a_silent_connection_to_the_control_database_is_replaced(
    running: RunningStack, filtered: Network
) -> None:
    running.up("postgres")
    engine = make_engine(running.settings.control_url)
    try:
        with engine.connect() as connection:
            assert connection.execute(text("SELECT 1")).scalar() == 1
            filtered.forget(psutil.Process(), running.settings.ports.postgres)
            began = time.monotonic()
            with pytest.raises(OperationalError):
                connection.execute(text("SELECT 2"))
        with engine.connect() as connection:
            assert connection.execute(text("SELECT 3")).scalar() == 3
        assert time.monotonic() - began < SECONDS
    finally:
        engine.dispose()


def test_streams_replace_silent_connections_to_the_broker(
    filtered: Network, tmp_path: Path
) -> None:
    topics = [f"topic_{number}" for number in range(12)]
    write_files(tmp_path, {f"sources/{one}.yml": SOURCE.format(name=one) for one in topics})

    def send(first: int) -> None:
        """Send ten records to each topic, and wait until bronze has all so far."""
        for topic in topics:
            events.send(topic, 0, range(first, first + 10))
        for topic in topics:
            events.wait_read(topic, {0: list(range(first + 10))})

    with new_stack(tmp_path, secured=False, streams=QUICK) as running:
        events = Events(running)
        running.up("kafka")
        write_manifest(running.settings)
        make_topics(running.settings)
        running.start("streams")
        send(0)
        pid = running.part("streams").pid
        assert pid
        parent = psutil.Process(pid)
        port = running.settings.ports.kafka
        silent = sum(
            filtered.forget(one, port) for one in (parent, *parent.children(recursive=True))
        )
        # Each stream has a connection of its own, and its tasks have others.
        assert silent > len(topics)
        began = time.monotonic()
        send(10)
        print(f"{silent} silent connections: {time.monotonic() - began:.0f} s")
        assert time.monotonic() - began < SECONDS
