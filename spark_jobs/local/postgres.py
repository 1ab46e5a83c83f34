"""PostgreSQL: its own cluster with logical decoding, one database and owner per use.

The server is the distribution's; the cluster is initialised below the state directory, listens on
loopback only and knows no connection without a password.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import psycopg
from psycopg import sql

from spark_jobs.local.errors import PartFailedError, ProgramMissingError, StateUnreachableError
from spark_jobs.local.parts import Part
from spark_jobs.local.ports import LOOPBACK
from spark_jobs.local.secrets import ensure_secret, read_secret
from spark_jobs.settings import Settings

SUPERUSER = "postgres"
# The account that the distribution's package makes; used only when root starts the stack.
SERVER_ACCOUNT = "postgres"
DEBEZIUM = "debezium"
SHOP = "shop"
AIRFLOW = "airflow"
PUBLICATION = "tidemark"
MINIMUM_VERSION = 14
DEBIAN_SERVERS = Path("/usr/lib/postgresql")
REMEDY = "Install it with `apt-get install postgresql`."

SERVER_SETTINGS = """\
listen_addresses = '{loopback}'
port = {port}
unix_socket_directories = ''
password_encryption = 'scram-sha-256'
wal_level = 'logical'
max_wal_senders = 8
max_replication_slots = 8
max_slot_wal_keep_size = '4GB'
max_connections = 100
shared_buffers = '128MB'
max_wal_size = '512MB'
timezone = 'UTC'
log_timezone = 'UTC'
"""


def secret_name(role: str) -> str:
    """The secret that holds a role's password."""
    # Kafka Connect may read its directory, and with it this one password.
    return f"connect/{role}" if role == DEBEZIUM else f"postgres-{role}"


def dsn(settings: Settings, *, database: str, role: str) -> str:
    """A libpq URL of the local server; holds the role's password, so keep it out of logs."""
    password = read_secret(settings, secret_name(role))
    return f"postgresql://{role}:{password}@{LOOPBACK}:{settings.ports.postgres}/{database}"


def postgres_part(settings: Settings) -> Part:
    """The server as a part of the stack."""
    data = data_directory(settings)
    return Part(
        name="postgres",
        command=(binary("postgres"), "-D", str(data)),
        environment={"HOME": str(data.parent)},
        user=server_account(),
        ports={"ports.postgres": settings.ports.postgres},
        prepare=partial(prepare_cluster, settings),
        probe=partial(probe_server, settings),
        finish=partial(ensure_databases, settings),
        # Fast shutdown: end the clients' sessions, then stop.
        stop_signal="INT",
        ready_seconds=60,
    )


def data_directory(settings: Settings) -> Path:
    """The cluster's files; its parent belongs to the server's account."""
    return settings.state / "postgres" / "data"


def binary(name: str) -> str:
    """A program of the newest installed server, whether or not it is there."""
    versions = [
        (int(path.parent.parent.name), str(path))
        for path in DEBIAN_SERVERS.glob(f"*/bin/{name}")
        if path.parent.parent.name.isdigit()
    ]
    # Debian keeps the server's programs off PATH; other systems do not.
    return max(versions)[1] if versions else name


def server_account() -> str | None:
    """The account that the server needs, or None where the starting one will do."""
    return SERVER_ACCOUNT if os.geteuid() == 0 else None


def check_postgres() -> None:
    """Make sure that the server's programs and, for root, its account are there.

    Raises:
        ProgramMissingError: the server is absent or too old, or its package's account is absent.
    """
    for name in ("postgres", "initdb"):
        if shutil.which(binary(name)) is None:
            raise ProgramMissingError("postgresql", f"{name!r} not found", remedy=REMEDY)
    answer = subprocess.run(
        [binary("postgres"), "--version"], capture_output=True, text=True, check=False
    )
    match = re.search(r"(\d+)", answer.stdout)
    if match is None or int(match[1]) < MINIMUM_VERSION:
        raise ProgramMissingError("postgresql", f"is {answer.stdout.strip()}", remedy=REMEDY)
    account = server_account()
    if account:
        try:
            pwd.getpwnam(account)
        except KeyError as error:
            problem = f"the account {account!r} of its package is absent"
            raise ProgramMissingError("postgresql", problem, remedy=REMEDY) from error


def prepare_cluster(settings: Settings) -> None:
    """Initialise the cluster once, and write its settings each time."""
    data = data_directory(settings)
    account = server_account()
    data.parent.mkdir(parents=True, exist_ok=True)
    if account:
        check_reachable(data.parent, account)
        shutil.chown(data.parent, account, account)
    data.parent.chmod(0o700)
    if not (data / "PG_VERSION").exists():
        initialise(settings, data, account)
    own = data / "tidemark.conf"
    own.write_text(SERVER_SETTINGS.format(loopback=LOOPBACK, port=settings.ports.postgres))
    if account:
        shutil.chown(own, account, account)


def check_reachable(directory: Path, account: str) -> None:
    """Make sure that another account can enter every directory on the way.

    Raises:
        StateUnreachableError: names the first one that it may not enter.
    """
    owner = pwd.getpwnam(account)
    groups = set(os.getgrouplist(account, owner.pw_gid))
    for parent in reversed(directory.parents):
        status = parent.stat()
        bit = stat.S_IXOTH
        if status.st_uid == owner.pw_uid:
            bit = stat.S_IXUSR
        elif status.st_gid in groups:
            bit = stat.S_IXGRP
        if not status.st_mode & bit:
            raise StateUnreachableError(directory, parent, account)


def initialise(settings: Settings, data: Path, account: str | None) -> None:
    """Run ``initdb`` as the server's account, with the superuser's password from a file."""
    # A run that was cut off leaves a directory that initdb would refuse.
    shutil.rmtree(data, ignore_errors=True)
    password = ensure_secret(settings, secret_name(SUPERUSER))
    with tempfile.NamedTemporaryFile("w", dir=data.parent, prefix=".password") as file:
        file.write(password)
        file.flush()
        if account:
            shutil.chown(file.name, account, account)
        answer = subprocess.run(
            [
                *(binary("initdb"), "--pgdata", str(data), "--username", SUPERUSER),
                *("--encoding", "UTF8", "--locale", "C.UTF-8", "--auth", "scram-sha-256"),
                *("--data-checksums", "--pwfile", file.name),
            ],
            capture_output=True,
            text=True,
            check=False,
            user=account,
            group=account,
            extra_groups=[] if account else None,
            cwd=data.parent,
        )
    if answer.returncode != 0:
        raise PartFailedError(
            "postgres", "could not initialise its cluster", log=None, tail=answer.stderr[-2000:]
        )
    with (data / "postgresql.conf").open("a") as file:
        file.write("\ninclude 'tidemark.conf'\n")


def probe_server(settings: Settings) -> str | None:
    """What the server still lacks: it serves once it answers a query."""
    try:
        with connect(settings, SUPERUSER) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError as error:
        return str(error).strip().splitlines()[-1]
    return None


def connect(settings: Settings, database: str) -> psycopg.Connection:
    """A superuser's connection that commits each statement."""
    return psycopg.connect(
        dsn(settings, database=database, role=SUPERUSER), autocommit=True, connect_timeout=3
    )


def ensure_databases(settings: Settings) -> None:
    """Make the roles, databases, grants and the publication that are not there yet."""
    for role, attributes in ((SHOP, ""), (AIRFLOW, ""), (DEBEZIUM, "REPLICATION")):
        ensure_secret(settings, secret_name(role))
        with connect(settings, SUPERUSER) as connection:
            ensure_role(connection, settings, role, attributes)
    with connect(settings, SUPERUSER) as connection:
        for database in (SHOP, AIRFLOW):
            ensure_database(connection, database)
        connection.execute(
            sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(
                sql.Identifier(SHOP), sql.Identifier(DEBEZIUM)
            )
        )
    with connect(settings, SHOP) as connection:
        ensure_capture(connection)


def ensure_role(
    connection: psycopg.Connection, settings: Settings, role: str, attributes: str
) -> None:
    """Make a role that may log in; its password travels and is logged only as a verifier."""
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
    verifier = connection.pgconn.encrypt_password(
        read_secret(settings, secret_name(role)).encode(), role.encode(), b"scram-sha-256"
    )
    connection.execute(
        sql.SQL("{} ROLE {} LOGIN {} PASSWORD {}").format(
            sql.SQL("ALTER" if known else "CREATE"),
            sql.Identifier(role),
            sql.SQL(attributes),
            sql.Literal(verifier.decode()),
        )
    )


def ensure_database(connection: psycopg.Connection, name: str) -> None:
    """Make a database that its role of the same name owns and nobody else may enter."""
    known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
    if not known:
        connection.execute(sql.SQL("CREATE DATABASE {0} OWNER {0}").format(sql.Identifier(name)))
    connection.execute(
        sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name))
    )


def ensure_capture(connection: psycopg.Connection) -> None:
    """Let Debezium read what the shop owns now and later, and publish every table.

    A superuser makes the publication, so that Debezium's role needs no right to create one.
    """
    shop, debezium = sql.Identifier(SHOP), sql.Identifier(DEBEZIUM)
    for statement in (
        "GRANT USAGE ON SCHEMA public TO {debezium}",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {debezium}",
        (
            "ALTER DEFAULT PRIVILEGES FOR ROLE {shop} IN SCHEMA public "
            "GRANT SELECT ON TABLES TO {debezium}"
        ),
    ):
        connection.execute(sql.SQL(statement).format(shop=shop, debezium=debezium))
    if not connection.execute(
        "SELECT 1 FROM pg_publication WHERE pubname = %s", [PUBLICATION]
    ).fetchone():
        connection.execute(
            sql.SQL("CREATE PUBLICATION {} FOR ALL TABLES").format(sql.Identifier(PUBLICATION))
        )
