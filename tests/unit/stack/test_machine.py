"""What the stack asks of the machine: ports, memory, disk, Java, reachable directories."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from psutil import CONN_LISTEN

from spark_jobs.errors import ProblemsError
from spark_jobs.settings import load_settings
from spark_jobs.stack.errors import (
    PortsTakenError,
    ProgramMissingError,
    StateUnreachableError,
    TooLittleDiskError,
    TooLittleMemoryError,
)
from spark_jobs.stack.java import check_java
from spark_jobs.stack.ports import bindable, check_ports, listening
from spark_jobs.stack.postgres_server import check_reachable
from spark_jobs.stack.preflight import check_disk, check_machine, check_memory, container_memory


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Write a ``java`` that tells a version, and make it the only one."""

    def tells(text: str) -> None:
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin/java"
        program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    return tells


def test_all_taken_ports_are_reported_with_setting_and_process(listener):
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(PortsTakenError) as caught,
    ):
        check_ports({"ports.kafka": listener, "ports.connect": other.getsockname()[1]})
    assert [one.setting for one in caught.value.taken] == ["ports.kafka", "ports.connect"]
    assert str(os.getpid()) in caught.value.taken[0].holder
    assert "TIDEMARK_PORTS__KAFKA" in caught.value.hint


@pytest.mark.parametrize(
    "sign", [" #", " ;", '"', ",", ":", "\\", "%20", "%c3", "\n", "[", "^", "|"]
)
@pytest.mark.parametrize("place", ["project", "state"])
def test_a_path_that_a_program_would_cut_is_refused(tmp_path, sign, place):
    odd = tmp_path / f"a{sign}b"
    odd.mkdir()
    project, state = (odd, tmp_path / "state") if place == "project" else (tmp_path, odd)
    settings = load_settings(project, state_dir=state, local={"free_disk_gib": 0})
    with pytest.raises(ProblemsError) as caught:
        check_machine(settings, ["airflow"])
    (problem,) = caught.value.problems
    assert (problem.condition, problem.sign) == ("PATH_UNUSABLE", sign.strip() or sign)


@pytest.mark.parametrize("sign", ["a#b", "a;b", "a b", "50 %", "100%", "O'Brien", "müller", "(1)"])
def test_a_path_that_every_program_reads_is_used(tmp_path, sign):
    settings = load_settings(tmp_path, state_dir=tmp_path / sign, local={"free_disk_gib": 0})
    check_machine(settings, ["airflow"])


def test_a_port_that_the_stack_itself_holds_is_free_for_it(listener):
    check_ports({"ports.kafka": listener}, own_pids=[os.getpid()])


@pytest.mark.parametrize("first", [True, False])
def test_a_process_at_another_address_of_an_own_port_is_no_problem(monkeypatch, listener, first):
    own, foreign = os.getpid(), 1
    listeners = [
        SimpleNamespace(status=CONN_LISTEN, pid=pid, laddr=SimpleNamespace(port=listener))
        for pid in ((own, foreign) if first else (foreign, own))
    ]
    monkeypatch.setattr("psutil.net_connections", lambda _: listeners)
    check_ports({"ports.kafka": listener}, own_pids=[own])
    with pytest.raises(PortsTakenError):
        check_ports({"ports.kafka": listener}, own_pids=[2])


def test_a_port_on_all_interfaces_is_taken_too():
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104 - the case under test
        port = server.getsockname()[1]
        assert not bindable(port)
        assert listening(port)
    assert not listening(port)


def test_too_little_disk_is_reported_for_a_directory_that_does_not_exist_yet(tmp_path):
    with pytest.raises(TooLittleDiskError) as caught:
        check_disk(tmp_path / "not/yet/there", 1e6)
    assert caught.value.needed_gib == 1e6


def test_too_little_memory():
    with pytest.raises(TooLittleMemoryError) as caught:
        check_memory(1e6)
    assert 0 < caught.value.free_gib < 1e6


def test_a_container_may_take_its_limit_without_what_it_uses(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 400\ninactive_file 200\nactive_file 100\n")
    assert container_memory(tmp_path) == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert container_memory(tmp_path) == float("inf")
    assert container_memory(tmp_path / "none") == float("inf")


def test_no_java(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ProgramMissingError) as caught:
        check_java()
    assert caught.value.program == "java"


@pytest.mark.parametrize("text", ['java version "1.8.0_392"', 'openjdk version "11.0.2"', "hello"])
def test_java_that_is_too_old(java, text):
    java(text)
    with pytest.raises(ProgramMissingError):
        check_java()


def test_java_that_is_new_enough(java):
    java('openjdk version "21.0.1" 2023-10-17')
    check_java()


def test_a_directory_that_another_account_cannot_enter_is_named(tmp_path):
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(StateUnreachableError) as caught:
        check_reachable(private / "state" / "postgres", "nobody")
    assert caught.value.blocking in {private, *private.parents}


def test_all_missing_requirements_are_reported_together(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    settings = load_settings(
        tmp_path,
        kafka_jars=Path("/none"),
        cassandra_jars=Path("/none"),
        local={"free_memory_gib": 1e6, "free_disk_gib": 1e6},
    )
    with pytest.raises(ProblemsError) as caught:
        check_machine(settings, ["kafka", "cassandra", "spark-connect"])
    assert {problem.condition for problem in caught.value.problems} >= {
        "PROGRAM_MISSING",
        "KAFKA_JARS_MISSING",
        "CASSANDRA_JARS_MISSING",
        "TOO_LITTLE_MEMORY",
        "TOO_LITTLE_DISK",
    }


def test_disk_and_memory_that_suffice(tmp_path):
    check_disk(tmp_path, 0)
    check_memory(0)
