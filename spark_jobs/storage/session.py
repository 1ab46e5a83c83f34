"""Spark sessions: over Connect where a server is named, otherwise in this process.

A server that is named and does not answer is an error. A session in this process would give the
same rows, but take the memory of a second Spark, and nobody would learn that the server is down.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.access.secrets import connect_token
from spark_jobs.settings import Settings
from spark_jobs.storage.conf import (
    SEMANTIC_CONF,
    check_java,
    connect_url_file,
    session_conf,
    session_environment,
)
from spark_jobs.storage.errors import SparkUnreachableError
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.rights import restrict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long a server may take to answer: one that was killed is back within seconds, or not soon.
ANSWER_SECONDS = 5.0
# A session for one command: no web page, and no warnings between the command's own lines.
QUIET = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}


def open_session(settings: Settings) -> SparkSession:
    """A session for batch work: DataFrame and SQL only, so that it may be a Connect session.

    The setting ``spark.remote`` names a server, or else the local stack has announced its own.

    Raises:
        SparkUnreachableError: a server is named and does not answer.
        JarsMissingError: a session in this process needs jars that are not there.
        JavaMissingError: a session in this process needs Java.
    """
    token = connect_token(settings)
    if settings.spark.remote:
        return remote_session(settings.spark.remote, token=token)
    announced = connect_url_file(settings)
    if announced.is_file():
        return remote_session(
            announced.read_text("utf-8").strip(), announced_in=announced, token=token
        )
    return driver_session(settings, "tidemark", conf=QUIET)


def remote_session(
    remote: str, *, announced_in: Path | None = None, token: str | None = None
) -> SparkSession:
    """A new session of a Connect server.

    Args:
        remote: the server's URL.
        announced_in: the file that names the server; None where a setting does.
        token: what the server asks for; None where it asks nobody. It is sent to a server on this
            machine, or by TLS.

    Raises:
        SparkUnreachableError: it does not answer within ``ANSWER_SECONDS``, or refuses.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    started = time.monotonic()
    address = with_token(remote, token)
    try:
        _wait_for_answer(address)
        spark: SparkSession = SparkSession.builder.remote(address).create()
        for key, value in SEMANTIC_CONF.items():
            if spark.conf.get(key, None) != value:
                spark.conf.set(key, value)
    except (PySparkException, TimeoutError) as error:
        raise SparkUnreachableError(
            remote,
            str(error),
            seconds=time.monotonic() - started,
            announced_in=announced_in,
        ) from error
    return spark


def with_token(remote: str, token: str | None) -> str:
    """A Connect URL that holds the token, so keep it out of logs.

    >>> with_token("sc://localhost:15002", "t"), with_token("sc://a:1/;use_ssl=true", None)
    ('sc://localhost:15002/;token=t', 'sc://a:1/;use_ssl=true')
    """
    if token is None:
        return remote
    return f"{remote.rstrip('/') if '/;' in remote else remote.rstrip('/') + '/'};token={token}"


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
    builder = SparkSession.builder.master(settings.spark_master).appName(app_name)
    for key, value in {**session_conf(settings), **(conf or {})}.items():
        builder = builder.config(key, value)
    for key, value in session_environment(settings).items():
        os.environ.setdefault(key, value)
    settings.state.mkdir(parents=True, exist_ok=True)
    restrict(Lake(settings.lake), readable=settings.security.readable)
    return builder.getOrCreate()


def _wait_for_answer(remote: str) -> None:
    """Wait until a server speaks its protocol; the client itself would try for minutes.

    Raises:
        TimeoutError: it does not, within ``ANSWER_SECONDS``.
    """
    import grpc  # noqa: PLC0415
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415

    with DefaultChannelBuilder(remote).toChannel() as channel:
        answer = grpc.channel_ready_future(channel)
        try:
            answer.result(timeout=ANSWER_SECONDS)
        except grpc.FutureTimeoutError:
            answer.cancel()
            raise TimeoutError("Nothing answers at that address.") from None
