"""The Kafka Connect workers, and the registration of the Debezium connector with them."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import httpx

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.access.kafka import Principal, kafka_access, prefixed
from spark_jobs.errors import first_line
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.stack.connect_rest import (
    asks_for_certificate,
    caller,
    prepare_rest,
    rest_properties,
)
from spark_jobs.stack.connector import (
    CONNECTOR,
    captured_tables,
    connector_config,
    debezium_secrets,
)
from spark_jobs.stack.errors import ConnectorFailedError
from spark_jobs.stack.java import LOG4J_PROPERTIES, property_value, write_properties
from spark_jobs.stack.kafka import (
    INTERNAL_TOPICS,
    broker_names,
    kafka_command,
    kafka_directory,
)
from spark_jobs.stack.parts import Part, numbered
from spark_jobs.stack.placeholder import check_placeholder
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.trust import trusted

GROUP = "tidemark-connect"
# The step that grants the worker rights to its topics.
RIGHTS = "rights"
RUNNING_SECONDS = 60
LOOK_SECONDS = 10
# Workers answer within 90 seconds: a request may wait until their group has formed.
ANSWER_SECONDS = 100
_PREPARED = Lock()
LOG4J_FILE = "connect-log4j2.properties"
# Writes Debezium's warnings about unreadable changes to their own file; see ``stack.skipped``. Only
# the class of the exception is written: its message may contain values of the row.
SKIPPED_LOGGING = """\
appender.skipped.type = File
appender.skipped.name = skipped
appender.skipped.fileName = {file}
appender.skipped.createOnDemand = true
appender.skipped.filter.threshold.type = ThresholdFilter
appender.skipped.filter.threshold.level = warn
appender.skipped.layout.type = PatternLayout
appender.skipped.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}}{{UTC}} %m \
%replace{{%rEx{{1}}}}{{(?s)[:\\\\s].*}}{{}}%n
logger.dispatcher.name = io.debezium.pipeline.EventDispatcher
logger.dispatcher.level = info
logger.dispatcher.appenderRef.skipped.ref = skipped
"""


def connect_parts(settings: Settings) -> list[Part]:
    """The workers as parts of the stack."""
    return [worker(settings, one + 1) for one in range(settings.local.connect_workers)]


def worker_names(settings: Settings) -> tuple[str, ...]:
    """The parts that must serve before a connector is registered."""
    return tuple(numbered("connect", one + 1) for one in range(settings.local.connect_workers))


def worker_files(settings: Settings) -> tuple[Path, ...]:
    """The workers' configurations."""
    names = worker_names(settings)
    return tuple(kafka_directory(settings) / f"{name}.properties" for name in names)


def skipped_file(settings: Settings) -> Path:
    """The log file of changes that a connector left out."""
    return kafka_directory(settings) / "skipped.log"


def worker(settings: Settings, number: int) -> Part:
    """One worker; those of a group take over each other's connectors."""
    name = numbered("connect", number)
    properties = worker_files(settings)[number - 1]
    return Part(
        name=name,
        command=kafka_command(
            settings,
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(properties),
            log4j=LOG4J_FILE,
        ),
        needs=(*broker_names(settings), *([RIGHTS] if settings.security.enabled else [])),
        ports=dict([settings.ports.of("connect", number)]),
        prepare=partial(prepare_worker, settings, number, properties=properties),
        probe=partial(probe_worker, settings, number),
        serves=partial(probe_worker, settings, number, connector=False),
        stop_seconds=20,
    )


def prepare_worker(settings: Settings, number: int, *, properties: Path) -> None:
    """Write a worker's configuration and logging; it may run on a machine without broker."""
    # Workers are prepared at the same time, and share one certificate.
    with _PREPARED:
        prepare_rest(settings)
    write_properties(properties, worker_properties(settings, number))
    logging = LOG4J_PROPERTIES + SKIPPED_LOGGING.format(file=property_value(skipped_file(settings)))
    properties.with_name(LOG4J_FILE).write_text(logging)
    # A worker exits immediately if its secrets directory does not exist.
    Path(debezium_secrets(settings)).mkdir(parents=True, exist_ok=True, mode=0o700)


def worker_properties(settings: Settings, number: int) -> dict[str, object]:
    """A worker's configuration; it may contain a password."""
    access = kafka_access(settings, Principal.CONNECT).java()
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        **access,
        # Its connectors' clients log in as the worker does.
        **prefixed(access, "producer."),
        **prefixed(access, "consumer."),
        **prefixed(access, "admin."),
        "group.id": GROUP,
        **rest_properties(settings, number),
        "rest.advertised.host.name": LOOPBACK,
        "config.storage.topic": f"{INTERNAL_TOPICS}configs",
        "config.storage.replication.factor": settings.local.kafka_brokers,
        "offset.storage.topic": settings.kafka_connect.offsets_topic,
        "offset.storage.replication.factor": settings.local.kafka_brokers,
        "offset.storage.partitions": 1,
        "status.storage.topic": f"{INTERNAL_TOPICS}status",
        "status.storage.replication.factor": settings.local.kafka_brokers,
        "status.storage.partitions": 1,
        # After a kill, everything since the last flush is read again, and gold views show whole
        # transactions only up to that flush.
        "offset.flush.interval.ms": 1000,
        "scheduled.rebalance.max.delay.ms": 0,
        "key.converter": converter,
        "key.converter.schemas.enable": "false",
        "value.converter": converter,
        "value.converter.schemas.enable": "false",
        # Connectors are found by their service entries; a scan of every class takes seconds.
        "plugin.discovery": "service_load",
        # Passwords stay in files that the worker reads when it starts a connector.
        "config.providers": "directory",
        "config.providers.directory.class": (
            "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
        ),
        "config.providers.directory.param.allowed.paths": debezium_secrets(settings),
        **settings.kafka_connect.conf,
    }


def register(settings: Settings, manifest: Manifest) -> None:
    """Create or update the connector of the manifest's Debezium sources and wait until it runs.

    Nothing happens when the manifest has no such source; see ``disconnect``.

    Raises:
        ConnectorFailedError: Connect refuses the configuration or does not answer, or the
            connector fails.
    """
    tables = captured_tables(manifest)
    if not tables:
        return
    try:
        _register(settings, tables)
    except httpx.TransportError as error:
        problem = f"is not registered, because Kafka Connect does not answer: {error}"
        raise ConnectorFailedError(CONNECTOR, problem) from error


def _register(settings: Settings, tables: list[str]) -> None:
    with client(settings) as api:
        api.timeout = httpx.Timeout(ANSWER_SECONDS)
        current = api.get(f"/connectors/{CONNECTOR}/config")
        wanted = connector_config(settings, tables)
        if current.status_code == httpx.codes.OK:
            check_placeholder(settings, CONNECTOR, current=current.json())
        if current.status_code != httpx.codes.OK or current.json() != {
            **wanted,
            "name": CONNECTOR,
        }:
            put_config(api, wanted)
        restart_failed(api)
        resume_halted(api)
        wait_until_running(api)


def put_config(api: httpx.Client, config: dict[str, str]) -> None:
    """Store a configuration, or raise ``ConnectorFailedError``; waits while workers rebalance."""
    for _ in range(20):
        answer = api.put(f"/connectors/{CONNECTOR}/config", json=config)
        if answer.status_code != httpx.codes.CONFLICT:
            break
        time.sleep(0.5)
    if answer.is_error:
        raise ConnectorFailedError(CONNECTOR, f"is refused: {_message(answer)}")


def _message(answer: httpx.Response) -> str:
    """What a worker says of a request that it refuses; a proxy before it may say anything."""
    try:
        return str(answer.json()["message"])
    except (ValueError, TypeError, LookupError):
        return f"{answer.status_code} {answer.reason_phrase}, {first_line(answer.text)}"


def restart_failed(api: httpx.Client) -> None:
    """Restart the connector's failed tasks, if there are any."""
    status = connector_status(api)
    if status and "FAILED" in states(status):
        restart_connector(api, only_failed=True)


def resume_halted(api: httpx.Client) -> None:
    """Resume the connector if it is halted; it may take a moment."""
    status = connector_status(api)
    if status and is_halted(status):
        api.put(f"/connectors/{CONNECTOR}/resume")


def is_halted(status: dict[str, Any]) -> bool:
    """Whether a connector was stopped or paused through the REST API, from ``connector_status``.

    A new snapshot that was interrupted leaves it so.
    """
    return status["connector"]["state"] in {"STOPPED", "PAUSED"}


def restart_connector(api: httpx.Client, *, only_failed: bool) -> httpx.Response:
    """Request a restart of the connector and its tasks, or only of what failed."""
    return api.post(
        f"/connectors/{CONNECTOR}/restart",
        params={"includeTasks": "true", "onlyFailed": str(only_failed).lower()},
    )


def wait_until_running(api: httpx.Client) -> None:
    """Wait until the connector and its task run, or raise ``ConnectorFailedError``."""
    deadline = time.monotonic() + RUNNING_SECONDS
    status: dict[str, Any] | None = None
    while time.monotonic() < deadline:
        try:
            status = connector_status(api)
        except httpx.TransportError:
            # The worker restarts, and the connector with it.
            status = None
        if status and len(states(status)) > 1 and set(states(status)) == {"RUNNING"}:
            return
        if status and "FAILED" in states(status):
            raise ConnectorFailedError(CONNECTOR, f"failed: {first_trace_line(status)}")
        time.sleep(0.3)
    seen = ", ".join(states(status)) if status else "unknown"
    raise ConnectorFailedError(CONNECTOR, f"does not run after {RUNNING_SECONDS} s: {seen}")


def probe_worker(settings: Settings, number: int, *, connector: bool = True) -> str | None:
    """Why a worker is not ready; None once it answers and its connector is not down.

    Args:
        settings: project settings.
        number: of the worker.
        connector: whether the connector counts. The step that mends it waits for the worker only.
    """
    try:
        with client(settings, number) as api:
            answer = api.get("/connectors")
            if answer.is_error:
                return f"answers {answer.status_code}"
            known = connector and CONNECTOR in answer.json()
            status = connector_status(api) if known else None
    except (httpx.HTTPError, SecretMissingError):
        return "does not answer yet"
    if status and "FAILED" in states(status):
        return f"connector {CONNECTOR!r} failed: {first_trace_line(status)}"
    if status and is_halted(status):
        return f"connector {CONNECTOR!r} is stopped"
    return None


def connector_status(api: httpx.Client, *, strict: bool = False) -> dict[str, Any] | None:
    """The connector's status, or None while there is none.

    Args:
        api: a client of a worker.
        strict: only a missing connector is None; any other error of the worker is raised.

    Raises:
        httpx.HTTPError: the worker does not answer, or with ``strict`` its answer is an error.
    """
    answer = api.get(f"/connectors/{CONNECTOR}/status")
    if strict and answer.status_code != httpx.codes.NOT_FOUND:
        answer.raise_for_status()
    if answer.is_error:
        return None
    status: dict[str, Any] = answer.json()
    return status


def states(status: dict[str, Any]) -> list[str]:
    """The states of the connector and of its tasks, from ``connector_status``."""
    return [str(one["state"]) for one in (status["connector"], *status["tasks"])]


def first_trace_line(status: dict[str, Any]) -> str:
    """The first line of the first failure's trace, from ``connector_status``."""
    traces = [str(one.get("trace", "")) for one in (status["connector"], *status["tasks"])]
    return next((trace.splitlines()[0] for trace in traces if trace), "no reason given")


def client(settings: Settings, number: int = 1) -> httpx.Client:
    """A client of a worker's REST API; it ignores the machine's proxy settings.

    Raises:
        SecretMissingError: no worker was prepared, so there is no certificate to show.
    """
    _, port = settings.ports.of("connect", number)
    if not asks_for_certificate(settings):
        address = settings.kafka_connect.url or f"http://{LOOPBACK}:{port}"
        return httpx.Client(
            base_url=address, timeout=LOOK_SECONDS, trust_env=False, verify=trusted()
        )
    return httpx.Client(
        base_url=f"https://{LOOPBACK}:{port}",
        timeout=LOOK_SECONDS,
        trust_env=False,
        verify=caller(settings),
    )
