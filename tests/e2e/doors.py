"""Access to each service of a stack with an account of this machine, but without a secret."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
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

from spark_jobs.settings import BUCKET, Settings
from spark_jobs.stack.airflow import API_SERVER
from spark_jobs.stack.airflow_config import airflow_address
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.spark_connect import connect_url
from spark_jobs.stack.supervisor import socket_path
from spark_jobs.storage.session import with_token
from tests.e2e.running import RunningStack

NOBODY = 65534
OPEN, SILENT, OTHER = "open", "nothing listens", "speaks another protocol"
LOGIN, TLS = "asks for a login", "asks for TLS"
# Parts with their own port.
PARTS = ("spark-connect", "streams", "connect", "redis", "postgres", "kafka", API_SERVER)


def tried(running: RunningStack, parts: Iterable[str]) -> dict[str, str]:
    """The answer of each service of these parts, which must run."""
    settings = running.settings
    doors: dict[str, dict[str, Callable[[], str]]] = {
        "spark-connect": {
            "spark connect": lambda: spark_connect(settings),
            "spark connect, a guess": lambda: spark_connect(settings, "guessed"),
            "page of refreshes": lambda: page(settings.ports.spark_ui),
        },
        "streams": {"page of streams": lambda: page(settings.ports.streams_ui)},
        "connect": {"connect": lambda: connect_rest(settings)},
        "redis": {"redis": lambda: redis_server(settings)},
        "postgres": {"postgres": lambda: postgres(settings)},
        "kafka": {
            "kafka": lambda: kafka(settings),
            "kafka's controller": lambda: kafka_controller(settings),
        },
        API_SERVER: {"airflow": lambda: airflow(settings)},
    }
    for part in parts:
        assert running.part(part).ready, part
    return {name: knock() for part in parts for name, knock in doors[part].items()}


def expected(settings: Settings, parts: Iterable[str]) -> dict[str, str]:
    """The expected answer of each service; Kafka's are open by default."""
    secure = settings.security.enabled
    answers = {
        "spark-connect": {
            "spark connect": "UNAUTHENTICATED",
            "spark connect, a guess": "UNAUTHENTICATED",
            "page of refreshes": SILENT,
        },
        "streams": {"page of streams": SILENT},
        "connect": {"connect": "certificate required"},
        "redis": {"redis": "AuthenticationError"},
        "postgres": {"postgres": "refused"},
        "kafka": {
            "kafka": "_TRANSPORT" if secure else OPEN,
            "kafka's controller": TLS if secure else OPEN,
        },
        API_SERVER: {"airflow": "401"},
    }
    return {name: said for part in parts for name, said in answers[part].items()}


def assert_spark_asks(running: RunningStack, part: str) -> None:
    """No port of a part's Spark, except for Connect's, accepts a message without a login."""
    pid = running.part(part).pid
    assert pid
    answers = spark_ports(pid, known=running.settings.ports.spark_connect)
    transports = {port: said for port, said in answers.items() if said != OTHER}
    # The ports of the driver and of its block manager.
    assert len(transports) >= 2
    assert set(transports.values()) == {LOGIN}


def assert_gold_alone(running: RunningStack) -> None:
    """In the state directory, another account can only read gold and its parent directories."""
    found = readable(running.settings.state)
    beside = {one for one in found if not f"{one}/".startswith("lake/gold/")}
    assert beside <= {".", "lake"}
    assert_no_socket_answers(running.settings)


def assert_no_socket_answers(settings: Settings) -> None:
    """Another account cannot connect to the stack's sockets, including supervisord's."""
    sockets = {one for one in settings.state.rglob("*") if one.is_socket()}
    sockets.add(socket_path(settings.state))
    assert [one for one in sockets if _by_nobody("test", "-w", str(one)).returncode == 0] == []


_RPC_REQUEST = 3
_API_VERSIONS = 18


def spark_connect(settings: Settings, token: str | None = None) -> str:
    """A call of Spark Connect; returns the version, or gRPC's status code."""
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
    """The answer of each other port of a Spark process to a message without a login.

    Args:
        pid: of the process, or of the one that started it.
        known: the port of another protocol.
    """
    ports: set[int] = set()
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        # A Python worker may exit between two calls.
        with suppress(psutil.NoSuchProcess):
            if process.name() == "java":
                ports |= {
                    one.laddr.port
                    for one in process.net_connections(kind="tcp")
                    if one.status == psutil.CONN_LISTEN and one.laddr.port != known
                }
    return {port: spark_rpc(port) for port in ports}


def spark_rpc(port: int) -> str:
    """Spark's answer to a message of its RPC protocol without a login."""
    body = b"hello"
    message = struct.pack(">BqI", _RPC_REQUEST, 7, len(body)) + body
    try:
        with socket.create_connection((LOOPBACK, port), timeout=5) as channel:
            channel.sendall(struct.pack(">q", 8 + len(message)) + message)
            answer = channel.recv(65536).decode(errors="replace")
    except OSError:
        # PySpark's gateway waits for a line that starts with its secret.
        return OTHER
    # The second is the answer if messages are encrypted.
    asks = ("Expected SaslMessage", "Unknown challenge message")
    return LOGIN if any(one in answer for one in asks) else answer[:200]


def connect_rest(settings: Settings, number: int = 1) -> str:
    """A worker's list of connectors, for a client without a certificate that trusts any server."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, port = settings.ports.of("connect", number)
    address = f"https://{LOOPBACK}:{port}/connectors"
    try:
        with httpx.Client(verify=context, trust_env=False, timeout=10) as client:
            client.get(address)
    except (httpx.TransportError, ssl.SSLError) as error:
        return "certificate required" if "certificate" in str(error).lower() else repr(error)
    return OPEN


def kafka(settings: Settings, servers: str = "") -> str:
    """The list of topics, from all brokers or the named ones."""
    try:
        client = AdminClient({"bootstrap.servers": servers or settings.kafka, "log_level": 0})
        client.list_topics(timeout=3)
    except KafkaException as error:
        return str(error.args[0].name())
    return OPEN


def kafka_controller(settings: Settings, number: int = 1) -> str:
    """A controller's answer to an unencrypted ApiVersions request."""
    request = struct.pack(">hhih", _API_VERSIONS, 0, 7, -1)
    _, port = settings.ports.of("kafka_controller", number)
    try:
        with socket.create_connection((LOOPBACK, port), timeout=5) as channel:
            channel.sendall(struct.pack(">i", len(request)) + request)
            answer = channel.recv(65536)
    except ConnectionResetError:
        return TLS
    return OPEN if answer[4:8] == struct.pack(">i", 7) else TLS


def airflow(settings: Settings) -> str:
    """The list of DAGs, without a login."""
    status = httpx.get(f"{airflow_address(settings)}/api/v2/dags", trust_env=False).status_code
    return OPEN if status < 400 else str(status)


def object_store(settings: Settings, **headers: str) -> str:
    """The list of the lake's bucket."""
    address = f"{settings.store_endpoint}/{BUCKET}?list-type=2"
    status = httpx.get(address, headers=headers, trust_env=False).status_code
    return OPEN if status < 400 else str(status)


def page(port: int) -> str:
    """One of Spark's web pages."""
    try:
        status = httpx.get(f"http://{LOOPBACK}:{port}/", trust_env=False).status_code
    except httpx.ConnectError:
        return SILENT
    return OPEN if status < 400 else str(status)


def redis_server(settings: Settings) -> str:
    """A command without a login."""
    try:
        redis.Redis(LOOPBACK, settings.ports.redis, retry=None).ping()
    except redis.AuthenticationError as error:
        return type(error).__name__
    return OPEN


def postgres(settings: Settings) -> str:
    """A login as the superuser, with a guessed password."""
    address = f"postgresql://postgres:guessed@{LOOPBACK}:{settings.ports.postgres}/postgres"
    try:
        psycopg.connect(address, connect_timeout=5).close()
    except psycopg.OperationalError as error:
        return "refused" if "password authentication failed" in str(error) else str(error)
    return OPEN


def readable(directory: Path) -> set[str]:
    """Files, directories and sockets below a directory that another account can read or list."""
    found = _by_nobody("find", str(directory), "-readable")
    # Otherwise nothing was closed, or nothing was checked.
    assert "Permission denied" in found.stderr, found.stderr
    return {str(Path(one).relative_to(directory)) for one in found.stdout.splitlines()}


def _by_nobody(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program as another account."""
    return subprocess.run(
        command,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
