"""Kafka's principals, and the options of clients that log in as one of them."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from spark_jobs.access.errors import (
    AccessDeniedError,
    CertificateRefusedError,
    LoginRefusedError,
)
from spark_jobs.access.secrets import AUTHORITY, read_secret, secret_path
from spark_jobs.errors import LakehouseError
from spark_jobs.settings import Settings

MECHANISM = "SCRAM-SHA-512"
PROBE_SECONDS = 3.0
_DENIED = "_AUTHORIZATION_FAILED"
_LOGIN = "_AUTHENTICATION"


class Principal(StrEnum):
    """The user of a client; docs/security.md lists the rights of each."""

    # The two super users: the broker itself, and setting up topics and rights.
    BROKER = "broker"
    ADMIN = "admin"
    CONNECT = "connect"
    STREAMS = "streams"
    SINKS = "sinks"
    # Applications that write events; on one machine that is the demo's load.
    LOADER = "loader"


@dataclass(frozen=True)
class Login:
    """A client's login at a broker, and the authority whose certificates it trusts.

    Attributes:
        secret: the file of the password.
        authority: the file of the authority's certificate.
        certificate: the content of that file, so that clients on other machines do not need it.
    """

    principal: Principal
    secret: Path
    authority: Path
    password: str = field(repr=False)
    certificate: str = field(repr=False)


@dataclass(frozen=True)
class KafkaAccess:
    """The brokers' addresses and the client's login; None if they need no login.

    Attributes:
        said: why connections fail, which the exceptions of waiting calls do not contain.
    """

    servers: str
    login: Login | None = None
    said: set[str] = field(default_factory=set, repr=False, compare=False)

    def librdkafka(self) -> dict[str, Any]:
        """Options of a Python client, by librdkafka's names; calls raise errors, and log none."""
        options: dict[str, Any] = {
            "bootstrap.servers": self.servers,
            "log_level": 0,
            "logger": _silent_logger(),
        }
        if self.login:
            options |= {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": MECHANISM,
                "sasl.username": self.login.principal.value,
                "sasl.password": self.login.password,
                "ssl.ca.pem": self.login.certificate,
                "error_cb": self._hear,
            }
        return options

    def java(self) -> dict[str, str]:
        """Options of a Java client, by Kafka's names; they contain the password."""
        options = {"bootstrap.servers": self.servers}
        if self.login:
            options |= {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": jaas(self.login.principal, self.login.password),
                "ssl.truststore.type": "PEM",
                # On one line, which properties files need and PEM parsers allow.
                "ssl.truststore.certificates": " ".join(self.login.certificate.split("\n")),
            }
        return options

    def spark(self) -> dict[str, str]:
        """Options of Spark's source, which its executors get too: ``kafka.`` and Java's names."""
        return {f"kafka.{key}": value for key, value in self.java().items()}

    def refusal(self, code: str, text: str) -> LakehouseError | None:
        """The condition behind a client's failure; None if the broker is only unreachable.

        Args:
            code: the name of librdkafka's error.
            text: what it says.
        """
        said = self.said.copy()
        self.said.clear()
        if self.login is None:
            return None
        server, user = f"Kafka at {self.servers}", self.login.principal.value
        if code.endswith(_DENIED):
            return AccessDeniedError(server, user, text.rstrip("."))
        if code == _LOGIN or _LOGIN in said:
            return LoginRefusedError(server, user, secret=self.login.secret)
        if problem := self._certificate_problem(self.login):
            return CertificateRefusedError(server, problem, authority=self.login.authority)
        return None

    def _hear(self, error: Any) -> None:
        self.said.add(error.name())

    def _certificate_problem(self, login: Login) -> str | None:
        """The problem with the certificate of the first broker that has one."""
        context = ssl.create_default_context(cadata=login.certificate)
        for server in self.servers.split(","):
            host, _, port = server.strip().rpartition(":")
            try:
                with (
                    socket.create_connection((host, int(port)), timeout=PROBE_SECONDS) as opened,
                    context.wrap_socket(opened, server_hostname=host),
                ):
                    return None
            except ssl.SSLCertVerificationError as error:
                return str(error.verify_message)
            except (OSError, ValueError):
                continue
        return None


def kafka_access(settings: Settings, principal: Principal) -> KafkaAccess:
    """The brokers of the settings, with the login of a principal.

    Raises:
        SecretMissingError: the principal's password does not exist.
    """
    if not settings.security.enabled:
        return KafkaAccess(settings.kafka)
    login = Login(
        principal=principal,
        secret=secret_path(settings, password_name(principal)),
        authority=secret_path(settings, AUTHORITY),
        password=read_secret(settings, password_name(principal)),
        certificate=read_secret(settings, AUTHORITY),
    )
    return KafkaAccess(settings.kafka, login)


def password_name(principal: Principal) -> str:
    """The secret that holds a principal's password."""
    return f"kafka/{principal}"


def jaas(principal: Principal, password: str) -> str:
    """The login as JAAS configuration for Java clients."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{principal}" password="{password}";'


def prefixed(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Options with a prefix, for clients inside another one, for example ``producer.``."""
    return {f"{prefix}{key}": value for key, value in options.items()}


def _silent_logger() -> logging.Logger:
    """A logger for librdkafka, whose messages are raised as errors too."""
    logger = logging.getLogger("librdkafka")
    logger.setLevel(logging.CRITICAL + 1)
    return logger
