"""Flink SQL for comparison, installed from PyPI into a temporary virtual environment."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.streams.project import TOPIC, WINDOW_SECONDS
from spark_jobs.settings import REPOSITORY

VERSION = "2.2.1"
CONNECTOR = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
_JOB = Path(__file__).with_name("flink_job.py")
_INSTALL_SECONDS = 900
Windows = dict[int, tuple[int, str]]


class FlinkMissingError(Exception):
    """Flink could not be installed or failed; the section has no comparison."""


@dataclass(frozen=True)
class Flink:
    """An installation: its Python, and the connector's jar."""

    python: Path
    jar: Path

    @contextmanager
    def job(self, servers: str) -> Iterator[Windows]:
        """The windows of the topic's current records; the job's process runs as long as the block.

        Raises:
            FlinkMissingError: the job failed; with the end of its output.
        """
        command = [self.python, _JOB, TOPIC, servers, str(WINDOW_SECONDS), self.jar]
        with subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            line = process.stdout.readline()
            if not line:
                raise FlinkMissingError(process.communicate()[1].strip()[-500:])
            yield {int(at): (one[0], one[1]) for at, one in json.loads(line).items()}


@contextmanager
def installed() -> Iterator[Flink]:
    """Flink and its Kafka connector, for the duration of the block.

    Raises:
        FlinkMissingError: a registry does not have them, or a program is missing.
    """
    uv = shutil.which("uv") or str(REPOSITORY / ".bootstrap/bin/uv")
    with TemporaryDirectory(prefix="bench-flink-") as name:
        home = Path(name)
        python = home / "venv/bin/python"
        _run(uv, "venv", "--python", "3.11", str(home / "venv"))
        _run(uv, "pip", "install", "--python", str(python), f"apache-flink=={VERSION}")
        copy = f"-Dartifact={CONNECTOR}", f"-DoutputDirectory={home}"
        _run("mvn", "-q", "-B", "dependency:copy", *copy)
        jars = list(home.glob("*.jar"))
        if not jars:
            raise FlinkMissingError(f"no jar of {CONNECTOR}")
        yield Flink(python, jars[0])


def _run(*command: str) -> None:
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        told = getattr(error, "stderr", None) or str(error)
        raise FlinkMissingError(str(told).strip()[-500:]) from error
