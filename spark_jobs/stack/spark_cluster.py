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
# Memory of a daemon, which only schedules; executors are processes of their own.
DAEMON_MEMORY = "256m"
ALIVE = "ALIVE"
# Names of secrets: for authentication within the cluster, and for signing requests to the daemons'
# web pages.
SECRET = "spark-cluster"  # noqa: S105
PAGE_SECRET = "spark-pages"  # noqa: S105
PAGE_FILTER = "org.apache.spark.ui.JWSFilter"
PAGE_KEY = f"spark.{PAGE_FILTER}.param.secretKey"
_SECRETS = Lock()


def cluster_parts(settings: Settings) -> list[Part]:
    """The master and the workers, if the settings ask for a cluster."""
    workers = range(1, settings.local.spark_workers + 1)
    return [master(settings), *(worker(settings, one) for one in workers)] if workers else []


def cluster_names(settings: Settings) -> tuple[str, ...]:
    """The parts that must be ready before an application starts."""
    return tuple(part.name for part in cluster_parts(settings))


def master(settings: Settings) -> Part:
    """The master; its state is on disk, so it recovers after a kill."""
    directory = settings.state / "spark"
    properties = directory / f"{MASTER}.conf"
    conf: dict[str, object] = {
        **authentication(settings),
        # It accepts applications from any caller.
        "spark.master.rest.enabled": "false",
        "spark.deploy.recoveryMode": "FILESYSTEM",
        "spark.deploy.recoveryDirectory": directory / "master",
        # Seconds that a recovering master waits for its workers and applications.
        "spark.deploy.recoveryTimeout": 10,
        # A long-running application must not be killed because some executors failed.
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
        # Delete directories of finished applications, into which executors copied jars.
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
    """Write a daemon's configuration, and the secret to where drivers read it.

    Args:
        settings: project settings.
        properties: the file to write.
        conf: options of Spark, by name.
    """
    with _SECRETS:
        secret = cluster_secret(settings)
        pages = {PAGE_KEY: ensure_secret(settings, PAGE_SECRET, random_page_key)}
    write_properties(cluster_secret_file(settings), secret)
    write_properties(properties, {**conf, **secret, "spark.ui.filters": PAGE_FILTER, **pages})


def cluster_secret(settings: Settings) -> dict[str, object]:
    """The secret of the cluster as Spark configuration; empty without a cluster."""
    if not settings.local.spark_workers:
        return {}
    return {"spark.authenticate.secret": ensure_secret(settings, SECRET)}


def random_page_key() -> str:
    """A key for HMAC-SHA256 in the form that Spark's filter reads: 32 bytes, URL-safe base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def daemon(main: str, *arguments: str, properties: Path) -> tuple[str, ...]:
    """A command line for a daemon of PySpark's own distribution."""
    program = str(spark_home() / "bin" / "spark-class")
    return (program, main, "--properties-file", str(properties), *arguments)


def daemon_environment() -> dict[str, str]:
    """Variables of a daemon; executors inherit them, so they listen on loopback too."""
    return {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }


def address(settings: Settings, kind: str, number: int) -> tuple[str, ...]:
    """The options for a daemon's listening address."""
    _, port = settings.ports.of(kind, number)
    _, page = settings.ports.of(f"{kind}_ui", number)
    return ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(page))


def probe_master(settings: Settings) -> str | None:
    """Why the master is not ready; None once it is no longer recovering."""
    status = master_status(settings)
    if status is None:
        return "does not answer yet"
    return None if status["status"] == ALIVE else f"is {str(status['status']).lower()}"


def probe_worker(settings: Settings, number: int) -> str | None:
    """Why a worker is not ready; None once the master lists it as alive."""
    status = master_status(settings)
    if status is None:
        return "waits for the master"
    _, port = settings.ports.of("spark_worker", number)
    workers = {one["port"]: one["state"] for one in status["workers"] if one["state"] == ALIVE}
    return None if port in workers else "is not registered with the master"


def master_status(settings: Settings) -> dict[str, Any] | None:
    """The master's status report, by the names of its JSON; None if it does not answer."""
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
