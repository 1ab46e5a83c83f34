"""Unauthenticated access to each service of the profile `cluster`, with the expected result."""

from __future__ import annotations

from spark_jobs.settings import Settings
from tests.e2e import doors

LOGIN, FORBIDDEN = "asks for a login", "403"
GUESS = "AWS4-HMAC-SHA256 Credential=tidemark/20260101/us-east-1/s3/aws4_request, Signature=0"


def attempts(settings: Settings) -> dict[str, str]:
    """The answer of each service, by name, to a client without a secret."""
    ports, local = settings.ports, settings.local
    found = {
        "spark connect": doors.spark_connect(settings),
        "spark connect, a guess": doors.spark_connect(settings, "guessed"),
        "redis": doors.redis_server(settings),
        "airflow": doors.airflow(settings),
        "object store": doors.object_store(settings),
        "object store, a guess": doors.object_store(settings, Authorization=GUESS),
        "page of refreshes": doors.page(ports.spark_ui),
        "page of streams": doors.page(ports.streams_ui),
    }
    for number in range(1, local.kafka_brokers + 1):
        _, port = ports.of("kafka", number)
        found[f"kafka {number}"] = doors.kafka(settings, f"127.0.0.1:{port}")
        found[f"controller {number}"] = doors.kafka_controller(settings, number)
    for number in range(1, local.connect_workers + 1):
        found[f"connect {number}"] = doors.connect_rest(settings, number)
    for kind, count in (("spark_master", 1), ("spark_worker", local.spark_workers)):
        for number in range(1, count + 1):
            found[f"{kind} {number}"] = doors.spark_rpc(ports.of(kind, number)[1])
            _, port = ports.of(f"{kind}_ui", number)
            found[f"page of {kind} {number}"] = doors.page(port)
    return found


def wanted(settings: Settings) -> dict[str, str]:
    """The expected answers, from the table in docs/security.md."""
    local = settings.local
    secure, nodes = settings.security.enabled, range(1, local.kafka_brokers + 1)
    workers = range(1, local.spark_workers + 1)
    spark = ["spark_master 1", *(f"spark_worker {number}" for number in workers)]
    return {
        "spark connect": "UNAUTHENTICATED",
        "spark connect, a guess": "UNAUTHENTICATED",
        "redis": "AuthenticationError",
        "airflow": "401",
        "object store": FORBIDDEN,
        "object store, a guess": FORBIDDEN,
        "page of refreshes": doors.SILENT,
        "page of streams": doors.SILENT,
        **{f"kafka {number}": "_TRANSPORT" if secure else doors.OPEN for number in nodes},
        **{f"controller {number}": doors.TLS if secure else doors.OPEN for number in nodes},
        **{
            f"connect {number}": "certificate required"
            for number in range(1, local.connect_workers + 1)
        },
        **dict.fromkeys(spark, LOGIN),
        **{f"page of {one}": FORBIDDEN for one in spark},
    }
