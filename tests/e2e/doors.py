"""What somebody gets at each door of a stack who has an account of this machine, and no secret."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
from pathlib import Path

import grpc
import httpx
import psutil
import psycopg
import redis
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from spark_jobs.local.ports import LOOPBACK
from spark_jobs.local.spark_connect import connect_url
from spark_jobs.settings import Settings
from spark_jobs.storage.session import with_token

NOBODY = 65534
OPEN, SILENT, OTHER = "open", "nothing listens", "speaks another protocol"
_RPC_REQUEST = 3


def spark_connect(settings: Settings, token: str | None = None) -> str:
    """A call of the server's own protocol; the version, or gRPC's code."""
    request = base_pb2.AnalyzePlanRequest(
        session_id="00112233-4455-4677-8899-aabbccddeeff",
        user_context=base_pb2.UserContext(user_id="test"),
        spark_version=base_pb2.AnalyzePlanRequest.SparkVersion(),
    )
    address = with_token(connect_url(settings), token)
    with DefaultChannelBuilder(address).toChannel() as channel:
        service = base_pb2_grpc.SparkConnectServiceStub(channel)
        try:
            return service.AnalyzePlan(request, timeout=20).spark_version.version
        except grpc.RpcError as error:
            return error.code().name


def spark_ports(pid: int, *, known: int) -> dict[int, str]:
    """What each further port of a process of Spark answers to a message without a login.

    Args:
        pid: of the process, or of the one that started it.
        known: the port of another protocol.
    """
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    ports = {
        one.laddr.port
        for process in family
        if process.name() == "java"
        for one in process.net_connections(kind="tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr.port != known
    }
    return {port: spark_rpc(port) for port in ports}


def spark_rpc(port: int) -> str:
    """What Spark says to a message of its transport that begins with no login."""
    body = b"hello"
    message = struct.pack(">BqI", _RPC_REQUEST, 7, len(body)) + body
    try:
        with socket.create_connection((LOOPBACK, port), timeout=5) as channel:
            channel.sendall(struct.pack(">q", 8 + len(message)) + message)
            answer = channel.recv(65536).decode(errors="replace")
    except OSError:
        # PySpark's gateway waits for a line of its own protocol, which begins with its own secret.
        return OTHER
    # The second is the answer where messages are encrypted.
    asks = ("Expected SaslMessage", "Unknown challenge message")
    return "asks for a login" if any(one in answer for one in asks) else answer[:200]


def connect_rest(settings: Settings) -> str:
    """A listing of connectors, by a caller who trusts any certificate and shows none."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address = f"https://{LOOPBACK}:{settings.ports.connect}/connectors"
    try:
        with httpx.Client(verify=context, trust_env=False, timeout=10) as client:
            client.get(address)
    except (httpx.TransportError, ssl.SSLError) as error:
        return "certificate required" if "certificate" in str(error).lower() else repr(error)
    return OPEN


def kafka(settings: Settings) -> str:
    """A listing of topics."""
    try:
        client = AdminClient({"bootstrap.servers": settings.kafka, "log_level": 0})
        client.list_topics(timeout=3)
    except KafkaException as error:
        return str(error.args[0].name())
    return OPEN


def page(port: int) -> str:
    """One of Spark's web pages."""
    try:
        status = httpx.get(f"http://{LOOPBACK}:{port}/", trust_env=False).status_code
    except httpx.ConnectError:
        return SILENT
    return OPEN if status < 400 else str(status)


def redis_server(settings: Settings) -> str:
    """A command, by nobody."""
    try:
        redis.Redis(LOOPBACK, settings.ports.redis, retry=None).ping()
    except redis.AuthenticationError as error:
        return type(error).__name__
    return OPEN


def postgres(settings: Settings) -> str:
    """A login as the superuser, with a password that was guessed."""
    address = f"postgresql://postgres:guessed@{LOOPBACK}:{settings.ports.postgres}/postgres"
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.OperationalError as error:
        return "refused" if "password authentication failed" in str(error) else str(error)
    return OPEN


def readable(directory: Path) -> set[str]:
    """What another account may read or list below a directory: files, folders, sockets."""
    found = subprocess.run(
        ["find", str(directory), "-readable"],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    # Else there was nothing that is closed, or nothing was looked at.
    assert "Permission denied" in found.stderr, found.stderr
    return {str(Path(one).relative_to(directory)) for one in found.stdout.splitlines()}
