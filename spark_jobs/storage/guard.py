"""Spark's own plan decides what a person's query may do: ``Guard.java``, and what it is told.

The class is an extension of every session. It looks into plans only where a policy holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from spark_jobs.graph.functions import spark_functions
from spark_jobs.graph.query import TABLE_FUNCTIONS, UNSAFE_FUNCTIONS
from spark_jobs.settings import Settings
from spark_jobs.storage.errors import JarsMissingError
from spark_jobs.storage.java_compiler import SHIPPED, compile_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_SOURCE: Final = Path(__file__).with_name("Guard.java")
EXTENSION: Final = "tidemark.Guard"
# As in Guard.java.
KEY: Final = "spark.tidemark.reads"
# A session that reads nothing but Delta tables, whatever its policy; as in Guard.java.
ONLY_DELTA: Final = "spark.tidemark.onlyDelta"
REFUSED: Final = "[QUERY_NOT_READ_ONLY] "
_JAR: Final = "tidemark-guard-{}.jar"


@dataclass(frozen=True)
class AllowedTable:
    """A Delta table that a query may read.

    Attributes:
        version: None for each version.
        masked: columns whose values only the mask may read, in lower case.
    """

    location: str
    version: int | None
    masked: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Policy:
    """What one query may read; the functions are the same for all."""

    tables: tuple[AllowedTable, ...] = ()
    views: tuple[str, ...] = ()

    def text(self) -> str:
        """The policy as ``Guard.java`` reads it.

        >>> Policy((AllowedTable("/a b", 3),), ("__ops_x",)).text().splitlines()[:2]
        ['delta /a%20b 3', 'view __ops_x']
        """
        lines = [
            ("delta", one.location, "*" if one.version is None else str(one.version), *one.masked)
            for one in self.tables
        ]
        lines += [("view", name) for name in self.views]
        lines.append(("functions", *sorted(spark_functions().keys() - UNSAFE_FUNCTIONS)))
        lines.append(("tables", *sorted(TABLE_FUNCTIONS)))
        return "\n".join(" ".join(quote(word, safe="/") for word in line) for line in lines)


@contextmanager
def held_to(spark: SparkSession, policy: Policy) -> Iterator[None]:
    """Hold all that a session analyses to a policy while the context lasts.

    Args:
        spark: a session that runs nothing else. One of a server without the extension runs
            whatever it is given.
        policy: what may be read.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415

    spark.conf.set(KEY, policy.text())
    try:
        yield
    finally:
        # A server that is gone has said so before.
        with suppress(PySparkException):
            spark.conf.unset(KEY)


def guard_jar(settings: Settings) -> Path:
    """Where the extension lies, as its source is now."""
    digest = hashlib.sha256(JAVA_SOURCE.read_bytes()).hexdigest()[:12]
    return settings.spark_jars / _JAR.format(digest)


def ensure_guard(settings: Settings) -> None:
    """Compile the extension beside Delta's jars, unless it is there as its source is now.

    Raises:
        JarsMissingError: it is not there and cannot be put there.
    """
    jar = guard_jar(settings)
    if jar.exists():
        return
    try:
        compile_jar(JAVA_SOURCE, jar, [str(SHIPPED / "*"), str(settings.spark_jars / "*")])
    except OSError as error:
        raise JarsMissingError(str(settings.spark_jars)) from error
    for old in settings.spark_jars.glob(_JAR.format("*")):
        if old != jar:
            old.unlink(missing_ok=True)
