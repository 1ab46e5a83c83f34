"""PostgreSQL: a cluster with logical decoding, and a database and owner for each use.

The programs are the distribution's; the cluster is initialised below the state directory, listens
on loopback only and requires a password for each connection.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psycopg

from spark_jobs.access.secrets import secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.certificates import POSTGRES, ensure_certificate
from spark_jobs.stack.errors import PartFailedError, ProgramMissingError, StateUnreachableError
from spark_jobs.stack.parts import Part
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.postgres import (
    SUPERUSER,
    connect,
    ensure_databases,
    secret_name,
)
from spark_jobs.stack.secrets import ensure_secret, random_password, write_secret

# The account of the distribution's package; used only if root starts the stack.
SERVER_ACCOUNT = "postgres"
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
tcp_keepalives_idle = 30
tcp_keepalives_interval = 10
tcp_keepalives_count = 3
tcp_user_timeout = '30s'
shared_buffers = '128MB'
max_wal_size = '512MB'
timezone = 'UTC'
log_timezone = 'UTC'
"""
# Logins require an encrypted connection.
TLS_SETTINGS = """\
ssl = on
ssl_cert_file = 'tidemark.pem'
ssl_key_file = 'tidemark.pem'
ssl_min_protocol_version = 'TLSv1.2'
hba_file = '{data}/tidemark_hba.conf'
"""
TLS_ACCESS = """\
hostssl all         all {loopback}/32 scram-sha-256
hostssl replication all {loopback}/32 scram-sha-256
"""


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
    )


def data_directory(settings: Settings) -> Path:
    """The cluster's files; its parent belongs to the server's account."""
    return settings.state / "postgres" / "data"


def binary(name: str) -> str:
    """The path of a program of the newest installed server; it may not exist."""
    versions = [
        (int(path.parent.parent.name), str(path))
        for path in DEBIAN_SERVERS.glob(f"*/bin/{name}")
        if path.parent.parent.name.isdigit()
    ]
    # Debian keeps the server's programs off PATH; other systems do not.
    return max(versions)[1] if versions else name


def server_account() -> str | None:
    """The account for the server, or None if it runs as the account that starts the stack."""
    return SERVER_ACCOUNT if os.geteuid() == 0 else None


def check_postgres() -> None:
    """Check that the server's programs are installed, and for root its account.

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
    """Initialise the cluster once, and write its settings each time.

    A superuser's password that was lost is replaced.

    Raises:
        StateUnreachableError: the server's account cannot reach the directory.
        PartFailedError: ``initdb`` fails, or the server cannot set the password.
    """
    data = data_directory(settings)
    account = server_account()
    data.parent.mkdir(parents=True, exist_ok=True)
    if account:
        check_reachable(data.parent, account)
        shutil.chown(data.parent, account, account)
    data.parent.chmod(0o700)
    if not (data / "PG_VERSION").exists():
        initialise(settings, data, account)
    for name, text in server_files(settings).items():
        own = data / name
        own.touch(mode=0o600)
        own.write_text(text)
        if account:
            shutil.chown(own, account, account)
    if not secret_path(settings, secret_name(SUPERUSER)).exists():
        replace_password(settings, data, account)


def server_files(settings: Settings) -> dict[str, str]:
    """The contents of the cluster's configuration files, by name."""
    text = SERVER_SETTINGS.format(loopback=LOOPBACK, port=settings.ports.postgres)
    if not settings.security.enabled:
        return {"tidemark.conf": text}
    return {
        "tidemark.pem": ensure_certificate(settings, POSTGRES),
        "tidemark_hba.conf": TLS_ACCESS.format(loopback=LOOPBACK),
        # A quote is doubled within a value.
        "tidemark.conf": text
        + TLS_SETTINGS.format(data=str(data_directory(settings)).replace("'", "''")),
    }


def check_reachable(directory: Path, account: str) -> None:
    """Check that another account can traverse every parent directory.

    Raises:
        StateUnreachableError: names the first directory that it cannot.
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
    """Run ``initdb`` as the server's account, with the superuser's password from a file.

    The cluster gets its place when it is complete: an interrupted ``initdb`` leaves files that
    look like a cluster.

    Raises:
        PartFailedError: ``initdb`` fails.
    """
    fresh = data.with_name("fresh")
    for unfinished in (fresh, data):
        shutil.rmtree(unfinished, ignore_errors=True)
    password = ensure_secret(settings, secret_name(SUPERUSER))
    with tempfile.NamedTemporaryFile("w", dir=data.parent, prefix=".password") as file:
        file.write(password)
        file.flush()
        if account:
            shutil.chown(file.name, account, account)
        answer = run_as(
            account,
            [
                *(binary("initdb"), "--pgdata", str(fresh), "--username", SUPERUSER),
                *("--encoding", "UTF8", "--locale", "C.UTF-8", "--auth", "scram-sha-256"),
                *("--data-checksums", "--pwfile", file.name),
            ],
            data.parent,
        )
    if answer.returncode != 0:
        raise PartFailedError(
            "postgres", "could not initialise its cluster", log=None, tail=answer.stderr[-2000:]
        )
    with (fresh / "postgresql.conf").open("a") as file:
        file.write("\ninclude 'tidemark.conf'\n")
    fresh.rename(data)


def replace_password(settings: Settings, data: Path, account: str | None) -> None:
    """Give the superuser a new password, without the old one: nobody else may use the cluster.

    Raises:
        PartFailedError: the server cannot set it.
    """
    password = random_password()
    answer = run_as(
        account,
        [
            *(binary("postgres"), "--single", "-D", str(data)),
            *("-c", "exit_on_error=on", "-c", "log_min_error_statement=panic", "postgres"),
        ],
        data.parent,
        text=f"ALTER ROLE {SUPERUSER} PASSWORD '{password}'\n",
    )
    if answer.returncode != 0:
        raise PartFailedError(
            "postgres", "could not replace a lost password", log=None, tail=answer.stderr[-2000:]
        )
    # Written last: without the file, the next start does this again.
    write_secret(settings, secret_name(SUPERUSER), password)


def run_as(
    account: str | None, command: Sequence[str], directory: Path, *, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program of the server as its account.

    Args:
        account: None: the account of this process.
        command: the program's path and its arguments.
        directory: where it runs.
        text: its input.
    """
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        user=account,
        group=account,
        extra_groups=[] if account else None,
        cwd=directory,
    )


def probe_server(settings: Settings) -> str | None:
    """Why the server is not ready; None once it answers a query."""
    try:
        with connect(settings, SUPERUSER) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError as error:
        return str(error).strip().splitlines()[-1]
    return None
