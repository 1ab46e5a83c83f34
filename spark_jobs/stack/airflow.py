"""Airflow's components as parts of the stack, and the preparation of their database."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

import httpx
import psycopg
from psycopg import sql

from spark_jobs.access import timeouts
from spark_jobs.access.airflow import ANNOUNCER
from spark_jobs.access.secrets import AIRFLOW_ANNOUNCER, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.airflow_config import (
    airflow_address,
    airflow_environment,
    write_airflow_config,
)
from spark_jobs.stack.airflow_database import RESET
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.errors import PartFailedError
from spark_jobs.stack.parts import Part, Task
from spark_jobs.stack.postgres import AIRFLOW, dsn
from spark_jobs.stack.secrets import AIRFLOW_USERS, ensure_secret, random_password
from spark_jobs.stack.trust import trusted

API_SERVER = "airflow-api-server"
DATABASE = "airflow-database"
# User name and role: platform administrator, DAG operator, on-call engineer, reader.
USERS = {"admin": "Admin", "engineer": "Op", "oncall": "User", "analyst": "Viewer"}
PACKAGES = ("apache-airflow", "apache-airflow-providers-fab")


def airflow_steps(settings: Settings) -> list[Task | Part]:
    """The database's preparation, then the four components."""
    return [
        Task(DATABASE, partial(prepare_database, settings), needs=("postgres",)),
        component(
            settings,
            "api-server",
            ports={"ports.airflow": settings.ports.airflow},
            key="metadatabase",
        ),
        component(settings, "scheduler", "--skip-serve-logs", key="scheduler"),
        component(settings, "dag-processor", key="dag_processor"),
        component(settings, "triggerer", "--skip-serve-logs", key="triggerer"),
    ]


def component(
    settings: Settings, name: str, *options: str, key: str, ports: dict[str, int] | None = None
) -> Part:
    """One component of Airflow.

    Args:
        settings: project settings.
        name: the command that starts it.
        options: of the command.
        key: its name in Airflow's health report.
        ports: the ports that it serves, by the setting that names them.
    """
    return Part(
        name=f"airflow-{name}",
        command=(str(Path(sys.executable).parent / "airflow"), name, *options),
        needs=(DATABASE,),
        environment=airflow_environment(settings),
        ports=ports or {},
        probe=partial(probe_component, settings, key),
        stop_seconds=20,
    )


def probe_component(settings: Settings, key: str) -> str | None:
    """Why a component is not ready, from Airflow's own health report; None: it is."""
    try:
        health = f"{airflow_address(settings)}/api/v2/monitor/health"
        answer = httpx.get(health, timeout=5, trust_env=False, verify=trusted())
        answer.raise_for_status()
        status = (answer.json().get(key) or {}).get("status")
    except (httpx.HTTPError, ValueError):
        return "the api-server does not answer yet"
    return None if status == "healthy" else f"is {status or 'unknown'}"


def prepare_database(settings: Settings) -> None:
    """Migrate the metadata database to the installed versions; create users and pools.

    This takes several seconds, so the database itself has a note of what was prepared.

    Raises:
        PartFailedError: the migration fails.
    """
    write_airflow_config(settings)
    users = digest_of_users(ensure_secret(settings, AIRFLOW_USERS, new_users))
    password = ensure_secret(settings, AIRFLOW_ANNOUNCER)
    wanted = {package: version(package) for package in PACKAGES}
    # A new password must reach the database. It is random, so its digest tells nobody anything.
    digest = hashlib.sha256(f"{ANNOUNCER}:{password}".encode()).hexdigest()[:16]
    pools = " ".join(pool_arguments(settings))
    wanted |= {"pools": pools, "announcer": digest, "users": users}
    before = noted(settings)
    if before == wanted:
        return
    # Of a database of an earlier release nobody knows whether its users are those of the file.
    reset = before.get("users", users) != users
    log = settings.state / "logs" / f"{DATABASE}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        code = subprocess.run(
            [sys.executable, *preparation(settings, reset=reset)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**stack_environment(settings), **airflow_environment(settings)},
            check=False,
        ).returncode
    if code != 0:
        tail = log.read_text(errors="replace")[-2000:]
        raise PartFailedError(DATABASE, "could not be prepared", log=log, tail=tail)
    put_note(settings, json.dumps(wanted))


def digest_of_users(text: str) -> str:
    """A digest of the users' file, slow to compute: people may have chosen its passwords."""
    return hashlib.scrypt(text.encode(), salt=DATABASE.encode(), n=2**14, r=8, p=1, dklen=8).hex()


def noted(settings: Settings) -> dict[str, str]:
    """The note of the database's last preparation; empty if there is none, or no schema."""
    query = "SELECT obj_description(to_regclass('alembic_version'), 'pg_class')"
    with connect_airflow(settings) as connection:
        row = connection.execute(query).fetchone()
    found: dict[str, str] = json.loads(row[0]) if row and row[0] else {}
    return found


def put_note(settings: Settings, note: str) -> None:
    """Note a preparation in the database itself.

    It is the comment of the table with the schema's version: it is deleted, dumped and restored
    together with the schema, as no file beside the database would be.
    """
    statement = sql.SQL("COMMENT ON TABLE alembic_version IS {}").format(sql.Literal(note))
    with connect_airflow(settings) as connection:
        connection.execute(statement)


def connect_airflow(settings: Settings) -> psycopg.Connection:
    """A connection to the metadata database, as its owner."""
    url = dsn(settings, database=AIRFLOW, role=AIRFLOW)
    return psycopg.connect(url, **timeouts.POSTGRES)


def preparation(settings: Settings, *, reset: bool = False) -> tuple[str, ...]:
    """The arguments with which Python prepares the database; see ``make_users`` for ``reset``."""
    files = (secret_path(settings, one) for one in (AIRFLOW_USERS, AIRFLOW_ANNOUNCER))
    module = "spark_jobs.stack.airflow_database"
    options = [RESET] if reset else []
    return ("-m", module, *options, *map(str, files), *pool_arguments(settings))


def pool_arguments(settings: Settings) -> list[str]:
    """Airflow's pools with their slots."""
    return [f"{name}={slots}" for name, slots in settings.airflow.pools]


def new_users() -> str:
    """The users with new passwords, in the form of the secret."""
    return json.dumps(
        {user: {"role": role, "password": random_password()} for user, role in USERS.items()},
        indent=2,
    )
