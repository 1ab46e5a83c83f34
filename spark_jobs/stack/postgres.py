"""The server's databases and roles: one of each per use, with a password that was generated.

A role may connect to its own database only; Debezium's may read the shop's.
"""

from __future__ import annotations

from urllib.parse import urlencode

import psycopg
from psycopg import sql

from spark_jobs.access import timeouts
from spark_jobs.access.secrets import AUTHORITY, read_secret, secret_path
from spark_jobs.sections import ControlDatabase
from spark_jobs.settings import CONTROL, Settings
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.secrets import ensure_secret, write_secret

SUPERUSER = "postgres"
DEBEZIUM = "debezium"
SHOP = "shop"
AIRFLOW = "airflow"
# Verify the server's certificate and name, in addition to encryption.
VERIFIED = "verify-full"
# The database that sinks write to.
SERVING = "serving"
PUBLICATION = "tidemark"


def secret_name(role: str) -> str:
    """The secret that holds a role's password."""
    # In a directory of its own, because Kafka Connect may read the whole directory.
    return f"connect/{role}" if role == DEBEZIUM else f"postgres-{role}"


def dsn(settings: Settings, *, database: str, role: str) -> str:
    """A libpq URL of the local server; contains the role's password, so do not log it.

    Raises:
        SecretMissingError: the role's password does not exist yet.
    """
    password = read_secret(settings, secret_name(role))
    address = f"postgresql://{role}:{password}@{LOOPBACK}:{settings.ports.postgres}/{database}"
    if not settings.security.enabled:
        return address
    return f"{address}?{urlencode({'sslmode': VERIFIED, 'sslrootcert': authority(settings)})}"


def authority(settings: Settings) -> str:
    """The certificate file of the authority that signed the server's certificate."""
    return str(secret_path(settings, AUTHORITY))


def connect(settings: Settings, database: str) -> psycopg.Connection:
    """A superuser's connection in autocommit mode."""
    return psycopg.connect(
        dsn(settings, database=database, role=SUPERUSER), **timeouts.POSTGRES, autocommit=True
    )


def ensure_databases(settings: Settings) -> None:
    """Create the roles, databases, grants and the publication that do not exist yet."""
    owners = (SHOP, AIRFLOW, SERVING, *control_role(settings))
    for role, attributes in (*((owner, "") for owner in owners), (DEBEZIUM, "REPLICATION")):
        ensure_secret(settings, secret_name(role))
        with connect(settings, SUPERUSER) as connection:
            ensure_role(connection, settings, role, attributes)
    with connect(settings, SUPERUSER) as connection:
        for database in owners:
            ensure_database(connection, database)
        connection.execute(
            sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(
                sql.Identifier(SHOP), sql.Identifier(DEBEZIUM)
            )
        )
    if CONTROL in owners:
        password = read_secret(settings, secret_name(CONTROL))
        line = f"{LOOPBACK}:*:{CONTROL}:{CONTROL}:{password}"
        write_secret(settings, settings.control_passfile.name, line)
    with connect(settings, SHOP) as connection:
        ensure_capture(connection)


def control_role(settings: Settings) -> tuple[str, ...]:
    """The owner of the control database, if it is on this server."""
    return (CONTROL,) if settings.local.control is ControlDatabase.POSTGRES else ()


def ensure_role(
    connection: psycopg.Connection, settings: Settings, role: str, attributes: str
) -> None:
    """Create a role with login; its password is sent and logged only as a SCRAM verifier."""
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
    """Create a database whose owner is the role of the same name; others cannot connect."""
    known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
    if not known:
        connection.execute(sql.SQL("CREATE DATABASE {0} OWNER {0}").format(sql.Identifier(name)))
    connection.execute(
        sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name))
    )


def ensure_capture(connection: psycopg.Connection) -> None:
    """Let Debezium read all present and future tables of the shop, and publish them.

    A superuser creates the publication, so that Debezium's role needs no right to do so.
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
