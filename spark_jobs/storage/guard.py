"""Restricts what a user's query may read, by a Spark extension (``Guard.java``) and its policy.

The extension is part of every session, and checks plans only while a policy is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from spark_jobs.graph.functions import spark_functions
from spark_jobs.graph.query import TABLE_FUNCTIONS, UNSAFE_FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION: Final = "tidemark.Guard"
# As in Policy.java.
KEY: Final = "spark.tidemark.reads"
# Set for a session that may read only Delta tables, under any policy; as in Guard.java.
ONLY_DELTA: Final = "spark.tidemark.onlyDelta"
REFUSED: Final = "[QUERY_NOT_READ_ONLY] "


@dataclass(frozen=True)
class AllowedTable:
    """A Delta table that a query may read.

    Attributes:
        version: the allowed version; None: all.
        masked: lower-case names of columns that only the mask function may read.
    """

    location: str
    version: int | None
    masked: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Policy:
    """The tables and views that a query may read; allowed functions are the same for all."""

    tables: tuple[AllowedTable, ...] = ()
    views: tuple[str, ...] = ()

    def text(self) -> str:
        """The policy as ``Policy.java`` reads it.

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
def enforced(spark: SparkSession, policy: Policy) -> Iterator[None]:
    """Enforce a policy on all queries of a session while the context lasts.

    Args:
        spark: a session used for nothing else. A server without the extension enforces nothing.
        policy: what may be read.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415

    spark.conf.set(KEY, policy.text())
    try:
        yield
    finally:
        # If the server is gone, the query has failed already.
        with suppress(PySparkException):
            spark.conf.unset(KEY)
