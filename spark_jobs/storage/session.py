"""Opens Spark sessions: on a Connect server if one is named, otherwise in this process.

A named server that does not answer is an error. Falling back to this process would take the memory
of a second Spark, and hide that the server is down.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, cast

from spark_jobs.access.errors import TokenRefusedError
from spark_jobs.access.secrets import connect_token, on_loopback, token_file
from spark_jobs.settings import Settings
from spark_jobs.storage.callbacks import only_from
from spark_jobs.storage.conf import (
    SEMANTIC_CONF,
    check_java,
    connect_url_file,
    session_conf,
    session_environment,
)
from spark_jobs.storage.errors import SparkUnreachableError, StateDirectoryError
from spark_jobs.storage.java_classes import ensure_classes
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.rights import close_state, restrict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.storage.accounts import Account

# A server that was killed is restarted within seconds, or will be down for longer.
ANSWER_SECONDS = 5.0
# For a question that can be left out.
HURRY_SECONDS = 2.0
# A connection whose packets vanish fails after 20 seconds if a request is not acknowledged, and
# after five minutes if no answer comes. Servers disconnect clients that ask more often.
KEEPALIVE = (("grpc.keepalive_time_ms", 310_000), ("grpc.keepalive_timeout_ms", 20_000))
# gRPC's status for a missing or wrong token.
_UNAUTHENTICATED = "UNAUTHENTICATED"
# Directories in the state directory; Spark would create them with the caller's umask.
MADE_BY_SPARK = ("spark-local", "spark-warehouse")
# For the session of one command: no warnings among the command's output.
QUIET = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}


def open_session(settings: Settings) -> SparkSession:
    """A session for batch work: DataFrame and SQL only, so that it may be a Connect session.

    The server is named by the setting ``spark.remote``, or else by the local stack.

    Raises:
        SparkUnreachableError: the named server does not answer.
        SecretMissingError: ``security.enabled`` requires a token, and there is none.
        TokenRefusedError: the server requires another token.
        JarsMissingError: a session in this process needs jars that are missing.
        JavaMissingError: a session in this process needs Java.
    """
    if (named := _server(settings)) is not None:
        return remote_session(settings, named.remote, announced_in=named.announced_in)
    return driver_session(settings, "tidemark", conf=QUIET)


@contextmanager
def command_session(settings: Settings, name: str) -> Iterator[SparkSession]:
    """A classic session for the work of one command, which ends with the block.

    Args:
        settings: project settings.
        name: the application's name in Spark.

    Raises:
        LakehouseError: any error of ``driver_session``.
    """
    spark = driver_session(settings, name, conf=QUIET)
    try:
        yield spark
    finally:
        spark.stop()


def served_session(settings: Settings) -> SparkSession | None:
    """A session for a question that can be left out; None: no Connect server is named.

    The server is named as for ``open_session``. It must answer within ``HURRY_SECONDS``, and a
    refused connection or a failed request is not tried again.

    Raises:
        SparkUnreachableError: the named server does not answer.
        SecretMissingError: ``security.enabled`` requires a token, and there is none.
        TokenRefusedError: the server requires another token.
        StateDirectoryError: this account may not read the server's address or token.
    """
    try:
        if (named := _server(settings)) is None:
            return None
        return remote_session(settings, named.remote, announced_in=named.announced_in, hurry=True)
    except OSError as error:
        raise StateDirectoryError(settings.state, error.strerror or str(error)) from error


class _Server(NamedTuple):
    """A Connect server's URL, and the file that names it; None if a setting does."""

    remote: str
    announced_in: Path | None = None


def _server(settings: Settings) -> _Server | None:
    """The server that a setting names, or else the local stack's; None if that does not run."""
    if settings.spark.remote:
        return _Server(settings.spark.remote)
    file = connect_url_file(settings)
    try:
        return _Server(file.read_text("utf-8").strip(), file)
    except FileNotFoundError:
        return None


def remote_session(
    settings: Settings, remote: str, *, announced_in: Path | None = None, hurry: bool = False
) -> SparkSession:
    """A new session of a Connect server, with the token if there is one.

    Args:
        settings: have the token.
        remote: the server's URL.
        announced_in: the file that names the server; None if a setting does.
        hurry: wait only for ``HURRY_SECONDS``, and try nothing again.

    Raises:
        SparkUnreachableError: the server does not answer within ``ANSWER_SECONDS``.
        SecretMissingError: ``security.enabled`` requires a token, and there is none.
        TokenRefusedError: the server requires another token.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415
    from pyspark.sql.connect.session import SparkSession as RemoteSession  # noqa: PLC0415

    log_errors_once()
    started = time.monotonic()
    token = connect_token(settings, remote)
    address = with_token(remote, token)
    try:
        _wait_for_answer(address, hurry=hurry)
        # As the common builder does, which does not accept a channel.
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        channel = DefaultChannelBuilder(address, list(KEEPALIVE))
        spark = cast("SparkSession", RemoteSession.builder.channelBuilder(channel).create())
        if hurry:
            spark.client.set_retry_policies([])
        for key, value in SEMANTIC_CONF.items():
            if spark.conf.get(key, None) != value:
                spark.conf.set(key, value)
    except (PySparkException, TimeoutError) as error:
        if _UNAUTHENTICATED in str(error):
            secret = token_file(settings)
            raise TokenRefusedError(remote, secret=secret, sent=token is not None) from error
        raise SparkUnreachableError(
            remote,
            str(error),
            seconds=time.monotonic() - started,
            announced_in=announced_in,
        ) from error
    return spark


def log_errors_once() -> None:
    """Keep PySpark from logging the errors of queries, which it also raises.

    It would print eleven kilobytes of JSON before the one sentence that a user gets.
    """
    from pyspark.logger import PySparkLogger  # noqa: PLC0415

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def with_token(remote: str, token: str | None) -> str:
    """A Connect URL with the token, so keep it out of logs.

    PySpark sends a token only over TLS or to the host name ``localhost``. A URL with
    ``use_ssl=false`` means a trusted network; there the token is sent as an explicit header.

    >>> with_token("sc://127.0.0.1:15002", "t"), with_token("sc://a:1/;use_ssl=true", "t")
    ('sc://localhost:15002/;token=t', 'sc://a:1/;use_ssl=true;token=t')
    >>> with_token("sc://a:1/;use_ssl=false", "t"), with_token("sc://a:1", None)
    ('sc://a:1/;use_ssl=false;authorization=Bearer%20t', 'sc://a:1')
    """
    if token is None:
        return remote
    server, _, options = remote.partition("/;")
    known = [one for one in options.split(";") if one]
    if "use_ssl=false" in known:
        return f"{server}/;{';'.join([*known, f'authorization=Bearer%20{token}'])}"
    if on_loopback(remote) and "use_ssl=true" not in known:
        port = server.rstrip("/").rpartition(":")[2]
        server = f"sc://localhost:{port}" if port.isdigit() else "sc://localhost"
    return f"{server.rstrip('/')}/;{';'.join([*known, f'token={token}'])}"


def driver_session(
    settings: Settings,
    app_name: str,
    *,
    conf: Mapping[str, str] | None = None,
    account: Account | None = None,
) -> SparkSession:
    """A classic session, whose driver is a JVM child of this process.

    Args:
        settings: project settings.
        app_name: the application's name in Spark.
        conf: settings in addition to those of every session.
        account: account of the JVM, if it is another one.

    Raises:
        JarsMissingError: Delta's jars are not in the directory that the settings name.
        StoreJarsMissingError: the lake is in S3, and the jars for S3 are missing.
        JavaMissingError: Java is not installed.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from spark_jobs.storage.java_lookups import keep_lookups  # noqa: PLC0415

    check_java()
    log_errors_once()
    builder = SparkSession.builder.master(settings.spark_master).appName(app_name)
    for key, value in {**session_conf(settings), **(conf or {})}.items():
        builder = builder.config(key, value)
    ensure_classes(settings)
    for key, value in session_environment(settings).items():
        os.environ.setdefault(key, value)
    close_state(settings.state, makes=MADE_BY_SPARK)
    restrict(Lake(settings.lake), readable=settings.security.readable)
    spark = builder.getOrCreate()
    only_from(spark, {account.uid} if account else ())
    keep_lookups(spark)
    return spark


def _wait_for_answer(remote: str, *, hurry: bool) -> None:
    """Wait until a server answers in its protocol; the client itself would retry for minutes.

    Raises:
        TimeoutError: no answer within ``ANSWER_SECONDS``; in a hurry, within ``HURRY_SECONDS`` or
            at the first try.
    """
    import grpc  # noqa: PLC0415
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415

    ready, refused = grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE
    ends = {ready, refused} if hurry else {ready}
    deadline = time.monotonic() + (HURRY_SECONDS if hurry else ANSWER_SECONDS)
    states: SimpleQueue[grpc.ChannelConnectivity] = SimpleQueue()
    told = states.put
    with DefaultChannelBuilder(remote).toChannel() as channel:
        channel.subscribe(told, try_to_connect=True)
        try:
            while (state := states.get(timeout=max(0.0, deadline - time.monotonic()))) not in ends:
                pass
        except Empty:
            state = None
        finally:
            channel.unsubscribe(told)
    if state is not ready:
        raise TimeoutError("Nothing answers at that address.")
