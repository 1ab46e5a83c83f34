"""Checks before the stack starts: programs, jars, memory, disk."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

import psutil

from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.settings import Settings
from spark_jobs.stack.cassandra_server import NAME as CASSANDRA
from spark_jobs.stack.cassandra_server import check_cassandra
from spark_jobs.stack.certificates import ENDPOINT
from spark_jobs.stack.endpoint_account import check_endpoint_account
from spark_jobs.stack.errors import (
    KafkaJarsMissingError,
    PathUnusableError,
    TooLittleDiskError,
    TooLittleMemoryError,
)
from spark_jobs.stack.java import check_java
from spark_jobs.stack.object_store import NAME as OBJECT_STORE
from spark_jobs.stack.object_store import check_object_store
from spark_jobs.stack.postgres_server import check_postgres
from spark_jobs.stack.redis_server import check_redis
from spark_jobs.storage.conf import all_jars

GIB = 1024**3
SPARK_PARTS = {"spark-connect", "streams", ENDPOINT}
# Supervisord ends values at " ;" and " #", and quotes by a double quote; a colon separates the
# directories of a class path, a comma Kafka's; delta-rs reads a backslash as a slash, decodes
# "%20", and fails at some characters.
UNUSABLE = re.compile(r"""[",:\\\x00-\x1f\x7f[\]^|]|(?<=\s)[;#]|%[0-9A-Fa-f]{2}""")
JAVA_PARTS = {"kafka", "connect", "spark-master", CASSANDRA, OBJECT_STORE} | SPARK_PARTS


def check_machine(settings: Settings, parts: Collection[str], *, running: bool = False) -> None:
    """Check everything that the chosen parts need.

    Args:
        settings: whose state directory and jars they use.
        parts: their names.
        running: other parts run already; the stack has taken its memory and disk.

    Raises:
        ProblemsError: all problems.
    """
    problems: list[LakehouseError] = []
    chosen = set(parts)
    room = set() if running else chosen
    checks: list[tuple[Collection[str], Callable[[], object]]] = [
        (chosen, lambda: check_path(settings.project_dir)),
        (chosen, lambda: check_path(settings.state)),
        (JAVA_PARTS & chosen, check_java),
        ({"postgres"} & chosen, check_postgres),
        ({"redis"} & chosen, check_redis),
        ({CASSANDRA} & chosen, lambda: check_cassandra(settings)),
        ({OBJECT_STORE} & chosen, lambda: check_object_store(settings)),
        ({"kafka", "connect"} & chosen, lambda: check_kafka_jars(settings.kafka_jars)),
        (SPARK_PARTS & chosen, lambda: all_jars(settings)),
        (room, lambda: check_disk(settings.state, settings.local.free_disk_gib)),
        ({ENDPOINT} & chosen, lambda: check_endpoint_account(settings)),
        ({"spark-connect"} & room, lambda: check_memory(settings.local.free_memory_gib)),
    ]
    for wanted, check in checks:
        if wanted:
            try:
                check()
            except LakehouseError as error:
                problems.append(error)
    if problems:
        raise ProblemsError(problems)


def check_path(directory: Path) -> None:
    """Check that every program of the stack can be given a path in the directory.

    Raises:
        PathUnusableError: one would read another path.
    """
    if found := UNUSABLE.search(str(directory)):
        raise PathUnusableError(directory, found[0])


def check_kafka_jars(directory: Path) -> None:
    """Check that Maven has downloaded the Kafka classpath.

    Raises:
        KafkaJarsMissingError: the broker or the connector is missing.
    """
    for pattern in ("kafka_*.jar", "debezium-connector-postgres-*.jar"):
        if not any(directory.glob(pattern)):
            raise KafkaJarsMissingError(directory)


def check_disk(directory: Path, needed_gib: float) -> None:
    """Check that the disk of the state directory has enough free space.

    Raises:
        TooLittleDiskError: it has less.
    """
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    free = shutil.disk_usage(existing).free / GIB
    if free < needed_gib:
        raise TooLittleDiskError(directory, free, needed_gib)


def check_memory(needed_gib: float) -> None:
    """Check that enough memory is free.

    Raises:
        TooLittleMemoryError: it is not.
    """
    free = min(psutil.virtual_memory().available, container_memory()) / GIB
    if free < needed_gib:
        raise TooLittleMemoryError(free, needed_gib)


def container_memory(root: Path = Path("/sys/fs/cgroup")) -> float:
    """Bytes that this process's container may still allocate; infinite without a limit."""
    with suppress(OSError, ValueError):
        limit = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
        # The kernel frees cached file pages when memory is needed.
        cached = 0
        for line in (root / "memory.stat").read_text().splitlines():
            key, _, value = line.partition(" ")
            if key in {"inactive_file", "active_file"}:
                cached += int(value)
        if limit != "max":
            return int(limit) - used + cached
    return float("inf")
