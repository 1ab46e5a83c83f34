"""Jars and settings with which Spark reads and commits to a lake in S3.

``ConditionalLogStore.java`` lets Spark on several machines and delta-rs commit to one table. Setup
compiles it; every process that commits has the jar on its class path.
"""

from __future__ import annotations

from pathlib import Path

from spark_jobs.settings import REGION, Settings
from spark_jobs.storage.errors import StoreJarsMissingError

JAVA_SOURCE = Path(__file__).with_name("ConditionalLogStore.java")
JAVA_CLASS = "tidemark.ConditionalLogStore"
JAR = "tidemark-log-store.jar"
SCHEME = "s3a://"


def in_s3(location: str) -> bool:
    """Whether Spark accesses a location through its S3 connector.

    >>> in_s3("s3a://bucket/lake"), in_s3("/lake")
    (True, False)
    """
    return location.startswith(SCHEME)


def store_jars(settings: Settings) -> list[Path]:
    """The S3 connector and the log store.

    Raises:
        StoreJarsMissingError: setup has not fetched the connector, or not compiled the log store.
    """
    jars = sorted(settings.s3_jars.glob("*.jar"))
    lacking = [
        name for name in ("hadoop-aws-", JAR) if not any(jar.name.startswith(name) for jar in jars)
    ]
    if lacking:
        raise StoreJarsMissingError(settings.s3_jars)
    return jars


def store_conf(settings: Settings) -> dict[str, str]:
    """Settings of a session for a lake in S3, without credentials.

    The connector reads credentials from environment variables.
    """
    conf = {
        "spark.delta.logStore.s3a.impl": JAVA_CLASS,
        # The connector's default stream needs another library; this one supports Parquet's vectored
        # reads too.
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
    }
    if settings.local.object_store:
        conf |= {
            "spark.hadoop.fs.s3a.endpoint": settings.store_endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": REGION,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
    return conf
