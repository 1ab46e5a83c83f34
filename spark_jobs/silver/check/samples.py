"""Samples of a large table: the rows whose keys hash into one range, equal on both sides.

Postgres and Spark hash the same text of a key with MD5, so both select the same rows. Only types
whose text is the same in both are used; a table with other keys is compared in full.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.access.source_tables import PostgresType
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.graph.projection import Projection

# Their text in Postgres is their text in Spark, if they are declared as what they are.
_WHOLE = frozenset({"int2", "int4", "int8"})
_TEXTS = frozenset({"text", "varchar", "uuid"})
_DECLARED_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
# Between the parts of a composite key.
_SEPARATOR = "\x1f"
_HASH_DIGITS = 8
_HASHES = 16**_HASH_DIGITS
_ROWS = """
SELECT greatest(c.reltuples, s.n_live_tup, 0)::bigint
FROM pg_class AS c LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
WHERE c.oid = to_regclass(%s)
"""
_BARE = re.compile(r"(?:\w+\.)?`?(\w+)`?")


@dataclass(frozen=True)
class Sample:
    """One of several ranges of hashes of keys.

    Attributes:
        source: the key columns in the source.
        silver: the same columns in the silver table.
        number: which range, from 0.
        ranges: the number of ranges.
        rows: the estimated number of rows of the whole source table.
    """

    source: tuple[str, ...]
    silver: tuple[str, ...]
    number: int
    ranges: int
    rows: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The first hash of the range, and the first one after it."""
        first = -(-_HASHES * self.number // self.ranges)
        return first, -(-_HASHES * (self.number + 1) // self.ranges)

    def condition(self) -> sql.Composable:
        """The condition on rows of the source."""
        parts = [sql.SQL("{}::text").format(sql.Identifier(name)) for name in self.source]
        key = sql.SQL("concat_ws({}, {})").format(
            sql.Literal(_SEPARATOR), sql.SQL(", ").join(parts)
        )
        digits = sql.SQL("left(md5({}), {})").format(key, sql.Literal(_HASH_DIGITS))
        # A bit string of 32 digits is a negative integer where the first is 1; of 40 it never is.
        number = sql.SQL("('x00' || {})::bit(40)::bigint").format(digits)
        first, end = map(sql.Literal, self.bounds)
        return sql.SQL("{0} >= {1} AND {0} < {2}").format(number, first, end)

    def of(self, silver: DataFrame) -> DataFrame:
        """The rows of the silver table in the range."""
        parts: list[Column] = [sf.col(name).cast("string") for name in self.silver]
        key = sf.concat_ws(_SEPARATOR, *parts)
        number = sf.conv(sf.substring(sf.md5(key.cast("binary")), 1, _HASH_DIGITS), 16, 10)
        first, end = self.bounds
        hashed = number.cast("bigint")
        return silver.where((hashed >= first) & (hashed < end))


# Chooses a sample with an open connection and the types of the declared columns.
Choose = Callable[[psycopg.Connection[Any], Mapping[str, PostgresType]], Sample | None]


def sample_above(most_rows: int, source: SourceEntry, projection: Projection) -> Choose:
    """Choose a range at random, such that about ``most_rows`` rows are compared.

    Args:
        most_rows: larger tables are sampled; 0: none is.
        source: a Debezium source with a ``table``.
        projection: the silver table's SELECT.
    """

    def choose(
        connection: psycopg.Connection[Any], kinds: Mapping[str, PostgresType]
    ) -> Sample | None:
        name = sql.Identifier(*(source.table or "").split(".")).as_string(None)
        found = connection.execute(_ROWS, [name]).fetchone()
        rows = int(found[0]) if found else 0
        silver = _silver_keys(source, projection)
        declared = {column.name: column.type for column in source.columns}
        plain = all(_same_text(kinds[key], declared[key]) for key in source.keys)
        if not most_rows or rows <= most_rows or silver is None or not plain:
            return None
        ranges = -(-rows // most_rows)
        return Sample(source.keys, silver, random.SystemRandom().randrange(ranges), ranges, rows)

    return choose


def _same_text(kind: PostgresType, declared: str) -> bool:
    """Whether values of a key have the same text in Postgres and in Spark."""
    text = declared == "string" or declared.startswith(("varchar(", "char("))
    whole = kind.name in _WHOLE and (text or declared in _DECLARED_WHOLE)
    return kind.array is None and (whole or (kind.name in _TEXTS and text))


def _silver_keys(source: SourceEntry, projection: Projection) -> tuple[str, ...] | None:
    """The silver columns that are the source's keys, unchanged; None if one is missing."""
    kept = {
        bare[1].lower(): name
        for name, text in projection.columns
        if (bare := _BARE.fullmatch(text)) is not None
    }
    found = [kept.get(key.lower()) for key in source.keys]
    return tuple(name for name in found if name is not None) if all(found) and found else None
