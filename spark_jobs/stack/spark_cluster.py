"""Spark's standalone cluster on loopback: a master and its workers, for all applications here."""

from __future__ import annotations

import base64
import secrets
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import httpx
import jwt

from spark_jobs.access.secrets import read_secret, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.java import write_properties
from spark_jobs.stack.object_store import store_names, store_variables
from spark_jobs.stack.parts import Part, numbered
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.secrets import ensure_secret
from spark_jobs.stack.spark_home import spark_home
from spark_jobs.stack.trust import trusted
from spark_jobs.storage.conf import authentication, cluster_secret_file

MASTER = "spark-master"
WORKER = "spark-worker"
MASTER_CLASS = "org.apache.spark.deploy.master.Master"
WORKER_CLASS = "org.apache.spark.deploy.worker.Worker"
# What a daemon needs to hand out executors; the computing is done in their own processes.
DAEMON_MEMORY = "256m"
ALIVE = "ALIVE"
# The names of the secrets: what the cluster's processes ask of each other, and what signs the calls
# of the daemons' web pages.
SECRET = "spark-cluster"  # noqa: S105
PAGE_SECRET = "spark-pages"  # noqa: S105
PAGE_FILTER = "org.apache.spark.ui.JWSFilter"
PAGE_KEY = f"spark.{PAGE_FILTER}.param.secretKey"
_SECRETS = Lock()


def cluster_parts(settings: Settings) -> list[Part]:
    """The master and the workers; none where the settings ask for no cluster."""
    workers = range(1, settings.local.spark_workers + 1)
    return [master(settings), *(worker(settings, one) for one in workers)] if workers else []


def cluster_names(settings: Settings) -> tuple[str, ...]:
    """The parts that must serve before an application starts."""
    return tuple(part.name for part in cluster_parts(settings))


def master(settings: Settings) -> Part:
    """The master, which keeps what it knows on disk: killed, it goes on where it was."""
    directory = settings.state / "spark"
    properties = directory / f"{MASTER}.conf"
    conf: dict[str, object] = {
        **authentication(settings),
        # It takes applications from whoever calls.
        "spark.master.rest.enabled": "false",
        "spark.deploy.recoveryMode": "FILESYSTEM",
        "spark.deploy.recoveryDirectory": directory / "master",
        # So many seconds it waits for workers and applications that it knew.
        "spark.deploy.recoveryTimeout": 10,
        # An application without end must not be given up after some executors that failed.
        "spark.deploy.maxExecutorRetries": -1,
    }
    return Part(
        name=MASTER,
        command=daemon(MASTER_CLASS, *address(settings, "spark_master", 1), properties=properties),
        environment=daemon_environment(),
        ports=dict(settings.ports.of(kind) for kind in ("spark_master", "spark_master_ui")),
        prepare=lambda: prepare_daemon(settings, properties, conf),
        probe=partial(probe_master, settings),
    )


def worker(settings: Settings, number: int) -> Part:
    """One worker and, as its children, the executors of all applications on it."""
    name = numbered(WORKER, number)
    directory = settings.state / "spark"
    properties = directory / f"{name}.conf"
    conf: dict[str, object] = {
        **authentication(settings),
        # Directories of applications that have ended; executors copy jars into them.
        "spark.worker.cleanup.enabled": "true",
        "spark.worker.cleanup.appDataTtl": 24 * 3600,
        "spark.worker.ui.retainedExecutors": 50,
    }
    local = settings.local
    return Part(
        name=name,
        command=daemon(
            WORKER_CLASS,
            *address(settings, "spark_worker", number),
            *("--cores", str(local.spark_worker_cores), "--memory", local.spark_worker_memory),
            *("--work-dir", str(directory / name)),
            f"spark://{LOOPBACK}:{settings.ports.spark_master}",
            properties=properties,
        ),
        needs=(MASTER, *store_names(settings)),
        variables=store_variables(settings),
        environment={
            **daemon_environment(),
            "SPARK_LOCAL_DIRS": str(settings.state / "spark-local" / name),
        },
        ports=dict(settings.ports.of(kind, number) for kind in ("spark_worker", "spark_worker_ui")),
        prepare=lambda: prepare_daemon(settings, properties, conf),
        probe=partial(probe_worker, settings, number),
    )


def prepare_daemon(settings: Settings, properties: Path, conf: dict[str, object]) -> None:
    """Write a daemon's configuration, and the secret where drivers look for it."""
    with _SECRETS:
        secret = cluster_secret(settings)
        pages = {PAGE_KEY: ensure_secret(settings, PAGE_SECRET, random_page_key)}
    write_properties(cluster_secret_file(settings), secret)
    write_properties(properties, {**conf, **secret, "spark.ui.filters": PAGE_FILTER, **pages})


def cluster_secret(settings: Settings) -> dict[str, object]:
    """The secret of the cluster as Spark's configuration; nothing where there is no cluster."""
    if not settings.local.spark_workers:
        return {}
    return {"spark.authenticate.secret": ensure_secret(settings, SECRET)}


def random_page_key() -> str:
    """A key for HMAC-SHA256 in the form that Spark's filter reads: 32 bytes, base64 for URLs."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def daemon(main: str, *arguments: str, properties: Path) -> tuple[str, ...]:
    """A command line for a daemon of PySpark's own distribution."""
    program = str(spark_home() / "bin" / "spark-class")
    return (program, main, "--properties-file", str(properties), *arguments)


def daemon_environment() -> dict[str, str]:
    """Variables of a daemon; executors inherit them, so they stay on loopback too."""
    return {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }


def address(settings: Settings, kind: str, number: int) -> tuple[str, ...]:
    """The options that say where a daemon listens."""
    _, port = settings.ports.of(kind, number)
    _, page = settings.ports.of(f"{kind}_ui", number)
    return ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(page))


def probe_master(settings: Settings) -> str | None:
    """What the master still lacks: it serves once it is no longer recovering."""
    status = master_status(settings)
    if status is None:
        return "does not answer yet"
    return None if status["status"] == ALIVE else f"is {str(status['status']).lower()}"


def probe_worker(settings: Settings, number: int) -> str | None:
    """What a worker still lacks: it serves once the master knows it as alive."""
    status = master_status(settings)
    if status is None:
        return "waits for the master"
    _, port = settings.ports.of("spark_worker", number)
    workers = {one["port"]: one["state"] for one in status["workers"] if one["state"] == ALIVE}
    return None if port in workers else "is not registered with the master"


def master_status(settings: Settings) -> dict[str, Any] | None:
    """What the master tells of itself, or None where it does not answer."""
    _, page = settings.ports.of("spark_master_ui")
    if not secret_path(settings, PAGE_SECRET).exists():
        return None
    key = base64.urlsafe_b64decode(read_secret(settings, PAGE_SECRET))
    headers = {"Authorization": f"Bearer {jwt.encode({'sub': 'tidemark'}, key, 'HS256')}"}
    address = f"http://{LOOPBACK}:{page}/json/"
    try:
        answer = httpx.get(address, headers=headers, timeout=5, trust_env=False, verify=trusted())
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError):
        return None
    return found
