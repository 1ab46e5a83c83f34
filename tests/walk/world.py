"""A stack that a walk goes on, and what its steps share."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil

from spark_jobs.demo.database import create_shop
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.postgres import SHOP, dsn
from tests.e2e.running import TIDEMARK, RunningStack, own_settings, remove

# Airflow is left out: two cores are better spent on what keeps the data.
PARTS = ("postgres", "kafka", "connect", "spark-connect", "redis", "streams")
UNFORESEEN = 70
LAKE_GIB = 3
COMMAND_SECONDS = 400


class WalkFailedError(AssertionError):
    """Something that may never happen: a traceback, a crash, a difference."""


@dataclass
class World:
    """What the steps of a walk work on.

    Attributes:
        running: the stack.
        small_disk: whether the lake has a disk of its own.
        altered: whether the column that a walk adds to a table is there.
        pinned: views that were rolled back.
    """

    running: RunningStack
    small_disk: bool = False
    altered: bool = False
    pinned: set[str] = field(default_factory=set)

    @property
    def settings(self) -> Settings:
        return self.running.settings

    @cached_property
    def shop(self) -> str:
        """The source database's address."""
        return dsn(self.settings, database=SHOP, role=SHOP)

    @cached_property
    def views(self) -> list[str]:
        """The gold views."""
        return sorted(Manifest.read(self.settings.manifest_file).gold)

    def tidemark(self, *words: str) -> tuple[int, str]:
        """Run a command; while parts are away it may fail, but never in an unforeseen way.

        Raises:
            WalkFailedError: it crashed, hung or ended with a traceback.
        """
        with self.command(*words) as process:
            try:
                said, _ = process.communicate(timeout=COMMAND_SECONDS)
            except subprocess.TimeoutExpired as slow:
                raise WalkFailedError(f"tidemark {' '.join(words)} hangs") from slow
        if process.returncode == UNFORESEEN or "Traceback" in said:
            raise WalkFailedError(f"tidemark {' '.join(words)} crashed: {said[-3000:]}")
        return process.returncode, said

    @contextmanager
    def command(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs; it is ended with the block."""
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

    def orphans(self) -> list[str]:
        """Processes that name the state directory and are not of the stack."""
        own = self.running.stack.pids()
        found = []
        for one in psutil.process_iter(["pid", "cmdline", "status"]):
            words = " ".join(one.info["cmdline"] or ())
            if str(self.settings.state) in words and one.pid not in own:
                found.append(f"{one.pid}: {words[:200]}")
        return found

    def memory_gib(self) -> float:
        """What the stack's processes hold, shared pages counted once for each."""
        total = 0
        for pid in self.running.stack.pids():
            try:
                total += psutil.Process(pid).memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total / 1024**3


@contextmanager
def new_world() -> Iterator[World]:
    """A new stack with the shop's tables; nothing of it is kept."""
    settings = own_settings(secured=False)
    with disk(Path(settings.lake)) as small:
        running = RunningStack(settings)
        try:
            running.up(*PARTS)
            world = World(running, small_disk=small)
            create_shop(world.shop)
            yield world
        finally:
            remove(settings)
    shutil.rmtree(settings.state, ignore_errors=True)


@contextmanager
def disk(folder: Path) -> Iterator[bool]:
    """A disk of its own for the lake, which can be filled; False where only root could have it."""
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
