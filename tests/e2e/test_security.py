"""With security on, nothing answers who may not ask; the other tests of this stack are who may."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time

import asyncpg
import grpc
import psutil
import psycopg
import psycopg2
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.serialization import Encoding
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc
from thrift.transport.TTransport import TTransportException

from spark_jobs.access.errors import (
    AccessDeniedError,
    CertificateRefusedError,
    LoginRefusedError,
)
from spark_jobs.access.kafka import Principal, kafka_access, password_name
from spark_jobs.access.secrets import AUTHORITY, connect_token, read_secret
from spark_jobs.bronze.topics import Topics
from spark_jobs.demo import database
from spark_jobs.demo.errors import RecordsNotDeliveredError, ShopUnreachableError
from spark_jobs.demo.kafka import RecordSender
from spark_jobs.demo.operations import Record, Trait
from spark_jobs.sections import SecuritySettings
from spark_jobs.settings import load_settings
from spark_jobs.stack import kafka_rights
from spark_jobs.stack.airflow_config import airflow_environment
from spark_jobs.stack.catalog import make_topics
from spark_jobs.stack.certificates import new_authority
from spark_jobs.stack.endpoint import NAME as ENDPOINT
from spark_jobs.stack.endpoint import SECRET, USER, jdbc_url, probe_endpoint
from spark_jobs.stack.kafka import admin
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.postgres import dsn, secret_name
from spark_jobs.stack.secrets import write_secret
from spark_jobs.stack.spark_connect import connect_url
from spark_jobs.state.errors import ControlUnreachableError
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.session import with_token
from tests.accounts import SOMEBODY, WHY_NOT, can_be_somebody
from tests.spark.sql_client import SqlClient

CAPTURED, EVENTS = "shop.public.users", "cart_events"


@pytest.fixture(scope="module")
def settings(stack):
    return stack.settings


@pytest.fixture(scope="module")
def endpoint(stack):
    """The settings of a stack whose endpoint somebody has asked for."""
    assert ENDPOINT not in {one.part for one in stack.stack.status()}
    broker = stack.part("kafka").pid
    assert jdbc_url(stack.settings) in stack.tidemark("endpoint").stdout
    assert stack.part(ENDPOINT).ready
    assert stack.part("kafka").pid == broker
    return stack.settings


@pytest.fixture
def elsewhere(settings, tmp_path):
    """The same servers, and secrets of one's own to spoil."""

    def make(name, text):
        own = load_settings(
            settings.project_dir,
            state_dir=tmp_path,
            ports=settings.ports,
            security=settings.security,
        )
        for known in (AUTHORITY, *(password_name(one) for one in Principal)):
            write_secret(own, known, (settings.secrets_dir / known).read_text())
        write_secret(own, name, text)
        return own

    return make


@pytest.fixture
def hasty(monkeypatch):
    """Who is refused is refused again and again, until the time is over."""
    monkeypatch.setattr("spark_jobs.bronze.topics.TIMEOUT_SECONDS", 2)


def topics(settings, principal):
    return Topics(kafka_access(settings, principal))


def foreign_authority():
    return new_authority()[1].public_bytes(Encoding.PEM).decode()


def test_rights_are_granted_once_and_taken_back(settings):
    client = admin(settings)
    before = kafka_rights.held_rights(client, Principal.LOADER)
    kafka_rights.grant(client, [], Principal.LOADER)
    deadline = time.monotonic() + 10
    while kafka_rights.held_rights(client, Principal.LOADER):
        assert time.monotonic() < deadline
    with pytest.raises(RecordsNotDeliveredError) as caught:
        send(settings, Principal.LOADER, EVENTS)
    assert "uthorization failed" in caught.value.detail
    make_topics(settings)
    assert set(kafka_rights.held_rights(client, Principal.LOADER)) == set(before)


@pytest.mark.parametrize(
    ("principal", "topic"),
    [(Principal.LOADER, CAPTURED), (Principal.CONNECT, EVENTS), (Principal.SINKS, CAPTURED)],
)
def test_a_topic_is_denied_to_who_has_no_right(settings, principal, topic):
    with pytest.raises(AccessDeniedError) as caught:
        topics(settings, principal).facts(topic)
    assert caught.value.user == principal


def test_who_reads_may_not_write(settings):
    told = []
    producer = Producer(kafka_access(settings, Principal.STREAMS).librdkafka())
    producer.produce(CAPTURED, b"{}", on_delivery=lambda error, _: told.append(error.name()))
    producer.flush(20)
    assert told == ["TOPIC_AUTHORIZATION_FAILED"]


def send(settings, principal, topic):
    with RecordSender(kafka_access(settings, principal)) as sender:
        sender.send(Record(topic, None, b"{}", Trait.FRESH))


def test_kafka_answers_nobody_without_a_login(settings):
    ask = {"bootstrap.servers": settings.kafka, "log_level": 0}
    pem = (settings.secrets_dir / AUTHORITY).read_text()
    for options in ({}, {"security.protocol": "SSL", "ssl.ca.pem": pem}):
        with pytest.raises(KafkaException):
            AdminClient({**ask, **options}).list_topics(timeout=3)


def test_a_wrong_password_is_an_error(elsewhere, hasty):
    wrong = elsewhere(password_name(Principal.STREAMS), "wrong")
    with pytest.raises(LoginRefusedError) as caught:
        topics(wrong, Principal.STREAMS).facts(CAPTURED)
    assert caught.value.user == "streams"


def test_clients_of_kafka_and_postgres_report_an_unknown_authority(elsewhere, hasty):
    foreign = elsewhere(AUTHORITY, foreign_authority())
    with pytest.raises(CertificateRefusedError) as caught:
        topics(foreign, Principal.STREAMS).facts(CAPTURED)
    assert f"{foreign.ports.kafka}" in caught.value.server
    write_secret(foreign, "postgres-shop", "any")
    with pytest.raises(CertificateRefusedError) as caught:
        database.connect(dsn(foreign, database="shop", role="shop"))
    assert f"{foreign.ports.postgres}" in caught.value.server


def test_the_controller_answers_its_broker_only(settings):
    context = ssl.create_default_context(cafile=settings.secrets_dir / AUTHORITY)
    address = (LOOPBACK, settings.ports.kafka_controller)
    with (
        socket.create_connection(address, timeout=5) as opened,
        pytest.raises((ssl.SSLError, ConnectionError)) as caught,
    ):
        shake_hands(context, opened)
    assert "certificate" in str(caught.value) or isinstance(caught.value, ConnectionError)


def shake_hands(context, opened):
    """A handshake with no certificate; the server's refusal comes after the client's part."""
    with context.wrap_socket(opened, server_hostname=LOOPBACK) as channel:
        channel.sendall(b"\0\0\0\0")
        if not channel.recv(1):
            raise ConnectionResetError


def test_postgres_answers_nobody_without_tls(settings):
    address = dsn(settings, database="shop", role="shop").partition("?")[0]
    with pytest.raises(psycopg.OperationalError, match="no encryption"):
        psycopg.connect(address, sslmode="disable")
    with psycopg.connect(dsn(settings, database="shop", role="shop")) as connection:
        assert connection.pgconn.ssl_in_use
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(dsn(settings, database="shop", role="shop"), password="wrong")


def test_a_wrong_password_of_postgres_is_an_error(settings):
    right = dsn(settings, database="shop", role="shop")
    wrong = right.replace(read_secret(settings, secret_name("shop")), "guessed")
    words = 'password authentication failed for user "shop"'
    with pytest.raises(ShopUnreachableError) as shop:
        database.connect(wrong)
    assert words in shop.value.detail
    with pytest.raises(ControlUnreachableError) as control:
        ControlStore.open(wrong)
    assert words in control.value.detail
    assert "guessed" not in control.value.render()


def test_both_drivers_of_airflow_check_who_answers(settings, monkeypatch):
    address = dsn(settings, database="airflow", role="airflow").partition("?")[0]
    for name, value in airflow_environment(settings).items():
        if name.startswith("PG"):
            monkeypatch.setenv(name, value)
    with psycopg2.connect(address) as connection:
        assert connection.info.ssl_in_use
    connection.close()

    async def encrypted():
        opened = await asyncpg.connect(address)
        try:
            return await opened.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        finally:
            await opened.close()

    assert asyncio.run(encrypted())
    monkeypatch.setenv("PGSSLROOTCERT", str(settings.secrets_dir / "nothing.pem"))
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(address)


def test_spark_connect_answers_nobody_without_the_token(settings):
    for token, code in ((None, "UNAUTHENTICATED"), ("wrong", "UNAUTHENTICATED")):
        with pytest.raises(grpc.RpcError) as caught:
            spark_version(settings, token)
        assert caught.value.code().name == code
    assert spark_version(settings, connect_token(settings, connect_url(settings)))


def spark_version(settings, token):
    request = base_pb2.AnalyzePlanRequest(
        session_id="00112233-4455-4677-8899-aabbccddeeff",
        user_context=base_pb2.UserContext(user_id="test"),
        spark_version=base_pb2.AnalyzePlanRequest.SparkVersion(),
    )
    with DefaultChannelBuilder(with_token(connect_url(settings), token)).toChannel() as channel:
        answer = base_pb2_grpc.SparkConnectServiceStub(channel).AnalyzePlan(request, timeout=20)
    return answer.spark_version.version


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_endpoint_answers_its_user_over_tls(endpoint):
    client = SqlClient(endpoint)
    table = "gold.orders_by_status"
    assert client.rows(
        f"SELECT f.table_name FROM ops.freshness AS f WHERE f.table_name = '{table}'"
    )
    assert "QUERY_NOT_READ_ONLY" in client.refusal(f"DROP VIEW {table}")
    asked = client.beeline("SELECT 40 + 2;", f"INSERT INTO {table} VALUES ('new', 1);")
    assert "42" in asked.stdout.split(), asked
    assert "QUERY_NOT_READ_ONLY" in asked.stderr, asked


@pytest.mark.skipif(not can_be_somebody(), reason=WHY_NOT)
def test_the_endpoint_s_server_has_an_account_of_its_own(stack, endpoint):
    python = psutil.Process(stack.part(ENDPOINT).pid)
    java = [one for one in python.children(recursive=True) if one.name() == "java"]
    assert {one.username() for one in java} == {SOMEBODY}
    assert python.username() != SOMEBODY


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_endpoint_answers_nobody_else(endpoint, elsewhere):
    client = SqlClient(endpoint)
    client.knock(USER, client.password)
    with pytest.raises(TTransportException, match="Error validating the login"):
        client.knock(USER, "guessed")
    plain = SqlClient(endpoint.model_copy(update={"security": SecuritySettings()}))
    with pytest.raises(TTransportException, match="read 0 bytes"):
        plain.knock(USER, client.password)
    foreign = elsewhere(AUTHORITY, foreign_authority())
    write_secret(foreign, SECRET, client.password)
    assert "certificate that is refused" in probe_endpoint(foreign)


def test_a_secret_that_was_removed_is_recreated_at_the_next_start(stack, settings):
    path = settings.secrets_dir / password_name(Principal.LOADER)
    before = path.read_text()
    path.unlink()
    stack.stop("kafka")
    stack.up("kafka")
    assert path.read_text() != before
    send(settings, Principal.LOADER, EVENTS)
    stack.wait_ready()
