"""The Spark Connect server that refresh tasks and analysts share."""

from __future__ import annotations

import re
import uuid
from functools import partial
from pathlib import Path

from spark_jobs.access.secrets import CONNECT_TOKEN, connect_token
from spark_jobs.settings import Settings
from spark_jobs.stack.java import write_properties
from spark_jobs.stack.object_store import store_names, store_variables
from spark_jobs.stack.parts import Part
from spark_jobs.stack.ports import listening
from spark_jobs.stack.secrets import ensure_secret
from spark_jobs.stack.spark_cluster import cluster_names, cluster_secret
from spark_jobs.stack.spark_home import spark_home
from spark_jobs.storage.conf import (
    connect_url_file,
    pages_enabled,
    session_conf,
    session_environment,
)
from spark_jobs.storage.java_classes import ensure_classes
from spark_jobs.storage.session import with_token

NAME = "spark-connect"
SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
PROBE_SECONDS = 10


def spark_connect_part(settings: Settings) -> Part:
    """The server as a part of the stack."""
    properties = settings.state / "spark" / "connect.conf"
    home = spark_home()
    return Part(
        name=NAME,
        command=(
            *(str(home / "bin" / "spark-submit"), "--properties-file", str(properties)),
            *("--class", SERVER_CLASS, "spark-internal"),
        ),
        needs=(*cluster_names(settings), *store_names(settings)),
        environment={"SPARK_HOME": str(home), **session_environment(settings)},
        variables=store_variables(settings),
        ports={
            "ports.spark_connect": settings.ports.spark_connect,
            **({"ports.spark_ui": settings.ports.spark_ui} if pages_enabled(settings) else {}),
        },
        prepare=lambda: prepare_server(settings, properties),
        probe=partial(probe_server, settings),
        finish=lambda: announce(settings),
    )


def prepare_server(settings: Settings, properties: Path) -> None:
    """Write the server's configuration; its address is announced once it is ready.

    Raises:
        JarsMissingError: Delta's jars are not in the directory that the settings name.
        StoreJarsMissingError: the lake is in S3, and the jars for S3 are missing.
    """
    connect_url_file(settings).unlink(missing_ok=True)
    conf: dict[str, object] = {
        **session_conf(settings),
        "spark.app.name": "tidemark-connect",
        "spark.master": settings.spark_master,
        "spark.driver.memory": settings.spark.connect_memory,
        "spark.ui.port": settings.ports.spark_ui,
        # A client can do everything that the server's account can.
        "spark.connect.authenticate.token": ensure_secret(settings, CONNECT_TOKEN),
        **cluster_secret(settings),
    }
    ensure_classes(settings)
    write_properties(properties, conf)


def announce(settings: Settings) -> None:
    """Write the server's address to the file where sessions look for it."""
    file = connect_url_file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(connect_url(settings))
    fresh.replace(file)


def connect_url(settings: Settings) -> str:
    """Where the server listens."""
    # Without TLS, a client sends a token only to this host name.
    return f"sc://localhost:{settings.ports.spark_connect}"


def probe_server(settings: Settings) -> str | None:
    """Why the server is not ready; None once it returns its version over Spark Connect."""
    port = settings.ports.spark_connect
    if not listening(port):
        return "does not listen yet"
    # Imported here, because gRPC and Spark's messages take most of a second to import.
    import grpc  # noqa: PLC0415
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415
    from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc  # noqa: PLC0415

    request = base_pb2.AnalyzePlanRequest(
        session_id=str(uuid.uuid4()),
        user_context=base_pb2.UserContext(user_id="health"),
        spark_version=base_pb2.AnalyzePlanRequest.SparkVersion(),
    )
    url = connect_url(settings)
    address = with_token(url, connect_token(settings, url))
    with DefaultChannelBuilder(address).toChannel() as channel:
        service = base_pb2_grpc.SparkConnectServiceStub(channel)  # type: ignore[no-untyped-call]
        try:
            answer = service.AnalyzePlan(request, timeout=PROBE_SECONDS)
            service.ReleaseSession(
                base_pb2.ReleaseSessionRequest(
                    session_id=request.session_id, user_context=request.user_context
                ),
                timeout=PROBE_SECONDS,
            )
        except grpc.RpcError as error:
            return f"answers {error.code().name.lower()}"
    return None if re.match(r"\d", answer.spark_version.version) else "does not report its version"
