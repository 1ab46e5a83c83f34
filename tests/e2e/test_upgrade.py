"""Tables, checkpoints and databases of the first release that has versions, in this release."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_jobs.settings import REPOSITORY
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.postgres import SHOP, dsn
from tests.e2e.running import RunningStack, new_stack
from tests.e2e.soundness import assert_sound, wait_drained

# The first commit with `tidemark upgrade`.
FIRST = "bbe472c"
DECLARATIONS = ("sources", "sql", "expectations")
PARTS = "postgres,kafka,connect,spark-connect,redis,streams"
# Settings that the first release knows; it refuses others.
KNOWN = (
    "TIDEMARK_PROJECT",
    "TIDEMARK_STATE_DIR",
    "TIDEMARK_SPARK__DRIVER_MEMORY",
    "TIDEMARK_SPARK__CONNECT_MEMORY",
    "TIDEMARK_LOCAL__FREE_MEMORY_GIB",
    "TIDEMARK_LOCAL__FREE_DISK_GIB",
    *(
        f"TIDEMARK_PORTS__{name}"
        for name in (
            *("POSTGRES", "KAFKA", "KAFKA_CONTROLLER", "CONNECT", "SPARK_CONNECT"),
            *("SPARK_UI", "STREAMS_UI", "AIRFLOW", "REDIS"),
        )
    ),
)
CREATE_SHOP = """
from spark_jobs.demo.database import create_shop
from spark_jobs.local.postgres import SHOP, dsn
from spark_jobs.settings import load_settings
create_shop(dsn(load_settings(), database=SHOP, role=SHOP))
"""
LOAD = ("load", "--rate", "60")
LOAD_SECONDS = 30


@dataclass(frozen=True)
class Release:
    """A release in its own directory and Python environment, on the state of a stack.

    Attributes:
        folder: its files.
        stack: the stack whose state directory and ports it uses.
    """

    folder: Path
    stack: RunningStack

    def tidemark(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run its command line."""
        return self.run(str(self.folder / ".venv/bin/tidemark"), *words, check=check)

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def environment(self) -> dict[str, str]:
        """The stack's settings that it knows, and its own programs."""
        programs = self.folder / ".venv/bin"
        given = stack_environment(self.stack.settings)
        found = {
            name: value
            for name, value in given.items()
            if name in KNOWN or not name.startswith("TIDEMARK_")
        }
        python = str(programs / "python")
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        return {**found, "PATH": path, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Release]:
    """The first release, installed as its README says, with its declarations as the project."""
    folder, project = tmp_path / "first", tmp_path / "project"
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", FIRST], cwd=REPOSITORY, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    subprocess.run(["make", "setup"], cwd=folder, check=True, timeout=900)
    for name in DECLARATIONS:
        shutil.copytree(folder / name, project / name)
    shutil.copy(folder / "tidemark.yml", project)
    with new_stack(project, secured=False) as stack:
        release = Release(folder, stack)
        yield release
        release.tidemark("stack", "down", check=False)


@contextmanager
def loading(running: RunningStack) -> Iterator[None]:
    """Change rows and send events meanwhile; the load must succeed."""
    words = (*LOAD, "--seconds", str(LOAD_SECONDS), "--seed", "2")
    with running.command(*words) as process:
        yield
        output, _ = process.communicate(timeout=10 * LOAD_SECONDS)
    assert process.returncode == 0, output


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_first_release_is_upgraded_under_load_and_back(first: Release) -> None:
    stack, settings = first.stack, first.stack.settings
    first.tidemark("stack", "up", "--parts", PARTS)
    first.run(str(first.folder / ".venv/bin/python"), "-c", CREATE_SHOP)
    first.tidemark(*LOAD, "--seconds", "20")
    shop = dsn(settings, database=SHOP, role=SHOP)
    wait_drained(stack, shop)
    first.tidemark("refresh", "--all")
    # Stopped with changes that nothing has read yet.
    first.tidemark(*LOAD, "--seconds", "5", "--seed", "3")
    first.tidemark("stack", "down")
    backup = backed_up(settings.state)
    published = versions(stack)

    checked = stack.tidemark("upgrade", "--check", "--json", check=False)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert any(one["pending"] for one in json.loads(checked.stdout))
    stack.tidemark("upgrade")
    again = stack.tidemark("upgrade", "--check", "--json", check=False)
    assert again.returncode == 0, again.stdout + again.stderr

    stack.tidemark("stack", "up", "--parts", PARTS)
    # Nothing is built from nothing: tables and checkpoints are continued.
    with loading(stack):
        stack.tidemark("refresh", "--all", check=False)
    wait_drained(stack, shop)
    stack.tidemark("refresh", "--all", "--let-pass", "the load went on meanwhile")
    assert_sound(stack)
    moved = versions(stack)
    assert set(published) <= set(moved)
    assert all(moved[name] >= published[name] for name in published)

    stack.tidemark("stack", "down")
    for name, content in backup.items():
        (settings.state / name).write_bytes(content)
    first.tidemark("stack", "up", "--parts", PARTS)
    first.tidemark(*LOAD, "--seconds", "5", "--seed", "4")
    wait_drained(stack, shop)
    first.tidemark("refresh", "--all")
    first.tidemark("verify", "--all")
    first.tidemark("stack", "down")


def backed_up(state: Path) -> dict[str, bytes]:
    """The files of the control database."""
    return {one.name: one.read_bytes() for one in state.glob("control.db*")}


def versions(running: RunningStack) -> dict[str, int]:
    """The version of each table of the lake."""
    from deltalake import DeltaTable

    lake = Path(running.settings.lake)
    return {
        str(log.parent.relative_to(lake)): DeltaTable(str(log.parent)).version()
        for log in sorted(lake.glob("*/*/_delta_log"))
        if not log.parent.parent.name.startswith("_")
    }
