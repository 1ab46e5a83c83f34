"""Addresses of the sinks' systems: as configured, or of parts of the local stack."""

from __future__ import annotations

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.access.secrets import secret_path
from spark_jobs.settings import Settings
from spark_jobs.sinks.target import Addresses
from spark_jobs.stack import cassandra_server
from spark_jobs.stack.postgres import SERVING, dsn, secret_name
from spark_jobs.stack.redis_server import PASSWORD, url


def sink_addresses(settings: Settings) -> Addresses:
    """The addresses; they contain passwords, so do not log them.

    Raises:
        SecretMissingError: the login to the brokers is not known.
    """
    return Addresses(
        kafka=kafka_access(settings, Principal.SINKS),
        postgres=settings.sinks.postgres or _local_postgres(settings),
        redis=settings.sinks.redis or _local_redis(settings),
        cassandra=settings.sinks.cassandra or _local_cassandra(settings),
    )


def _local_postgres(settings: Settings) -> str:
    if not secret_path(settings, secret_name(SERVING)).exists():
        return ""
    return dsn(settings, database=SERVING, role=SERVING)


def _local_redis(settings: Settings) -> str:
    return url(settings) if secret_path(settings, PASSWORD).exists() else ""


def _local_cassandra(settings: Settings) -> str:
    known = secret_path(settings, cassandra_server.PASSWORD).exists()
    return cassandra_server.url(settings) if known else ""
