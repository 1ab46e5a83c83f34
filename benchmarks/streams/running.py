"""A broker and a streaming application for a benchmark, which are always stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from benchmarks.streams.project import TOPIC
from spark_jobs.sections import Ports, SparkSettings, StreamSettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.kafka import ensure_topics
from spark_jobs.stack.ports import bindable
from spark_jobs.stack.stack import Stack
from spark_jobs.stack.streams import streams_part
from spark_jobs.stack.supervisor import launched
from spark_jobs.storage.compiled import compile_settings

START_SECONDS = 180
STOP_SECONDS = 60
_POLL_SECONDS = 0.5


class BenchmarkStuckError(Exception):
    """A wait timed out; the section is invalid."""


def own_settings(folder: Path, spark: SparkSettings, streams: StreamSettings) -> Settings:
    """Settings of a project in a folder, with free ports and the state below the folder."""
    # Below the range of ephemeral ports, of which an outgoing connection could take a free one.
    candidates = random.sample(range(20_000, 32_000), 1_000)
    free = (port for port in candidates if bindable(port))
    return load_settings(
        folder,
        state_dir=folder / "state",
        ports={name: next(free) for name in Ports.model_fields},
        spark=spark.model_dump(),
        streams=streams.model_dump(),
    )


@contextmanager
def broker(settings: Settings) -> Iterator[None]:
    """A broker with the empty topic."""
    compile_settings(settings)
    stack = Stack(settings)
    try:
        stack.up(lambda _: None, parts=["kafka"])
        ensure_topics(settings, [TOPIC])
        yield
    finally:
        stack.down()


@contextmanager
def application(settings: Settings) -> Iterator[psutil.Process]:
    """The streaming application, once all its queries report.

    Raises:
        BenchmarkStuckError: it is not ready in time; with its log.
    """
    part = streams_part(settings)
    log = settings.state / "log" / "bench-streams.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("ab") as output,
        subprocess.Popen(
            launched(part, settings.state / "run"),
            env={**stack_environment(settings), **part.environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            # The end of the block stops it, not the terminal's signal.
            start_new_session=True,
        ) as process,
    ):

        def serves() -> bool:
            if process.poll() is not None:
                told = log.read_text(encoding="utf-8", errors="replace")[-1000:]
                raise BenchmarkStuckError(f"the streaming application ended: {told}")
            return part.probe() is None

        try:
            wait_until(serves, seconds=START_SECONDS, what="the streaming application serves")
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_until(holds: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Poll until a condition is true.

    Raises:
        BenchmarkStuckError: it is not in time.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise BenchmarkStuckError(f"not in {seconds:.0f} s: {what}")
        time.sleep(_POLL_SECONDS)
