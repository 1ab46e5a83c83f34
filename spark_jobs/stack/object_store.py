"""An S3-compatible object store: S3Proxy over a directory, on loopback, with an access key.

It publishes a conditional write by a hard link, which the kernel grants to one writer only. Objects
are files, with their metadata in extended attributes. ``ObjectStore.java`` is its main class.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import httpx

from spark_jobs.access.secrets import secret_path
from spark_jobs.settings import BUCKET, REGION, Settings, use_object_store
from spark_jobs.stack.errors import AttributesUnsupportedError, ObjectStoreJarsMissingError
from spark_jobs.stack.java import LOGBACK, SMALL_JVM, java_program, properties_text
from spark_jobs.stack.parts import Part
from spark_jobs.stack.secrets import ensure_secret, write_secret
from spark_jobs.stack.trust import trusted

JAVA_SOURCE = Path(__file__).with_name("ObjectStore.java")
JAVA_CLASS = "tidemark.ObjectStore"
JAR = "tidemark-object-store.jar"
NAME = "object-store"
USER = "tidemark"
KEY = "object-store"
HEAP = "512m"
PROBE_SECONDS = 5
# The response to a request without a key.
REFUSED = 403


def object_store_parts(settings: Settings) -> list[Part]:
    """The server as a part of the stack, if the settings ask for it."""
    if not settings.local.object_store:
        return []
    return [
        Part(
            name=NAME,
            command=(
                java_program(),
                f"-Xmx{HEAP}",
                *SMALL_JVM,
                "-XX:+ExitOnOutOfMemoryError",
                f"-Dlogback.configurationFile={directory(settings) / 'logback.xml'}",
                *("-cp", f"{settings.s3proxy_jars}/*"),
                JAVA_CLASS,
                str(configuration(settings)),
            ),
            ports={"ports.object_store": settings.ports.object_store},
            prepare=partial(prepare_server, settings),
            probe=partial(probe_server, settings),
        )
    ]


def store_names(settings: Settings) -> tuple[str, ...]:
    """The parts that must serve before the lake can be reached."""
    return tuple(part.name for part in object_store_parts(settings))


def store_variables(settings: Settings) -> Path | None:
    """The file with the environment variables of Java clients; None without an object store."""
    return settings.store_variables if settings.local.object_store else None


def directory(settings: Settings) -> Path:
    """The server's configuration and data."""
    return settings.state / NAME


def configuration(settings: Settings) -> Path:
    """The server's configuration, which holds its key."""
    return secret_path(settings, "object-store.properties")


def check_object_store(settings: Settings) -> None:
    """Check that setup has downloaded the server's classpath.

    Raises:
        ObjectStoreJarsMissingError: jars are missing.
    """
    if not (settings.s3proxy_jars / JAR).exists():
        raise ObjectStoreJarsMissingError(settings.s3proxy_jars)


def prepare_server(settings: Settings) -> None:
    """Generate the key if there is none, and write the bucket and the configurations.

    Raises:
        AttributesUnsupportedError: the file system would lose the objects' metadata.
    """
    home = directory(settings)
    bucket = home / "data" / BUCKET
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    bucket.mkdir(parents=True, exist_ok=True)
    check_attributes(bucket)
    (home / "logback.xml").write_text(LOGBACK)
    key = ensure_secret(settings, KEY)
    properties = {
        "s3proxy.endpoint": settings.store_endpoint,
        "s3proxy.authorization": "aws-v4",
        "s3proxy.identity": USER,
        "s3proxy.credential": key,
        "jclouds.filesystem.basedir": bucket.parent,
    }
    write_secret(settings, configuration(settings).name, properties_text(properties))
    variables = {
        "AWS_ACCESS_KEY_ID": USER,
        "AWS_SECRET_ACCESS_KEY": key,
        "AWS_ENDPOINT_URL": settings.store_endpoint,
        "AWS_REGION": REGION,
        # There is no TLS on loopback.
        "AWS_ALLOW_HTTP": "true",
    }
    write_secret(settings, settings.store_variables.name, json.dumps(variables))
    use_object_store(settings)


def check_attributes(folder: Path) -> None:
    """Check that files of a directory can have extended attributes.

    Raises:
        AttributesUnsupportedError: they cannot.
    """
    try:
        os.setxattr(folder, "user.tidemark", b"1")
    except OSError as error:
        raise AttributesUnsupportedError(folder) from error


def probe_server(settings: Settings) -> str | None:
    """Why the server is not ready; None once it asks for a key."""
    try:
        store, trust = settings.store_endpoint, trusted()
        answer = httpx.get(store, timeout=PROBE_SECONDS, trust_env=False, verify=trust)
    except httpx.HTTPError:
        return "does not answer yet"
    return None if answer.status_code == REFUSED else f"answers {answer.status_code} without a key"
