"""Spark sessions: over Connect where a server is configured or up, otherwise in this process."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from spark_jobs.settings import Settings
from spark_jobs.storage.conf import (
    SEMANTIC_CONF,
    check_java,
    connect_url_file,
    session_conf,
    session_environment,
)
from spark_jobs.storage.errors import SparkUnreachableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_PORT = 15002
# A session for one command: no web page, and no warnings between the command's own lines.
QUIET = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}


def open_session(settings: Settings) -> SparkSession:
    """A session for batch work: DataFrame and SQL only, so that it may be a Connect session.

    Raises:
        SparkUnreachableError: a server is configured and does not answer.
        JarsMissingError: a session in this process needs jars that are not there.
        JavaMissingError: a session in this process needs Java.
    """
    remote = settings.spark.remote or local_server(settings)
    if remote:
        return remote_session(remote)
    return driver_session(settings, "tidemark", conf=QUIET)


def local_server(settings: Settings) -> str | None:
    """The URL of the Connect server that runs for this state directory, or None."""
    file = connect_url_file(settings)
    if not file.is_file():
        return None
    url = file.read_text("utf-8").strip()
    return url if _answers(url) else None


def remote_session(remote: str) -> SparkSession:
    """A new session of a Connect server.

    Raises:
        SparkUnreachableError: nothing listens there.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Asked first, because the client tries for minutes before it gives up.
    if not _answers(remote):
        raise SparkUnreachableError(remote, "Nothing listens at that address.")
    try:
        spark: SparkSession = SparkSession.builder.remote(remote).create()
        for key, value in SEMANTIC_CONF.items():
            if spark.conf.get(key, None) != value:
                spark.conf.set(key, value)
    except PySparkException as error:
        raise SparkUnreachableError(remote, str(error)) from error
    return spark


def driver_session(
    settings: Settings, app_name: str, *, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A classic session, whose driver is a JVM below this process.

    Raises:
        JarsMissingError: Delta's jars are not where the settings say.
        JavaMissingError: there is no Java.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415

    check_java()
    builder = SparkSession.builder.master(settings.spark.master).appName(app_name)
    for key, value in {**session_conf(settings), **(conf or {})}.items():
        builder = builder.config(key, value)
    for key, value in session_environment(settings).items():
        os.environ.setdefault(key, value)
    settings.state.mkdir(parents=True, exist_ok=True)
    return builder.getOrCreate()


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or CONNECT_PORT), 1):
            return True
    except OSError:
        return False
