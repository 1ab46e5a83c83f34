"""Cassandra: one node from Maven artefacts, on loopback, with a password; started on demand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import yaml

from spark_jobs.access.secrets import read_secret
from spark_jobs.settings import Settings
from spark_jobs.stack.errors import CassandraJarsMissingError, PartFailedError
from spark_jobs.stack.java import LOGBACK, SMALL_JVM, java_program
from spark_jobs.stack.parts import Part
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.secrets import ensure_secret

NAME = "cassandra"
USER = "cassandra"
PASSWORD = "cassandra"  # noqa: S105 - the name of the secret
# The default password of a new server's only user.
_FIRST_PASSWORD = "cassandra"  # noqa: S105
HEAP = "512m"
ALIVE = "SELECT release_version FROM system.local"
# The packages of Java 17 that the server needs access to, as in its own scripts.
_EXPORTED = (
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
)
_OPENED = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
)


def cassandra_part(settings: Settings) -> Part:
    """The server as a part of the stack."""
    home = directory(settings)
    return Part(
        name=NAME,
        command=(
            java_program(),
            f"-Xmx{HEAP}",
            "-Xss512k",
            *SMALL_JVM,
            *(word for one in _EXPORTED for word in ("--add-exports", f"{one}=ALL-UNNAMED")),
            *(word for one in _OPENED for word in ("--add-opens", f"{one}=ALL-UNNAMED")),
            f"-Dcassandra.config={(home / 'cassandra.yaml').as_uri()}",
            f"-Dcassandra.storagedir={home}",
            f"-Dlogback.configurationFile={home / 'logback.xml'}",
            "-Dcassandra-foreground=yes",
            "-XX:+ExitOnOutOfMemoryError",
            # Java after 17 disables the server's security manager unless this is set.
            "-Djava.security.manager=allow",
            # A single node need not wait for others, and creates its user at the first start.
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.superuser_setup_delay_ms=0",
            *("-cp", f"{settings.cassandra_jars}/*"),
            "org.apache.cassandra.service.CassandraDaemon",
        ),
        ports={
            "ports.cassandra": settings.ports.cassandra,
            "ports.cassandra_storage": settings.ports.cassandra_storage,
        },
        prepare=partial(prepare_server, settings),
        probe=partial(probe_server, settings),
        finish=partial(take_over, settings),
        stop_seconds=30,
    )


def directory(settings: Settings) -> Path:
    """The server's configuration and data."""
    return settings.state / "cassandra"


def check_cassandra(settings: Settings) -> None:
    """Check that Maven has downloaded the server's classpath.

    Raises:
        CassandraJarsMissingError: jars are missing.
    """
    if not any(settings.cassandra_jars.glob("cassandra-all-*.jar")):
        raise CassandraJarsMissingError(settings.cassandra_jars)


def prepare_server(settings: Settings) -> None:
    """Write the configuration, and generate the password if there is none."""
    ensure_secret(settings, PASSWORD)
    home = directory(settings)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "logback.xml").write_text(LOGBACK)
    (home / "cassandra.yaml").write_text(yaml.safe_dump(configuration(settings)))


def configuration(settings: Settings) -> dict[str, object]:
    """The server's configuration, with the keys of ``cassandra.yaml``."""
    home, ports = directory(settings), settings.ports
    seeds = [{"seeds": f"{LOOPBACK}:{ports.cassandra_storage}"}]
    return {
        "cluster_name": "tidemark",
        "num_tokens": 1,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch",
        "seed_provider": [
            {"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": seeds}
        ],
        "listen_address": LOOPBACK,
        "rpc_address": LOOPBACK,
        "native_transport_port": ports.cassandra,
        "storage_port": ports.cassandra_storage,
        "authenticator": "PasswordAuthenticator",
        "authorizer": "CassandraAuthorizer",
        # A changed password takes effect immediately.
        "credentials_validity": "0ms",
        "data_file_directories": [str(home / "data")],
        # A write is on the disk after a second.
        "commitlog_sync": "periodic",
        "commitlog_sync_period": "1000ms",
        # A table that a sink recreates needs no snapshot of the old one.
        "auto_snapshot": False,
    }


def url(settings: Settings, password: str | None = None) -> str:
    """The local server's address; contains a password, so do not log it."""
    known = read_secret(settings, PASSWORD) if password is None else password
    return f"cassandra://{USER}:{known}@{LOOPBACK}:{settings.ports.cassandra}"


def probe_server(settings: Settings) -> str | None:
    """Why the server is not ready; None once its user can log in."""
    problem = _asked(url(settings), ALIVE)
    if problem is not None and "AuthenticationFailed" in problem:
        problem = _asked(url(settings, _FIRST_PASSWORD), "SELECT role FROM system_auth.roles")
    return problem


def take_over(settings: Settings) -> None:
    """Replace the default password by this stack's own, if that was not done yet.

    Raises:
        PartFailedError: the server refuses it.
    """
    if _asked(url(settings), ALIVE) is None:
        return
    statement = f"ALTER ROLE {USER} WITH PASSWORD = '{read_secret(settings, PASSWORD)}'"
    problem = _asked(url(settings, _FIRST_PASSWORD), statement) or _asked(url(settings), ALIVE)
    if problem is not None:
        raise PartFailedError(NAME, f"does not take its password: {problem}", log=None)


def _asked(address: str, statement: str) -> str | None:
    """Why a statement failed, or None."""
    from cassandra import DriverException  # noqa: PLC0415 - needed by this part alone
    from cassandra.cluster import NoHostAvailable  # noqa: PLC0415

    from spark_jobs.access.cassandra import cassandra_cluster  # noqa: PLC0415

    try:
        with cassandra_cluster(address) as cluster:
            cluster.connect().execute(statement)
    except (DriverException, NoHostAvailable) as error:
        return str(error)
    return None
