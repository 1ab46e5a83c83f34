"""Values that the database did not send, and how a silver table keeps them.

PostgreSQL omits a large value from an update that does not change it, and Debezium sends a
placeholder. An output column that depends on that column alone keeps its old value; one that
depends on others too cannot be computed.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import SilverEntry, SourceEntry
from spark_jobs.graph.projection import Projection, columns_read

# Array of the names of a change's unsent source columns.
UNAVAILABLE = "__unavailable"
# Names of the columns to fill from the preceding row; NULL if there are none.
UNFILLED = "__unfilled"
# PostgreSQL never stores these types out of line.
_SMALL = frozenset(
    {
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "date",
        "timestamp",
        "timestamp_ntz",
    }
)


def large_columns(source: SourceEntry) -> tuple[str, ...]:
    """The columns that an update may omit; key columns are always sent."""
    return tuple(
        column.name
        for column in source.columns
        if column.type not in _SMALL and column.name not in source.keys
    )


def is_placeholder(text: Column, placeholder: str) -> Column:
    """Whether a value's text is the placeholder; NULL for NULL."""
    return text.isin(*forms(placeholder))


def forms(placeholder: str) -> tuple[str, ...]:
    """The placeholder as Debezium encodes it.

    For text, bytes, arrays of text, bytes, numbers and UUIDs, and for hstore.
    """
    raw = placeholder.encode()
    encoded = base64.b64encode(raw).decode()
    # As Java's UUID.nameUUIDFromBytes.
    identity = UUID(bytes=hashlib.md5(raw, usedforsecurity=False).digest(), version=3)
    return (
        placeholder,
        encoded,
        f'["{placeholder}"]',
        f'["{encoded}"]',
        str(list(raw)).replace(" ", ""),
        f'["{identity}"]',
        f'{{"{placeholder}":"{placeholder}"}}',
    )


def shortest_forms(placeholder: str) -> tuple[str, ...]:
    """Texts of which a record contains at least one if it contains one of ``forms``."""
    every = forms(placeholder)
    return tuple(one for one in every if not any(one != less and less in one for less in every))


@dataclass(frozen=True)
class Carried:
    """How a silver table handles unsent source columns.

    Attributes:
        outputs: pairs of an output column that keeps its old value, and its source column.
        needed: source columns without which row, key, sequence or disposition is unknown.
    """

    outputs: tuple[tuple[str, str], ...]
    needed: tuple[str, ...]

    @classmethod
    def of(cls, source: SourceEntry, entry: SilverEntry, projection: Projection) -> Carried:
        """Derive it from the SELECT and the header."""
        large = {name.lower(): name for name in large_columns(source)}
        keys = {key.lower() for key in entry.keys}
        declared = tuple(column.name for column in source.columns)
        outputs: list[tuple[str, str]] = []
        needed: set[str] = set()
        # A comparison of two columns is an expression of both.
        compared = {name for one in entry.quarantining if one.columns[1:] for name in one.columns}
        for name, written in projection.columns:
            read = columns_read(written, declared)
            if name in compared:
                needed |= read
            if len(read) == 1 and name.lower() not in keys:
                outputs += [(name, large[one]) for one in read if one in large]
            else:
                needed |= read
        for condition in (projection.condition, entry.apply_as_deletes, entry.sequence_by):
            if condition:
                needed |= columns_read(condition, declared)
        return cls(tuple(outputs), tuple(large[one] for one in sorted(needed & large.keys())))

    @property
    def names(self) -> tuple[str, ...]:
        """Output columns that may have to be filled."""
        return tuple(name for name, _ in self.outputs)

    def unfilled(self) -> Column:
        """The value of ``__unfilled``."""
        missing = [sf.when(_contains(column), sf.lit(name)) for name, column in self.outputs]
        found = sf.array_compact(sf.array(*missing))
        return sf.when((sf.size(UNAVAILABLE) > 0) & (sf.size(found) > 0), found)

    def unsent(self) -> dict[str, Column]:
        """Whether the value of an output column is to be filled, by its name."""
        return {name: _contains(column) for name, column in self.outputs}

    def lacking(self) -> Column:
        """The first needed column that was not sent, or NULL."""
        found = [sf.when(_contains(column), sf.lit(column)) for column in self.needed]
        return sf.coalesce(*found, sf.lit(None))


def _contains(column: str) -> Column:
    return sf.array_contains(UNAVAILABLE, column)
