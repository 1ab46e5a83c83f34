"""Sessions with Cassandra, from an address in one line."""

from __future__ import annotations

import logging
import ssl
from typing import Any
from urllib.parse import unquote

from cassandra import ConsistencyLevel, ProtocolVersion
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.query import dict_factory
from pydantic_core import MultiHostUrl

PORT = 9042
_ANSWER_SECONDS = 30.0
_CONNECT_SECONDS = 5.0


def cassandra_cluster(address: str) -> Cluster:
    """The driver's cluster object for an address; it does not connect yet.

    Statements need a quorum of the data centre of the given hosts, and conditional ones a quorum of
    all replicas.

    Args:
        address: ``cassandra://user:password@host:9042,host2``, or ``cassandras://`` with TLS, whose
            certificates the system's authorities must have signed.

    Raises:
        DriverException: none of the hosts has an address.
    """
    # Errors are raised; the driver would also log each one with a traceback.
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    url = MultiHostUrl(address)
    hosts = url.hosts()
    first = hosts[0]
    options: dict[str, Any] = {}
    if first["username"]:
        user, password = unquote(first["username"]), unquote(first["password"] or "")
        options["auth_provider"] = PlainTextAuthProvider(user, password)
    if url.scheme == "cassandras":
        options["ssl_context"] = ssl.create_default_context()
    profile = ExecutionProfile(
        TokenAwarePolicy(DCAwareRoundRobinPolicy()),
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        serial_consistency_level=ConsistencyLevel.SERIAL,
        request_timeout=_ANSWER_SECONDS,
        row_factory=dict_factory,
    )
    return Cluster(
        [one["host"] for one in hosts],
        port=first["port"] or PORT,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=ProtocolVersion.V5,
        connect_timeout=_CONNECT_SECONDS,
        control_connection_timeout=_CONNECT_SECONDS,
        application_name="tidemark",
        **options,
    )
