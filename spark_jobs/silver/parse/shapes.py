"""The shape of a record: its field names and JSON kinds, as one short text.

The text is the row's ``schema_of_variant``, followed by values that the declaration does not list.
Many records have few different shapes, so shapes are grouped and parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, reduce

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.definitions.vocabulary import Operation, SourceFormat
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.silver.parse.documents import LAST, RAW_COLUMNS
from spark_jobs.silver.parse.unavailable import forms, shortest_forms

# Changes that leave a row, as the plain text that Spark takes.
WRITES = tuple(map(str, (Operation.CREATE, Operation.UPDATE, Operation.SNAPSHOT)))
SHAPE = "__shape"
# The record's sequence in the order of commits; NULL for an event.
COMMIT = "__commit"
# Separators: JSON escapes these characters in names and values.
_PART, _VALUE = "\x1f", "\x1e"
_STANDS_IN = "unavailable"
_LONGEST_VALUE = 64
_OBJECT = "OBJECT<"
_KINDS = {
    "BIGINT": "number",
    "DECIMAL": "number",
    "DOUBLE": "number",
    "FLOAT": "number",
    "STRING": "string",
    "BOOLEAN": "boolean",
    "OBJECT": "object",
    "ARRAY": "array",
    "VOID": "null",
}


class Kind(StrEnum):
    """The kind of a JSON value."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"
    NULL = "null"
    OTHER = "other"


@dataclass(frozen=True)
class Shape:
    """The fields of a record.

    Attributes:
        fields: names as sent, with the kind of the value.
        unlisted: pairs of a column and a value that its declaration does not list.
        exact: whether the kinds are those of real values; a placeholder has another kind.
    """

    fields: dict[str, Kind]
    unlisted: tuple[tuple[str, str], ...] = ()
    exact: bool = True


def shape(source: SourceEntry, types: Column, *, operation: str, placeholder: str) -> Column:
    """The shape of a record with a row; NULL for others.

    Args:
        source: the declaration.
        types: the row's ``schema_of_variant``; NULL without a row.
        operation: name of the column with the change's operation; NULL for an event.
        placeholder: Debezium's placeholder for a value that the database did not send.
    """
    # Drop precision and scale: otherwise each would be another shape.
    plain = sf.regexp_replace(types, r"DECIMAL\(\d+,\d+\)", "DECIMAL")
    named = sf.when(sf.contains(types, sf.lit("DECIMAL(")), plain).otherwise(types)
    unlisted = [
        sf.when(
            # What stands in a value's place is not its value.
            ~sf.col(column.name).isin(*column.values, *forms(placeholder)),
            sf.concat(sf.lit(column.name + _VALUE), sf.substring(column.name, 1, _LONGEST_VALUE)),
        )
        for column in source.columns
        if column.values
    ]
    if source.format is not SourceFormat.DEBEZIUM:
        return sf.when(types.isNotNull(), sf.concat_ws(_PART, named, *unlisted))
    text = sf.col(RAW_COLUMNS["value"]).cast("string")
    # Only updates omit values. It may match too often: a value that merely contains the
    # placeholder; harmless.
    contained = [sf.contains(text, sf.lit(one)) for one in shortest_forms(placeholder)]
    update = sf.col(operation) == str(Operation.UPDATE)
    stands_in = sf.when(update, sf.when(reduce(Column.__or__, contained), sf.lit(_STANDS_IN)))
    # The image of a deleted row may have only the key.
    whole = sf.col(operation).isin(*WRITES) & is_object(types)
    return sf.when(whole, sf.concat_ws(_PART, named, stands_in, *unlisted))


def is_object(types: Column) -> Column:
    """Whether a variant is an object, by its ``schema_of_variant``; NULL for NULL."""
    return sf.startswith(types, sf.lit(_OBJECT))


@lru_cache(maxsize=4096)
def read_shape(text: str) -> Shape:
    r"""Parse the text of a shape.

    >>> found = read_shape("OBJECT<a: BIGINT, `b c`: ARRAY<OBJECT<d: STRING>>>\x1fstatus\x1enew")
    >>> [(name, str(kind)) for name, kind in found.fields.items()], found.unlisted
    ([('a', 'number'), ('b c', 'array')], (('status', 'new'),))
    """
    schema, *parts = text.split(_PART)
    fields = {name: _kind(kind) for name, kind in _fields(schema) if name != LAST}
    pairs = (part.partition(_VALUE) for part in parts if _VALUE in part)
    unlisted = tuple((column, value) for column, _, value in pairs)
    return Shape(fields, unlisted, exact=_STANDS_IN not in parts)


def _kind(text: str) -> Kind:
    return Kind(_KINDS.get(re.split(r"[<(]", text, maxsplit=1)[0], Kind.OTHER))


def _fields(schema: str) -> Iterator[tuple[str, str]]:
    """Names and types of an object's own fields."""
    if not schema.startswith(_OBJECT):
        return
    inside = schema.removeprefix(_OBJECT)[:-1]
    depth, begin, quoted = 0, 0, False
    for at, sign in enumerate(f"{inside},"):
        if sign == "`":
            quoted = not quoted
        elif not quoted and sign in "<(":
            depth += 1
        elif not quoted and sign in ">)":
            depth -= 1
        elif not quoted and depth == 0 and sign == "," and at > begin:
            yield _named(inside[begin:at].lstrip())
            begin = at + 1


def _named(field: str) -> tuple[str, str]:
    if field.startswith("`"):
        end = re.match(r"`((?:[^`]|``)*)`: ", field)
        if end is not None:
            return end[1].replace("``", "`"), field[end.end() :]
    name, _, kind = field.partition(": ")
    return name, kind
