"""Checks rules across the keys of a source."""

from __future__ import annotations

from collections.abc import Iterator

from spark_jobs.definitions.errors import (
    ColumnNameError,
    ColumnNotDeclaredError,
    DuplicateColumnDeclarationError,
    KeyNotApplicableError,
    MissingKeyError,
    ReservedColumnError,
    UnexpectedValueError,
)
from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.models import SourceFile
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import LakehouseError
from spark_jobs.names import COLUMN, INTERNAL_TOPIC, RESERVED_COLUMN_PREFIX, TOPIC

# The id has four bytes in a record.
MOST_SCHEMA_ID = 2**31 - 1
_FILES = [one for one in SourceFormat if one.of_file]
_NEEDED_FOR_A_FILE = {
    "path": "The rows are in a file below seeds/.",
    "columns": "Values are read as the types that are declared.",
    "keys": "A changed file changes only the rows that differ, by this key.",
}
_NEEDED = {
    SourceFormat.JSON: {
        "topic": "Records are read from a Kafka topic.",
        "columns": "Records are typed by the columns that are declared.",
        "event_id": "Repeated events are detected by the column that identifies an event.",
    },
    SourceFormat.AVRO: {
        "topic": "Records are read from a Kafka topic.",
        "columns": "Records are typed by the columns that are declared.",
        "event_id": "Repeated events are detected by the column that identifies an event.",
        "schemas": "Records are decoded by the schema that they were written with.",
    },
    SourceFormat.DEBEZIUM: {
        "topic": "Records are read from a Kafka topic.",
        "columns": "Records are typed by the columns that are declared.",
        "keys": "Changes are applied by the primary key of the source table. A table without one "
        "cannot be followed: PostgreSQL does not say which of its rows changed.",
    },
    SourceFormat.DELTA: {
        "location": "The location of the table: a path from the project, or a URL.",
    },
    **dict.fromkeys(_FILES, _NEEDED_FOR_A_FILE),
}
_OF_A_FILE = ("path", "most_rejected")
_NOT_FOR = {
    SourceFormat.JSON: ("location", "keys", "table", "schemas", *_OF_A_FILE),
    SourceFormat.AVRO: ("location", "keys", "table", *_OF_A_FILE),
    SourceFormat.DEBEZIUM: ("location", "event_id", "schemas", *_OF_A_FILE),
    SourceFormat.DELTA: (
        *("topic", "event_id", "event_time", "watermark", "keys", "table", "schemas", "on_drift"),
        *_OF_A_FILE,
    ),
    **dict.fromkeys(
        _FILES,
        (
            *("topic", "event_id", "event_time", "watermark", "table", "schemas", "on_drift"),
            "location",
        ),
    ),
}


def check_source(
    source: SourceFile, places: Places, subject: str, *, written: frozenset[str]
) -> Iterator[LakehouseError]:
    """Every problem of one source file.

    Args:
        source: the parsed file.
        places: locations of its keys and values.
        subject: its name in messages.
        written: the keys that the file has.
    """
    for key, reason in _NEEDED[source.format].items():
        if key not in written:
            yield MissingKeyError(
                subject, key, f"{reason} The format is {source.format}.", location=places.of()
            )
        elif not getattr(source, key):
            yield UnexpectedValueError(
                subject, key, "it is empty", reason, location=places.value_of(key)
            )
    for key in _NOT_FOR[source.format]:
        if key in written:
            reason = f"its format is {source.format}"
            yield KeyNotApplicableError(subject, key, reason, location=places.of(key))
    if source.topic and not TOPIC.fullmatch(source.topic):
        yield UnexpectedValueError(
            subject,
            "topic",
            f"{source.topic!r} cannot be a Kafka topic",
            "A topic has letters, digits, dots, underscores and hyphens, at most 249.",
            location=places.value_of("topic"),
        )
    elif source.topic and INTERNAL_TOPIC.fullmatch(source.topic):
        yield UnexpectedValueError(
            subject,
            "topic",
            f"{source.topic!r} is an internal topic",
            "Kafka, Kafka Connect and Tidemark keep their own state there. Name the topic that "
            'the producer writes; it does not start with "_".',
            location=places.value_of("topic"),
        )
    yield from _check_schema_ids(source, places, subject)
    yield from _check_columns(source, places, subject)
    if source.columns:
        yield from _check_references(source, places, subject)


def _check_columns(source: SourceFile, places: Places, subject: str) -> Iterator[LakehouseError]:
    seen: set[str] = set()
    for name in source.columns:
        place = places.of("columns", name)
        if name.startswith(RESERVED_COLUMN_PREFIX):
            yield ReservedColumnError(subject, name, location=place)
        elif not COLUMN.fullmatch(name):
            yield ColumnNameError(subject, name, location=place)
        if name.lower() in seen:
            yield DuplicateColumnDeclarationError(subject, name, location=place)
        seen.add(name.lower())


def _check_schema_ids(source: SourceFile, places: Places, subject: str) -> Iterator[LakehouseError]:
    for key in source.schemas if isinstance(source.schemas, dict) else ():
        if not (key.isdecimal() and int(key) <= MOST_SCHEMA_ID):
            yield UnexpectedValueError(
                subject,
                "schemas",
                f"{key!r} is not a schema id",
                f"A registry numbers schemas from 0 to {MOST_SCHEMA_ID}.",
                location=places.of("schemas", key),
            )


def _check_references(source: SourceFile, places: Places, subject: str) -> Iterator[LakehouseError]:
    known = list(source.columns)
    named: list[tuple[str, str, tuple[str | int, ...]]] = [
        (key, value, (key,))
        for key in ("event_id", "event_time")
        if (value := getattr(source, key))
    ]
    named += [("keys", value, ("keys", at)) for at, value in enumerate(source.keys)]
    for key, column, path in named:
        if column not in source.columns:
            yield ColumnNotDeclaredError(
                subject, key, column, known, location=places.value_of(*path)
            )
    kind = source.columns[source.event_time].type if source.event_time in source.columns else ""
    if kind and kind not in ("timestamp", "timestamp_ntz", "date"):
        yield UnexpectedValueError(
            subject,
            "event_time",
            f'column "{source.event_time}" is a {kind}',
            "Declare the column as TIMESTAMP, or name a column that is one.",
            location=places.value_of("event_time"),
        )
