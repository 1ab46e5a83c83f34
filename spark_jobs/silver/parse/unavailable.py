"""Values that the database did not send: Debezium's placeholder, and what it keeps from a row.

PostgreSQL leaves a large value out of an update that does not touch it. What the SELECT makes of
that column alone is then as it was before; what it makes of it together with others cannot be told.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import SilverEntry, SourceEntry
from spark_jobs.graph.projection import Projection, columns_read

# The names of a change's source columns whose values were not sent, an array without NULL.
UNAVAILABLE = "__unavailable"
# The names of a row's columns that are to be taken from the row before; NULL where there are none.
UNFILLED = "__unfilled"
# PostgreSQL never stores these apart from their row.
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
    """The columns that an update may leave out; those of the key are always sent."""
    return tuple(
        column.name
        for column in source.columns
        if column.type not in _SMALL and column.name not in source.keys
    )


def is_placeholder(text: Column, placeholder: str) -> Column:
    """Whether a value's text is the placeholder; NULL for NULL."""
    return text.isin(*forms(placeholder))


def forms(placeholder: str) -> tuple[str, ...]:
    """The placeholder as a value of each type: a text, bytes, arrays of texts and bytes, hstore."""
    return (
        placeholder,
        base64.b64encode(placeholder.encode()).decode(),
        f'["{placeholder}"]',
        str(list(placeholder.encode())).replace(" ", ""),
        f'{{"{placeholder}":"{placeholder}"}}',
    )


@dataclass(frozen=True)
class Carried:
    """What becomes of unavailable source columns in one silver table.

    Attributes:
        outputs: pairs of an output column that is taken from the row before, and the source
            column that it is made of.
        needed: source columns without which the row, its key, its place or its fate cannot be
            told.
    """

    outputs: tuple[tuple[str, str], ...]
    needed: tuple[str, ...]

    @classmethod
    def of(cls, source: SourceEntry, entry: SilverEntry, projection: Projection) -> Carried:
        """Read off the SELECT and the header."""
        large = {name.lower(): name for name in large_columns(source)}
        keys = {key.lower() for key in entry.keys}
        declared = tuple(column.name for column in source.columns)
        outputs: list[tuple[str, str]] = []
        needed: set[str] = set()
        for name, written in projection.columns:
            read = columns_read(written, declared)
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
        """The output columns that may have to be filled."""
        return tuple(name for name, _ in self.outputs)

    def unfilled(self) -> Column:
        """The value of the column ``__unfilled``."""
        missing = [sf.when(_contains(column), sf.lit(name)) for name, column in self.outputs]
        found = sf.array_compact(sf.array(*missing))
        return sf.when((sf.size(UNAVAILABLE) > 0) & (sf.size(found) > 0), found)

    def lacking(self) -> Column:
        """The first needed column that was not sent, or NULL."""
        found = [sf.when(_contains(column), sf.lit(column)) for column in self.needed]
        return sf.coalesce(*found, sf.lit(None))


def _contains(column: str) -> Column:
    return sf.array_contains(UNAVAILABLE, column)
