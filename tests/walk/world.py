"""The stack of a walk, and the state that its steps share."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil

from spark_jobs.demo.database import create_shop
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import REPOSITORY, Settings
from spark_jobs.stack.postgres import SHOP, dsn
from tests.e2e.running import RunningStack, new_stack
from tests.walk.network import Network, network

# Without Airflow, two cores are enough for the parts that store and move data.
PARTS = ("postgres", "kafka", "connect", "spark-connect", "redis", "streams")
# Exit statuses of ``tidemark``: a command line that it does not understand, an unforeseen error.
MISUSED, UNFORESEEN = 2, 70
LAKE_GIB = 3
COMMAND_SECONDS = 400
# So few commits that logs lose entries during the walk.
SETTINGS = """\
streams:
  bronze_trigger_seconds: 2
maintenance:
  log_commits: 10
"""


class WalkFailedError(AssertionError):
    """A command hung, crashed, printed a traceback, or does not exist."""


@dataclass
class World:
    """The stack, and what earlier steps did to it.

    Attributes:
        running: the stack.
        own_disk: whether the lake has its own disk, which can be filled.
        network: the filter of packets between the parts; None if there is none.
        altered: whether ``alter_table`` has added its column.
        pinned: views that were rolled back.
        snapshot_again: whether the connector began with a new slot, which misses deletes.
        changes: changed rows and sent records of all loads.
    """

    running: RunningStack
    own_disk: bool = False
    network: Network | None = None
    altered: bool = False
    pinned: set[str] = field(default_factory=set)
    snapshot_again: bool = False
    changes: int = 0

    @property
    def settings(self) -> Settings:
        return self.running.settings

    @cached_property
    def shop(self) -> str:
        """Address of the source database."""
        return dsn(self.settings, database=SHOP, role=SHOP)

    @property
    def views(self) -> list[str]:
        """Names of the gold views that are deployed."""
        return sorted(Manifest.read(self.settings.manifest_file).gold)

    @property
    def tables(self) -> list[str]:
        """Names of the silver tables that are deployed."""
        return sorted(Manifest.read(self.settings.manifest_file).silver)

    def tidemark(self, *words: str) -> tuple[int, str]:
        """Run a command; it may fail while parts are unavailable, but only with its own errors.

        Returns:
            the exit status and the output.

        Raises:
            WalkFailedError: it hung, crashed, printed a traceback, or does not exist.
        """
        with self.running.command(*words) as process:
            try:
                output, _ = process.communicate(timeout=COMMAND_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise WalkFailedError(f"tidemark {' '.join(words)} hangs") from error
        if process.returncode == UNFORESEEN or "Traceback" in output:
            raise WalkFailedError(f"tidemark {' '.join(words)} crashed: {output[-3000:]}")
        # A renamed option would otherwise be a step that does nothing.
        if process.returncode == MISUSED:
            raise WalkFailedError(f"tidemark {' '.join(words)} is misused: {output[-3000:]}")
        return process.returncode, output

    def leftover_processes(self) -> list[str]:
        """Processes outside the stack whose command line has the state directory."""
        own = self.running.stack.pids()
        found = []
        for one in psutil.process_iter(["pid", "cmdline", "status"]):
            words = " ".join(one.info["cmdline"] or ())
            if str(self.settings.state) in words and one.pid not in own:
                found.append(f"{one.pid}: {words[:200]}")
        return found

    def memory_gib(self) -> float:
        """Resident memory of all processes; shared pages are counted for each process."""
        total = 0
        for pid in self.running.stack.pids():
            try:
                total += psutil.Process(pid).memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total / 1024**3


@contextmanager
def new_world() -> Iterator[World]:
    """A new stack with the shop's tables and a copy of the project; removed at the end."""
    with (
        project_copy() as project,
        new_stack(project, secured=False) as running,
        disk(Path(running.settings.lake)) as own,
        network() as between,
    ):
        try:
            running.up(*PARTS)
            world = World(running, own_disk=own, network=between)
            create_shop(world.shop)
            yield world
        finally:
            # Before their disk is taken away.
            running.stack.down()


@contextmanager
def project_copy() -> Iterator[Path]:
    """A copy of the project, removed at the end, also of a walk that failed."""
    with tempfile.TemporaryDirectory(prefix="tidemark-walk-", ignore_cleanup_errors=True) as name:
        copy_project(Path(name))
        yield Path(name)


def copy_project(target: Path) -> None:
    """Copy the declarations of this repository, which steps change."""
    for name in ("sources", "sql", "expectations"):
        shutil.copytree(REPOSITORY / name, target / name)
    settings = (REPOSITORY / "tidemark.yml").read_text("utf-8")
    (target / "tidemark.yml").write_text(settings + SETTINGS, "utf-8")


@contextmanager
def disk(folder: Path) -> Iterator[bool]:
    """Mount a small disk for the lake; False if this account may not mount one."""
    if os.getuid() != 0:
        yield False
        return
    folder.mkdir(parents=True)
    options = f"size={LAKE_GIB}g,mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tidemark-walk", folder], check=True)
    try:
        yield True
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
