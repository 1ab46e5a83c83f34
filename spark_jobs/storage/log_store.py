"""A lake in S3: the jars and the settings by which Spark reaches it, and commits.

``ConditionalLogStore.java`` lets drivers of several machines and delta-rs commit to one table.
Setup compiles it; every process that commits finds the jar beside the connector's.
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
    """Whether Spark reaches a location by its connector for S3.

    >>> in_s3("s3a://bucket/lake"), in_s3("/lake")
    (True, False)
    """
    return location.startswith(SCHEME)


def store_jars(settings: Settings) -> list[Path]:
    """The connector for S3 and the log store.

    Raises:
        StoreJarsMissingError: setup has not fetched the one, or not compiled the other.
    """
    jars = sorted(settings.s3_jars.glob("*.jar"))
    lacking = [
        name for name in ("hadoop-aws-", JAR) if not any(jar.name.startswith(name) for jar in jars)
    ]
    if lacking:
        raise StoreJarsMissingError(settings.s3_jars)
    return jars


def store_conf(settings: Settings) -> dict[str, str]:
    """What a session needs beside the jars where the lake is in S3.

    Keys are not among it: the connector finds them in the environment.
    """
    conf = {
        "spark.delta.logStore.s3a.impl": JAVA_CLASS,
        # The vectored reads that Parquet asks for come from this kind of stream; the other one,
        # the connector's default, is a library of its own.
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
    }
    if settings.local.object_store:
        conf |= {
            "spark.hadoop.fs.s3a.endpoint": settings.store_endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": REGION,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
    return conf
