"""What an account of this machine gets at each door of a stack, without any of its secrets."""

from __future__ import annotations

import os

import pytest

from spark_jobs.settings import Settings
from tests.e2e import doors
from tests.e2e.running import RunningStack

LOGIN = "asks for a login"


def test_nobody_gets_in_without_a_secret(stack: RunningStack) -> None:
    settings = stack.settings
    asked = {
        "spark connect": doors.spark_connect(settings),
        "spark connect, a guess": doors.spark_connect(settings, "guessed"),
        "connect": doors.connect_rest(settings),
        "redis": doors.redis_server(settings),
        "postgres": doors.postgres(settings),
        "page of refreshes": doors.page(settings.ports.spark_ui),
        "page of streams": doors.page(settings.ports.streams_ui),
        "kafka": doors.kafka(settings),
    }
    assert asked.pop("kafka") == kafka_answers(settings)
    assert asked.pop("postgres") in {"refused", "no encryption"}
    assert asked == {
        "spark connect": "UNAUTHENTICATED",
        "spark connect, a guess": "UNAUTHENTICATED",
        "connect": "certificate required",
        "redis": "AuthenticationError",
        "page of refreshes": doors.SILENT,
        "page of streams": doors.SILENT,
    }


def kafka_answers(settings: Settings) -> str:
    """The one door that is open where nothing is set."""
    return "_TRANSPORT" if settings.security.enabled else doors.OPEN


@pytest.mark.parametrize("part", ["spark-connect", "streams"])
def test_spark_s_own_ports_ask_for_a_login(stack: RunningStack, part: str) -> None:
    known = stack.settings.ports.spark_connect
    pid = stack.part(part).pid
    assert pid
    answers = doors.spark_ports(pid, known=known)
    transports = {port: said for port, said in answers.items() if said != doors.OTHER}
    # The driver's own, and the one of its blocks.
    assert len(transports) >= 2
    assert set(transports.values()) == {LOGIN}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_of_the_state_directory_another_account_reads_gold_alone(stack: RunningStack) -> None:
    found = doors.readable(stack.settings.state)
    beside = {one for one in found if not f"{one}/".startswith("lake/gold/")}
    assert beside <= {".", "lake"}
