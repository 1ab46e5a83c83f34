"""The closed sets of words that a declaration may use."""

from __future__ import annotations

from enum import StrEnum


class SourceFormat(StrEnum):
    """How a source's records are written."""

    JSON = "json"
    # Each record names the schema that it was written with.
    AVRO = "avro"
    DEBEZIUM = "debezium"
    # A Delta table that somebody else writes; read where it lies, never copied to bronze.
    DELTA = "delta"
    # A file of the project, loaded into a table of the lake.
    CSV = "csv"
    # An object of JSON on each line. JSON alone means the records of a topic.
    JSONL = "jsonl"
    PARQUET = "parquet"

    @property
    def streamed(self) -> bool:
        """Whether records come through Kafka; otherwise the table holds current rows."""
        return self is not SourceFormat.DELTA and not self.of_file

    @property
    def of_file(self) -> bool:
        """Whether the rows are in a file of the project."""
        return self in (SourceFormat.CSV, SourceFormat.JSONL, SourceFormat.PARQUET)

    @property
    def unit(self) -> str:
        """What people call a row of a file."""
        return "row" if self is SourceFormat.PARQUET else "line"


class OnExpiry(StrEnum):
    """What becomes of the rows of gold views that rest on rows that expired."""

    # They follow: a view stays equal to its SQL over the rows that are there.
    RETRACT = "retract"
    KEEP = "keep"


class OnDrift(StrEnum):
    """What becomes of a source's silver tables where its records are not as declared."""

    # They go on, and it is said until somebody accepts it or the declaration follows.
    WARN = "warn"
    # They stop before the first record that differs.
    HOLD = "hold"
    # They go on, and it is recorded only.
    EVOLVE = "evolve"


class OnFailure(StrEnum):
    """What becomes of a silver table's batch where a critical expectation fails."""

    # It is applied, and the verdict is recorded.
    WARN = "warn"
    # The rows that fail go to quarantine, the others are applied.
    QUARANTINE = "quarantine"
    # The table waits before the batch.
    HOLD = "hold"


class Operation(StrEnum):
    """What a change did at the source, in Debezium's field ``op``."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    SNAPSHOT = "r"
    # It has neither row nor key: it deletes all rows.
    TRUNCATE = "t"


class RefreshPolicy(StrEnum):
    """Who calls the refresh of a gold view; what a refresh does is the same for all."""

    CONTINUOUS = "continuous"
    MICRO_BATCH = "micro-batch"
    BULK = "bulk"


class Consistency(StrEnum):
    """Which versions of the tables of one source database a gold view reads together."""

    # All of them after the same transaction of the database.
    TRANSACTIONAL = "transactional"
    # The newest of each.
    NEWEST = "newest"


class Strategy(StrEnum):
    """How a gold view may be refreshed when its inputs moved."""

    # The planner chooses the cheapest rule that is proved to keep the view equal to its SQL.
    AUTO = "auto"
    # Follow changes wherever a rule allows it, however much has changed.
    INCREMENTAL = "incremental"
    # The same, and refuse a definition that no rule can maintain.
    STRICT = "strict"
    FULL = "full"


class Contract(StrEnum):
    """What a gold view promises its readers."""

    # Its columns and their types; new columns may come.
    STRICT = "strict"


class SinkSystem(StrEnum):
    """Where the changes of a table can be delivered."""

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
    """How a row is kept under its key."""

    # A field for each column that is not NULL.
    HASH = "hash"
    # One text of JSON.
    JSON = "json"


class Severity(StrEnum):
    """What a failed expectation does: the others than critical only report.

    A critical one blocks the publication of a gold view; a silver table's ``on_failure`` says what
    it does there.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"
