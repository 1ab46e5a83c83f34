"""Enumerations of the values that declarations may use."""

from __future__ import annotations

from enum import StrEnum


class SourceFormat(StrEnum):
    """The format of a source's records."""

    JSON = "json"
    # Each record has the id of its writer schema.
    AVRO = "avro"
    DEBEZIUM = "debezium"
    # A Delta table of another writer; read at its location, never copied to bronze.
    DELTA = "delta"
    # A file of the project, loaded into a table of the lake.
    CSV = "csv"
    # A JSON object on each line. ``json`` means the records of a topic.
    JSONL = "jsonl"
    PARQUET = "parquet"

    @property
    def streamed(self) -> bool:
        """Whether records come through Kafka; otherwise the table has current rows."""
        return self is not SourceFormat.DELTA and not self.of_file

    @property
    def of_file(self) -> bool:
        """Whether the rows are in a file of the project."""
        return self in (SourceFormat.CSV, SourceFormat.JSONL, SourceFormat.PARQUET)

    @property
    def unit(self) -> str:
        """The word for a row of a file."""
        return "row" if self is SourceFormat.PARQUET else "line"


class OnExpiry(StrEnum):
    """What downstream views do when rows expire."""

    # They drop the rows too: a view stays equal to its SQL over the remaining rows.
    RETRACT = "retract"
    KEEP = "keep"


class OnDrift(StrEnum):
    """The reaction of silver tables to records that differ from the declaration."""

    # They continue, and it is reported until it is accepted or declared.
    WARN = "warn"
    # They stop before the first batch that differs.
    HOLD = "hold"
    # They continue, and it is only recorded.
    EVOLVE = "evolve"


class OnFailure(StrEnum):
    """The reaction of a silver table when a batch fails a critical expectation."""

    # The batch is applied, and the verdict is recorded.
    WARN = "warn"
    # Rows that fail go to quarantine, the others are applied.
    QUARANTINE = "quarantine"
    # The table waits before the batch.
    HOLD = "hold"


class Operation(StrEnum):
    """The operation of a change, as in Debezium's field ``op``."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    SNAPSHOT = "r"
    # It deletes all rows, and has neither row nor key.
    TRUNCATE = "t"


class RefreshPolicy(StrEnum):
    """What starts the refreshes of a gold view; a refresh is the same for all."""

    CONTINUOUS = "continuous"
    MICRO_BATCH = "micro-batch"
    BULK = "bulk"


class Consistency(StrEnum):
    """Which versions of the tables of one source database a gold view reads together."""

    # All at the same commit of the database.
    TRANSACTIONAL = "transactional"
    # The newest version of each.
    NEWEST = "newest"


class Strategy(StrEnum):
    """How a gold view may be refreshed when its inputs have changed."""

    # The planner chooses incremental or full by the expected time.
    AUTO = "auto"
    # Incremental for any number of changes, if a maintenance strategy allows it.
    INCREMENTAL = "incremental"
    # The same, and SQL that no strategy maintains is refused.
    STRICT = "strict"
    FULL = "full"


class Contract(StrEnum):
    """The guarantee of a gold view to its readers."""

    # Its columns and their types; new columns are allowed.
    STRICT = "strict"


class SinkSystem(StrEnum):
    """A system that changes of a table can be delivered to."""

    KAFKA = "kafka"
    POSTGRES = "postgres"
    REDIS = "redis"
    CASSANDRA = "cassandra"


class KafkaFormat(StrEnum):
    """How a record of a topic represents a change."""

    # The row under its key; a record without a value deletes the row.
    UPSERT = "upsert"
    # A record for each of +I, -U, +U and -D.
    CHANGELOG = "changelog"
    # An envelope with the row before and after, as Debezium writes it.
    DEBEZIUM = "debezium"


class RedisFormat(StrEnum):
    """How a row is stored under its key."""

    # A field for each column that is not NULL.
    HASH = "hash"
    # One JSON text.
    JSON = "json"


class Severity(StrEnum):
    """The effect of a failed expectation: only a critical one does more than report.

    A critical one blocks the publication of a gold view; a silver table's ``on_failure`` says what
    it does there.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"
