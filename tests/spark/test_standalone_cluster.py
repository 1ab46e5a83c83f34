"""The local stack's own Spark cluster: its processes work together, and with nobody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from spark_jobs.access.secrets import read_secret
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.parts import Part
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.spark_cluster import SECRET, cluster_parts
from spark_jobs.stack.spark_connect import spark_connect_part
from spark_jobs.storage.session import remote_session
from tests.e2e import doors
from tests.e2e.running import free_ports
from tests.spark.apart import apart

START_SECONDS = 240
LOGIN = "asks for a login"
# What the streaming application does of Spark: a driver in a process of its own.
DRIVER = """
from spark_jobs.settings import load_settings
from spark_jobs.storage.session import driver_session
spark = driver_session(load_settings(), "driver")
print("rows", spark.range(1000).repartition(3).count())
input()
"""
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=[False, True], ids=["default", "secured"])
def settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    """A master, a worker and a Connect server, started with what the stack starts them with."""
    folder = tmp_path_factory.mktemp("cluster")
    made = load_settings(
        folder,
        state_dir=folder / "state",
        ports=free_ports(),
        security={"enabled": request.param},
        local={"spark_workers": 1},
        spark={
            "connect_memory": "1g",
            "driver_memory": "1g",
            "conf": {
                "spark.cores.max": "1",
                "spark.executor.cores": "1",
                "spark.executor.memory": "600m",
            },
        },
    )
    with ExitStack() as running:
        for part in (*cluster_parts(made), spark_connect_part(made)):
            running.enter_context(started(part, made, folder / f"{part.name}.log"))
        yield made


@contextmanager
def started(part: Part, settings: Settings, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    part.prepare()
    with log.open("wb") as output:
        process = subprocess.Popen(
            part.command,
            env={**stack_environment(settings), **part.environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while (problem := part.probe()) is not None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"{problem}\n{log.read_text()}"
            time.sleep(0.5)
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def count_by_the_server(settings: Settings) -> None:
    spark = remote_session(settings, f"sc://localhost:{settings.ports.spark_connect}")
    assert spark.range(1000).repartition(3).count() == 1000


def test_executors_compute_for_the_server_and_for_a_driver_of_its_own(settings: Settings) -> None:
    secret = read_secret(settings, SECRET)
    apart(count_by_the_server, settings)
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env={**stack_environment(settings)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with driver:
        assert driver.stdout
        assert driver.stdout.readline() == "rows 1000\n"
        lines = list(command_lines())
        driver.communicate("\n")
    assert [one for one in lines if "CoarseGrainedExecutorBackend" in one]
    assert [one for one in lines if one.endswith(" pyspark-shell")]
    assert [one[:200] for one in lines if secret in one] == []


def test_other_users_are_refused(settings: Settings) -> None:
    for kind in ("spark_master", "spark_worker"):
        _, port = settings.ports.of(kind)
        assert doors.spark_rpc(port) == LOGIN
        _, page = settings.ports.of(f"{kind}_ui")
        address = f"http://{LOOPBACK}:{page}/json/"
        for headers in ({}, {"Authorization": "Bearer guessed"}):
            answer = httpx.get(address, headers=headers, trust_env=False)
            assert answer.status_code == httpx.codes.FORBIDDEN


def command_lines() -> Iterator[str]:
    """Of all processes below this one; some end meanwhile."""
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            yield " ".join(one.cmdline())
