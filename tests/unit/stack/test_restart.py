"""One part is stopped and started; the others run on. The supervisor is the real one."""

from __future__ import annotations

import sys

import psutil
import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.errors import ProblemsError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import load_settings
from spark_jobs.stack import stack as stack_module
from spark_jobs.stack.airflow_config import airflow_home
from spark_jobs.stack.errors import (
    PartFailedError,
    SettingsChangedError,
    StackNotPreparedError,
    TooLittleDiskError,
    UnknownPartError,
)
from spark_jobs.stack.parts import Part, Task
from spark_jobs.stack.postgres_server import data_directory
from spark_jobs.stack.stack import Stack
from spark_jobs.state.errors import ControlUnreachableError
from spark_jobs.state.store import ControlStore
from tests.deployments import put_in_force

SLEEPS = (sys.executable, "-c", "import time; time.sleep(300)")


def stack_of(settings):
    """A stack of three parts; the last needs the first."""
    stack = Stack(settings)
    names = {"reader": (), "writer": (), "watcher": ("reader",)}
    stack.__dict__["steps"] = [
        Part(name, SLEEPS, probe=lambda: None, needs=needs) for name, needs in names.items()
    ]
    return stack


@pytest.fixture
def settings(tmp_path):
    return load_settings(tmp_path, state_dir=tmp_path / "state", local={"free_disk_gib": 0})


@pytest.fixture
def stack(settings):
    made = stack_of(settings)
    yield made
    made.down()


def pids(stack):
    return {name: one.pid for name, one in stack.supervisor.states().items()}


def test_a_part_is_replaced_and_the_others_run_on(stack, settings):
    stack.up(lambda _: None)
    before = pids(stack)
    stack.restart(lambda _: None, parts=["reader"])
    after = pids(stack)
    assert after["reader"] != before["reader"]
    assert not psutil.pid_exists(before["reader"])
    assert (after["writer"], after["watcher"]) == (before["writer"], before["watcher"])

    with pytest.raises(UnknownPartError):
        stack.restart(lambda _: None, parts=["raeder"])
    changed = stack_of(settings.model_copy(update={"environment": "other"}))
    with pytest.raises(SettingsChangedError, match="stack up --restart"):
        changed.restart(lambda _: None, parts=["reader"])
    assert pids(stack) == after


def test_up_mends_what_keeps_a_running_part_from_being_ready(settings):
    """As a connector that failed or was stopped: its worker serves the step that starts it."""
    lacks = []
    stack = Stack(settings)
    stack.__dict__["steps"] = [
        Part(
            "worker",
            SLEEPS,
            probe=lambda: lacks[0] if lacks else None,
            serves=lambda: None,
            ready_seconds=5,
        ),
        Task("connector", lacks.clear, needs=("worker",)),
        Part("reader", SLEEPS, probe=lambda: None, needs=("connector",)),
    ]
    lacks.append("the connector failed before the worker was stopped")
    try:
        stack.up(lambda _: None)
        assert lacks == []
        before = pids(stack)
        lacks.append("the connector is stopped")
        [status, _] = stack.status()
        assert (status.ready, status.lacks) == (False, "the connector is stopped")
        assert not stack.up(lambda _: None).already_up
        assert lacks == []
        assert stack.up(lambda _: None).already_up
        assert pids(stack) == before
    finally:
        stack.down()


def test_up_registers_a_changed_connector_of_a_stack_that_is_ready(settings):
    """An external Connect's configuration is no reason for a part not to be ready."""
    registered = []
    stack = Stack(settings)
    stack.__dict__["steps"] = [
        Part("worker", SLEEPS, probe=lambda: None),
        Task("connector", lambda: registered.append("the configuration"), needs=("worker",)),
        Part("reader", SLEEPS, probe=lambda: None, needs=("connector",)),
    ]
    try:
        assert not stack.up(lambda _: None).already_up
        before = pids(stack)
        registered.clear()
        assert stack.up(lambda _: None).already_up
        assert registered == ["the configuration"]
        assert pids(stack) == before
    finally:
        stack.down()


def test_what_was_applied_is_read_from_a_database_that_starts_with_the_stack(settings, monkeypatch):
    """The manifest was lost: the steps after the database must not use files of no apply."""
    data_directory(settings).mkdir(parents=True)
    local = {**settings.local.model_dump(), "control": "postgres"}
    settings = load_settings(settings.project_dir, state_dir=settings.state, local=local)
    (settings.project_dir / "sources").mkdir()
    (settings.project_dir / "sources/orders.yml").write_text("format: nonsense\n")
    kept, served, seen = f"sqlite:///{settings.state / 'kept.db'}", [], []
    applied = Manifest(project="shop", deployment="d1-tests")
    with ControlStore.open(kept) as store:
        put_in_force(store, applied.model_dump_json(), number=1, name="d1-tests")

    class Control:
        @staticmethod
        def open(url):
            if not served:
                raise ControlUnreachableError(url, "connection refused")
            return ControlStore.open(kept)

    monkeypatch.setattr(stack_module, "ControlStore", Control)
    stack = Stack(settings)
    stack.__dict__["steps"] = [
        Part("postgres", SLEEPS, probe=lambda: None, finish=lambda: served.append("control")),
        Task("topics", lambda: seen.append(Manifest.read(settings.manifest_file))),
        Part("streams", SLEEPS, probe=lambda: None, needs=("topics", "postgres")),
        Task("connector", lambda: None),
        Part("redis", SLEEPS, probe=lambda: None),
    ]
    try:
        stack.up(lambda _: None)
        assert seen == [applied]
    finally:
        stack.down()


def test_a_part_of_a_stack_that_is_down_is_started(stack):
    stack.restart(lambda _: None, parts=["writer"])
    running = {name for name, pid in pids(stack).items() if pid}
    assert running == {"writer"}


def test_a_supervisor_that_ends_between_two_questions_is_down(stack, monkeypatch):
    """It answers whether it is alive, and has ended when it is asked for its parts."""
    monkeypatch.setattr(stack.supervisor, "answers", lambda: True)
    assert {one.state for one in stack.status()} == {"stopped"}
    assert stack.started_on_demand() == set()
    with pytest.raises(PartFailedError):
        stack.supervisor.start_part("reader")
    stack.settings.state.mkdir()
    assert stack.down()


def test_airflow_in_the_shell_is_that_of_the_stack(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    settings = load_settings(tmp_path)
    words = ["--project", str(tmp_path), "stack", "shell", "airflow", "dags", "test", "gold__x"]
    with pytest.raises(StackNotPreparedError):
        CliRunner().invoke(app, words, catch_exceptions=False)
    home = airflow_home(settings)
    home.mkdir(parents=True)
    (home / "airflow.cfg").touch()
    ran = []
    monkeypatch.setattr("os.execve", lambda *given: ran.append(given))
    CliRunner().invoke(app, words, catch_exceptions=False)
    ((program, command, environment),) = ran
    assert program.endswith("/airflow")
    assert command == ["airflow", "dags", "test", "gold__x"]
    assert environment["AIRFLOW_HOME"] == str(home)
    assert environment["TIDEMARK_PROJECT"] == str(tmp_path)


def test_a_stack_that_is_up_needs_no_room_for_another(stack, monkeypatch):
    """It has taken its memory; a part that was stopped must start again on a full disk too."""
    stack.up(lambda _: None)

    def refuses(*_):
        raise TooLittleDiskError(stack.settings.state, 0, 1)

    monkeypatch.setattr("spark_jobs.stack.preflight.check_disk", refuses)
    assert stack.up(lambda _: None).already_up
    before = pids(stack)
    stack.restart(lambda _: None, parts=["reader"])
    assert pids(stack)["reader"] not in {0, before["reader"]}
    stack.down()
    with pytest.raises(ProblemsError):
        stack.up(lambda _: None)
