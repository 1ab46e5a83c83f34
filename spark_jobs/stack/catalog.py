"""Every step of the stack's start, and the choice of some of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from spark_jobs.access.errors import CertificateRefusedError
from spark_jobs.access.kafka import Principal
from spark_jobs.errors import ProblemsError
from spark_jobs.settings import Settings
from spark_jobs.silver.errors import DatabaseUnreachableError
from spark_jobs.stack.airflow import API_SERVER, airflow_steps
from spark_jobs.stack.cassandra_server import NAME as CASSANDRA
from spark_jobs.stack.cassandra_server import cassandra_part
from spark_jobs.stack.connect import RIGHTS, connect_parts, register, worker_names
from spark_jobs.stack.connector import captured_tables
from spark_jobs.stack.endpoint import NAME as ENDPOINT
from spark_jobs.stack.endpoint import endpoint_part
from spark_jobs.stack.errors import UnknownPartError
from spark_jobs.stack.kafka import admin, broker_names, ensure_topics, kafka_parts
from spark_jobs.stack.kafka_rights import connect_rights, grant, grant_declared
from spark_jobs.stack.object_store import object_store_parts
from spark_jobs.stack.parts import Part, Step, Task
from spark_jobs.stack.postgres import DEBEZIUM, SHOP, dsn
from spark_jobs.stack.postgres_server import postgres_part
from spark_jobs.stack.redis_server import redis_part
from spark_jobs.stack.source_check import source_problems
from spark_jobs.stack.spark_cluster import cluster_parts
from spark_jobs.stack.spark_connect import spark_connect_part
from spark_jobs.stack.streams import streams_part

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest

# Parts that only start when they are named.
ON_DEMAND = {ENDPOINT, CASSANDRA}
# Parts that read the compiled manifest.
MANIFEST_PARTS = {"streams", "airflow-dag-processor", ENDPOINT}


def check_part_names(steps: Sequence[Step], names: Sequence[str]) -> tuple[str, ...]:
    """The chosen parts in the stack's order; by default all that are not started on demand.

    Raises:
        UnknownPartError: no part has such a name.
    """
    known = tuple(step.name for step in steps if isinstance(step, Part))
    for name in names:
        if name not in known:
            raise UnknownPartError(name, known)
    return tuple(name for name in known if (name in names if names else name not in ON_DEMAND))


def all_steps(settings: Settings) -> list[Step]:
    """Every part and task of the stack."""
    return [
        postgres_part(settings),
        redis_part(settings),
        cassandra_part(settings),
        *object_store_parts(settings),
        *kafka_parts(settings),
        *security_steps(settings),
        *connect_parts(settings),
        *cluster_parts(settings),
        spark_connect_part(settings),
        Task("topics", partial(make_topics, settings), needs=broker_names(settings)),
        Task(
            "connector",
            partial(make_connector, settings),
            needs=(*worker_names(settings), "postgres"),
        ),
        streams_part(settings),
        *airflow_steps(settings),
        endpoint_part(settings),
    ]


def with_needs(steps: Sequence[Step], names: Sequence[str]) -> list[Step]:
    """The named parts and every step that they need, directly or not.

    The streams can start without the connector and Redis, but those are added: one feeds the
    streams, and the streams feed the other.
    """
    by_name = {step.name: step for step in steps}
    kept: set[str] = set()
    more = [*names, *(["connector", "redis"] if "streams" in names else [])]
    while more:
        name = more.pop()
        if name not in kept:
            kept.add(name)
            more += by_name[name].needs
            # Airflow's api-server reports the health of the other components.
            more += [API_SERVER] if name.startswith("airflow-") else []
    return [step for step in steps if step.name in kept]


def make_topics(settings: Settings) -> None:
    """Create the topics of the manifest's sources, so that streams find them before any record.

    Clients get rights to these topics, and lose rights to what is no longer declared.

    Raises:
        PartFailedError: the broker refuses a topic or a right.
    """
    from spark_jobs.graph.manifest import Manifest  # noqa: PLC0415
    from spark_jobs.storage.in_force import manifest_in_force  # noqa: PLC0415

    # An older file would take rights from what was applied. A pod has no rights to give.
    secured = settings.security.enabled
    manifest = manifest_in_force(settings) if secured else Manifest.read(settings.manifest_file)
    ensure_topics(settings, [one.topic for one in manifest.sources.values() if one.topic])
    grant_declared(settings, manifest)


def security_steps(settings: Settings) -> list[Step]:
    """With security, the step that grants Connect's worker the rights to its topics."""
    if not settings.security.enabled:
        return []
    return [
        Task(
            RIGHTS,
            lambda: grant(admin(settings), connect_rights(), Principal.CONNECT),
            needs=broker_names(settings),
        )
    ]


def make_connector(settings: Settings) -> None:
    """Register the connector of the Debezium sources in force.

    It may take a while, in which an apply may let the connector capture other tables. So what is in
    force is looked up again afterwards.

    Raises:
        ProblemsError: declared keys do not identify the rows of their table.
    """
    from spark_jobs.storage.in_force import manifest_in_force  # noqa: PLC0415

    manifest = manifest_in_force(settings)
    while True:
        _register(settings, manifest)
        newer = manifest_in_force(settings)
        if captured_tables(newer) == captured_tables(manifest):
            return
        manifest = newer


def _register(settings: Settings, manifest: Manifest) -> None:
    address = settings.source_database or dsn(settings, database=SHOP, role=DEBEZIUM)
    try:
        problems = list(source_problems(address, manifest.sources.values(), missing=False))
    except (DatabaseUnreachableError, CertificateRefusedError):
        # The connector reports it: it may reach a database that this process cannot.
        problems = []
    if problems:
        raise ProblemsError(problems)
    register(settings, manifest)
