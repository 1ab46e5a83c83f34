"""Whose processes are whose: sessions, left-over children, and the order of a start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from spark_jobs.errors import LakehouseError, ProblemsError, SettingError
from spark_jobs.stack import launch
from spark_jobs.stack.parts import Task
from spark_jobs.stack.session import SessionRecord, end
from spark_jobs.stack.startup import Phase, run_steps

# A leader that starts a child, which ignores SIGTERM and outlives it.
LEADER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def wait_until(condition, *, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def leader():
    """A session with a child; yields (leader, child's pid)."""
    process = subprocess.Popen(
        [sys.executable, "-c", LEADER], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    child = int(process.stdout.readline())
    yield process, child
    process.kill()
    process.wait()
    process.stdout.close()
    if psutil.pid_exists(child):
        os.kill(child, signal.SIGKILL)


def test_a_killed_leaders_children_are_found_and_ended(leader, tmp_path):
    process, child = leader
    SessionRecord.of(process.pid).write(tmp_path / "session.json")
    process.kill()
    process.wait()
    record = SessionRecord.read(tmp_path / "session.json")
    assert not record.leader_alive()
    assert [one.pid for one in record.members()] == [child]
    assert end(record, seconds=0.2) == [child]
    assert record.members() == []


def test_a_session_whose_number_went_to_another_program_is_left_alone(leader):
    process, _ = leader
    started = SessionRecord.of(process.pid).started
    stale = SessionRecord(process.pid, started - 3600)
    assert not stale.leader_alive()
    assert stale.members() == []
    assert SessionRecord(process.pid, started).leader_alive()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"pid": 1, "other": 2}'])
def test_a_damaged_record_is_no_record(tmp_path, text):
    (tmp_path / "session.json").write_text(text)
    assert SessionRecord.read(tmp_path / "session.json") is None


def test_no_record(tmp_path):
    assert SessionRecord.read(tmp_path / "session.json") is None


def test_the_launcher_stops_left_over_processes_and_becomes_the_part(tmp_path):
    record = tmp_path / "run" / "part.pid"
    script = f"""
import os, subprocess, sys, time
launched = [{launch.__file__!r}, {str(record)!r}, ""]
start = [sys.executable, "-I", "-S", *launched, sys.executable, "-c"]
first = subprocess.Popen([*start, "import os, time; os.fork(); print('x', flush=True);"
    "time.sleep(60)"], process_group=0, stdout=subprocess.PIPE)
first.stdout.readline(); first.stdout.readline()
os.kill(first.pid, 9); first.wait()
second = subprocess.Popen([*start, "print('second', flush=True)"], process_group=0)
second.wait()
print(first.pid, second.pid, open({str(record)!r}).read())
"""
    answer = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
        timeout=60,
    ).stdout.split()
    assert answer[0] == "second"
    first, second, recorded = map(int, answer[1:])
    assert recorded == second
    wait_until(lambda: not group_alive(first))


def group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_steps_run_after_what_they_need():
    order = []
    steps = [
        Task("c", lambda: order.append("c"), needs=("a", "b")),
        Task("b", lambda: order.append("b"), needs=("a",)),
        Task("a", lambda: order.append("a"), needs=("not among them",)),
    ]
    news = []
    run_steps(steps, None, news.append)
    assert order == ["a", "b", "c"]
    assert [one.step for one in news if one.phase is Phase.READY] == order


def test_a_failed_step_stops_those_that_need_it():
    def fail() -> None:
        raise SettingError("ports.kafka", "no luck")

    ran = []
    with pytest.raises(LakehouseError, match="no luck"):
        run_steps([Task("a", fail), Task("b", lambda: ran.append(1), needs=("a",))], None, print)
    assert not ran


def test_simultaneous_failures_are_reported_together():
    def fail() -> None:
        time.sleep(0.2)
        raise SettingError("ports.kafka", "no luck")

    with pytest.raises(ProblemsError) as caught:
        run_steps([Task("a", fail), Task("b", fail)], None, lambda _: None)
    assert len(caught.value.problems) == 2


def test_a_record_of_another_boot_or_container_names_no_process_of_this_one(leader, tmp_path):
    """The session of a daemon, whose first process ends at once, may have the recorded number."""
    process, child = leader
    record = SessionRecord.of(process.pid)
    record.write(tmp_path / "session.json")
    process.kill()
    process.wait()
    told = json.loads((tmp_path / "session.json").read_text())
    assert [one.pid for one in SessionRecord.read(tmp_path / "session.json").members()] == [child]
    # A record of an earlier release does not tell.
    assert [one.pid for one in SessionRecord(told["pid"], told["started"]).members()] == [child]
    other = SessionRecord(told["pid"], told["started"] - 3600, boot="another")
    assert not other.leader_alive()
    assert other.members() == []
    assert end(other, seconds=0) == []
    assert psutil.pid_exists(child)
