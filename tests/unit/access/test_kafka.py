"""A client says which side refused the other; the servers are real ones of TLS."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from spark_jobs.access.errors import (
    AccessDeniedError,
    CertificateRefusedError,
    LoginRefusedError,
    SecretMissingError,
)
from spark_jobs.access.kafka import Principal, kafka_access, password_name
from spark_jobs.access.secrets import AUTHORITY
from spark_jobs.bronze.errors import KafkaUnreachableError
from spark_jobs.bronze.topics import Topics
from spark_jobs.settings import load_settings
from spark_jobs.stack.certificates import KAFKA, new_authority, signed
from spark_jobs.stack.secrets import write_secret


@pytest.fixture(scope="module")
def authority():
    return new_authority()


@pytest.fixture
def secured(tmp_path, authority):
    """Settings of a client that trusts the authority; the port is the server's."""

    def make(port):
        settings = load_settings(tmp_path, security={"enabled": True}, ports={"kafka": port})
        pem = authority[1].public_bytes(Encoding.PEM).decode()
        write_secret(settings, AUTHORITY, pem)
        write_secret(settings, password_name(Principal.STREAMS), "s3cret")
        return settings

    return make


@contextmanager
def tls_server(folder, pem):
    """A TLS server that closes each connection after the handshake."""
    file = folder / "server.pem"
    file.write_text(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    def serve(listener):
        with suppress(OSError):
            while True:
                opened, _ = listener.accept()
                with opened, suppress(OSError), context.wrap_socket(opened, server_side=True):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr("spark_jobs.bronze.topics.TIMEOUT_SECONDS", 1)


def asked(settings):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one, the tests say
        Topics(kafka_access(settings, Principal.STREAMS)).ids(["a"])
    return caught.value


def test_an_expired_certificate_is_an_error(tmp_path, authority, secured, hasty):
    with tls_server(tmp_path, signed(KAFKA, *authority, days=-1)) as port:
        error = asked(secured(port))
    assert isinstance(error, CertificateRefusedError)
    assert "expired" in error.detail
    assert error.server == f"Kafka at 127.0.0.1:{port}"
    assert "make up" in error.hint


def test_a_certificate_of_an_unknown_authority_is_an_error(tmp_path, secured, hasty):
    with tls_server(tmp_path, signed(KAFKA, *new_authority(), days=9)) as port:
        error = asked(secured(port))
    assert isinstance(error, CertificateRefusedError)
    assert AUTHORITY in error.detail


def test_a_server_that_is_no_broker_is_no_refusal(tmp_path, authority, secured, hasty):
    with tls_server(tmp_path, signed(KAFKA, *authority, days=9)) as port:
        assert isinstance(asked(secured(port)), KafkaUnreachableError)


def test_an_unreachable_broker_is_not_an_access_error(secured, hasty):
    assert isinstance(asked(secured(1)), KafkaUnreachableError)


# A client that is collected in its own thread aborts the process: a late answer would do that.
GARBAGE_WHILE_AN_ANSWER_IS_OPEN = """
import gc, time
from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze import topics

def ask():
    try:
        topics.Topics(KafkaAccess("127.0.0.1:1")).ids(["a"])
    except Exception as error:
        kept = error
    return type(kept).__name__

topics.TIMEOUT_SECONDS = 1
gc.disable()
said = ask()
gc.set_threshold(1, 1, 1)
gc.enable()
time.sleep(2)
print(said)
"""


def test_a_client_that_gives_up_leaves_no_answer_open():
    tried = subprocess.run(
        [sys.executable, "-c", GARBAGE_WHILE_AN_ANSWER_IS_OPEN],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (tried.returncode, tried.stdout) == (0, "KafkaUnreachableError\n"), tried.stderr


def test_broker_error_codes_map_to_error_classes(secured):
    access = kafka_access(secured(1), Principal.STREAMS)
    denied = access.refusal("TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed")
    assert isinstance(denied, AccessDeniedError)
    assert denied.user == "streams"
    assert isinstance(access.refusal("_AUTHENTICATION", "no"), LoginRefusedError)


def test_a_fixed_login_is_not_reported_again(secured):
    access = kafka_access(secured(1), Principal.STREAMS)
    access.said.add("_AUTHENTICATION")
    assert isinstance(access.refusal("_TRANSPORT", "down"), LoginRefusedError)
    assert access.refusal("_TRANSPORT", "down") is None


def test_without_security_no_client_logs_in(tmp_path):
    access = kafka_access(load_settings(tmp_path), Principal.SINKS)
    assert access.java() == {"bootstrap.servers": "127.0.0.1:29092"}
    assert "security.protocol" not in access.librdkafka()


def test_a_password_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SecretMissingError) as caught:
        kafka_access(load_settings(tmp_path, security={"enabled": True}), Principal.SINKS)
    assert caught.value.name == "kafka/sinks"


def test_an_access_does_not_show_its_password(secured):
    assert "s3cret" not in repr(kafka_access(secured(1), Principal.STREAMS))


def test_spark_s_executors_need_no_file(secured):
    options = kafka_access(secured(1), Principal.STREAMS).spark()
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert "BEGIN CERTIFICATE" in options["kafka.ssl.truststore.certificates"]
    assert not [key for key in options if key.endswith("location")]
