"""A stack for tests: settings, processes, and the command line."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psutil

from spark_jobs.java_options import SHORT_RUN
from spark_jobs.sections import Ports
from spark_jobs.settings import REPOSITORY, Settings, load_settings
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.ports import bindable
from spark_jobs.stack.stack import Stack
from spark_jobs.stack.startup import Progress
from spark_jobs.stack.status import PartStatus

TIDEMARK = str(Path(sys.executable).parent / "tidemark")
POLL_SECONDS = 0.5
KILL_SECONDS = 30
# Below the ports that outgoing connections get, which could take one that is free now.
PORTS = range(20_000, 32_000)
# For streams whose tests wait for one change after the other.
QUICK = {"bronze_trigger_seconds": 1, "silver_trigger_seconds": 0.5, "gold_trigger_seconds": 2}


@dataclass(frozen=True)
class RunningStack:
    """A stack with its own state directory and ports."""

    settings: Settings

    @cached_property
    def stack(self) -> Stack:
        return Stack(self.settings)

    def up(self, *parts: str):
        return self.stack.up(show, parts=parts)

    def part(self, name: str) -> PartStatus:
        return self.stack.status([name])[0]

    def kill(self, name: str) -> int:
        """Kill the part's process by SIGKILL; returns its id."""
        pid = self.part(name).pid
        assert pid, f"{name} does not run"
        kill(pid)
        return pid

    def take_away(self, name: str) -> None:
        """Kill the part's process, and prevent its restart."""
        self.kill(name)
        self.stop(name)

    def start(self, name: str) -> None:
        """Start one part without waiting; some part of the stack must be running."""
        self.stack.supervisor.start_part(name)

    def stop(self, name: str, *, seconds: float = 120) -> None:
        """Stop one part as an operator does, and wait until it has stopped."""
        self.stack.supervisor.stop_part(name)
        deadline = time.monotonic() + seconds
        while (one := self.part(name)).pid:
            assert time.monotonic() < deadline, one
            time.sleep(0.2)

    @contextmanager
    def standing_still(self, name: str) -> Iterator[None]:
        """Freeze all processes of the part, as on an overcommitted machine."""
        pid = self.part(name).pid
        assert pid, f"{name} does not run"
        parent = psutil.Process(pid)
        # The parent process first.
        with suspended(lambda: [parent, *parent.children(recursive=True)]):
            yield

    @contextmanager
    def asleep(self, *others: int) -> Iterator[None]:
        """Freeze all processes of the stack and ``others``, as when a laptop is closed."""
        with suspended(lambda: list(map(psutil.Process, (*others, *self.stack.pids())))):
            yield

    def wait_ready(self, *names: str, seconds: float = 240) -> None:
        """Wait until the parts are ready; all by default."""
        deadline = time.monotonic() + seconds
        while lacking := [one for one in self.stack.status(names) if not one.ready]:
            assert time.monotonic() < deadline, lacking
            time.sleep(POLL_SECONDS)

    def wait_restarted(self, name: str, pid: int, *, seconds: float = 240) -> None:
        """Wait until the part is ready in a process other than ``pid``."""
        deadline = time.monotonic() + seconds
        while not (one := self.part(name)).ready or one.pid == pid:
            assert time.monotonic() < deadline, one
            time.sleep(POLL_SECONDS)

    def tidemark(
        self, *arguments: str, check: bool = True, seconds: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line on this stack."""
        return subprocess.run(
            [TIDEMARK, *arguments],
            env=stack_environment(self.settings),
            capture_output=True,
            text=True,
            check=check,
            timeout=seconds,
        )

    @contextmanager
    def command(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command; it is killed at the end of the block."""
        with subprocess.Popen(
            [TIDEMARK, *words],
            env=stack_environment(self.settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def refresh(self, view: str, *, seconds: float = 300) -> None:
        """Refresh a view; wait while a scheduled run refreshes it."""
        deadline = time.monotonic() + seconds
        while (done := self.tidemark("refresh", view, check=False)).returncode != 0:
            assert "[LEASE_TAKEN]" in done.stderr + done.stdout, done
            assert time.monotonic() < deadline, done
            time.sleep(POLL_SECONDS)


@contextmanager
def suspended(processes: Callable[[], list[psutil.Process]]) -> Iterator[None]:
    """Suspend processes and their new children; resume them at the end of the block."""
    stopped: list[psutil.Process] = []
    try:
        while running := [one for one in processes() if one not in stopped]:
            for one in running:
                stopped.append(one)
                with suppress(psutil.NoSuchProcess):
                    one.suspend()
        yield
    finally:
        for one in reversed(stopped):
            with suppress(psutil.NoSuchProcess):
                one.resume()


def kill(pid: int) -> None:
    """Kill a process by SIGKILL, and check that it died."""
    process = psutil.Process(pid)
    process.kill()
    deadline = time.monotonic() + KILL_SECONDS
    # A dead process is a zombie until its parent reaps it.
    with suppress(psutil.NoSuchProcess):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, f"{process} survived"
            time.sleep(0.01)


def show(progress: Progress) -> None:
    print(f"{progress.step}: {progress.phase} {progress.seconds:.1f} s {progress.note}")


@contextmanager
def new_stack(project: Path = REPOSITORY, **overrides) -> Iterator[RunningStack]:
    """A stack with its own settings, of which no part runs; stopped and removed at the end."""
    running = RunningStack(own_settings(project, **overrides))
    try:
        yield running
    finally:
        running.stack.down()
        left = running.stack.pids()
        assert not left, f"left running: {left}"
        shutil.rmtree(running.settings.state, ignore_errors=True)


def own_settings(
    project: Path,
    *,
    secured: bool = True,
    local: Mapping[str, object] | None = None,
    **overrides,
) -> Settings:
    """Settings of a project with a new state directory and free ports.

    Security is on, as in production, unless a test turns it off.
    """
    # Not below pytest's directories, which PostgreSQL's user cannot traverse.
    state = Path(tempfile.mkdtemp(prefix="tidemark-e2e-"))
    state.chmod(0o755)
    return load_settings(
        project,
        state_dir=state,
        ports=free_ports(),
        spark={"driver_memory": "1g", "connect_memory": "1g", "java_options": SHORT_RUN},
        security={"enabled": secured},
        local={"free_memory_gib": 2, "free_disk_gib": 1, **(local or {})},
        **overrides,
    )


def write_files(project: Path, files: Mapping[str, str]) -> None:
    """Fill a project directory; the keys are paths below it."""
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def free_ports() -> dict[str, int]:
    """A free port for each of the stack's."""
    # Test runs seed `random`, so two processes would choose the same ports.
    candidates = random.SystemRandom().sample(ports_here(), 1_000)
    free = (port for port in candidates if bindable(port))
    return {name: next(free) for name in Ports.model_fields}


def ports_here() -> range:
    """The range of ports for this process: others must not take a port before its use."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return PORTS[int(worker) :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))]
