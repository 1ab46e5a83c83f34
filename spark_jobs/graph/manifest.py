"""The manifest: the compiled project, for planning, streams, refreshes and Airflow.

Plain data without a SQL parser or Spark, so that reading it takes milliseconds. Types are Spark SQL
types in lower case; "" is a type that only Spark knows.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_jobs.definitions.batch_rules import BatchRule, batch_rules
from spark_jobs.definitions.deprecation import Deprecation
from spark_jobs.definitions.durations import duration_text
from spark_jobs.definitions.vocabulary import (
    Consistency,
    Contract,
    KafkaFormat,
    OnDrift,
    OnFailure,
    RedisFormat,
    RefreshPolicy,
    SinkSystem,
    SourceFormat,
    Strategy,
)
from spark_jobs.graph.atomic import replace_file
from spark_jobs.names import HistoryColumn, Layer, TableName, current_strategy, strategy_words

# Name of the typed source in ``SilverEntry.projection``.
SOURCE_RELATION = "source"


class ApplyMode(StrEnum):
    """How typed records become silver rows."""

    # One row per event.
    APPEND = "append"
    # The current row of each key.
    UPSERT = "upsert"
    # One row per key and period of equal values.
    HISTORY = "history"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Column(_Entry):
    """A column of a table.

    Attributes:
        required: records without it are quarantined.
        pii: it contains personal data, or is computed from a column that does.
        values: all allowed values; () if not declared.
        deprecation: for columns of gold views; None if it stays.
    """

    name: str
    type: str
    description: str | None = None
    required: bool = False
    pii: bool = False
    values: tuple[str, ...] = ()
    deprecation: Deprecation | None = None

    @property
    def meaning(self) -> str | None:
        """The description for readers, with a warning if the column may be removed."""
        if self.deprecation is None:
            return self.description
        said = f"{self.description.rstrip('. ')}. " if self.description else ""
        return said + self.deprecation.words


class MaintenanceStrategy(StrEnum):
    """How a change of the inputs reaches a gold view."""

    # Each changed row is processed on its own.
    ROW_DELTAS = "row_deltas"
    # The groups affected by a change are recomputed.
    AFFECTED_GROUP_RECOMPUTE = "affected_group_recompute"
    # Changes are added to counts and sums of groups in a hidden table.
    AGGREGATE_STATE = "aggregate_state"
    FULL = "full"

    @classmethod
    def _missing_(cls, value: object) -> MaintenanceStrategy | None:
        """Accept the names that older releases stored."""
        name = current_strategy(value) if isinstance(value, str) else value
        return next((one for one in cls if one.value == name), None)

    @property
    def words(self) -> str:
        """The name shown to users."""
        return strategy_words(self.value)


class OperatorRule(_Entry):
    """An operator of a view's SQL, and how a change of its input is processed.

    Attributes:
        note: a warning for the author, or None.
    """

    operator: str
    rule: str
    note: str | None = None


class Maintenance(_Entry):
    """The incremental maintenance that a view's SQL allows.

    Attributes:
        key: columns that are a unique key of the view; () if unknown.
        obstacle: code of what makes all refreshes full; ``detail`` explains it.
        operators: from the outermost to the scans.
    """

    rule: MaintenanceStrategy
    key: tuple[str, ...] = ()
    obstacle: str | None = None
    detail: str | None = None
    suggestion: str | None = None
    operators: tuple[OperatorRule, ...] = ()


class AvroSchema(_Entry):
    """An Avro schema as JSON, and the prefix of its records as hex."""

    prefix: str
    text: str


class SourceEntry(_Entry):
    """A source: a Kafka topic, an external Delta table, or a file."""

    name: str
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    format: SourceFormat
    topic: str | None = None
    # An absolute path or URL; only for format delta.
    location: str | None = None
    # A file below seeds/, relative to the project, and its SHA-256 at compile time.
    path: str | None = None
    digest: str | None = None
    most_rejected: float | None = None
    columns: tuple[Column, ...]
    # Only for format avro.
    schemas: tuple[AvroSchema, ...] = ()
    event_id: str | None = None
    event_time: str | None = None
    watermark_seconds: float | None = None
    keys: tuple[str, ...] = ()
    # The table in the source database, as schema.table.
    table: str | None = None
    # None: warn of differences, and block a table if a column that it reads has vanished.
    on_drift: OnDrift | None = None
    file: str

    @property
    def table_name(self) -> TableName:
        return TableName(Layer.BRONZE, self.name)


class Expiry(_Entry):
    """When rows expire: a number of days after the time in a column."""

    column: str
    days: int


class SilverEntry(_Entry):
    """A silver table: a projection and filter over one source."""

    name: str
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    source: str
    # The SELECT as the file has it, without the header.
    sql: str
    # The same in canonical Spark SQL, over the relation SOURCE_RELATION.
    projection: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()
    apply: ApplyMode
    # Output name of the source's event id, if it is selected.
    event_id: str | None = None
    # Spark SQL over the typed source's columns; None for events.
    apply_as_deletes: str | None = None
    # Spark SQL over the typed source's columns; None: the source's commit order.
    sequence_by: str | None = None
    expiry: Expiry | None = None
    # At most one of the two.
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    suite: dict[str, Any] | None = None
    # What a failed critical expectation does; without effect if there is no suite.
    on_failure: OnFailure = OnFailure.WARN
    file: str
    fingerprint: str

    @property
    def table_name(self) -> TableName:
        return TableName(Layer.SILVER, self.name)

    @property
    def rules(self) -> tuple[BatchRule, ...]:
        """The expectations of its suite."""
        return batch_rules(self.suite)

    @property
    def quarantining(self) -> tuple[BatchRule, ...]:
        """The expectations that send failing rows to quarantine."""
        if self.on_failure is not OnFailure.QUARANTINE:
            return ()
        return tuple(rule for rule in self.rules if rule.critical and rule.of_rows)

    @property
    def row_key(self) -> tuple[str, ...]:
        """Columns that are a unique key; () if unknown."""
        match self.apply:
            case ApplyMode.APPEND:
                return () if self.event_id is None else (self.event_id,)
            case ApplyMode.UPSERT:
                return self.keys
            case ApplyMode.HISTORY:
                return (*self.keys, str(HistoryColumn.VALID_FROM))

    @property
    def selected(self) -> tuple[Column, ...]:
        """The columns of the SELECT."""
        if self.apply is not ApplyMode.HISTORY:
            return self.columns
        return tuple(column for column in self.columns if column.name not in set(HistoryColumn))


class Parts(_Entry):
    """Digests of the parts of a view's definition.

    Attributes:
        rows: of everything except the output columns: the set of rows.
        columns: of each output column's expression.
    """

    rows: str
    columns: dict[str, str]


class GoldEntry(_Entry):
    """A gold view: one SELECT and how it is refreshed."""

    name: str
    description: str
    owner: str
    tags: tuple[str, ...] = ()
    refresh: RefreshPolicy
    every_seconds: int | None = None
    # A cron expression and its time zone.
    schedule: str | None = None
    time_zone: str = "UTC"
    freshness_seconds: int | None = None
    verify_seconds: int | None = None
    # None: transactional if it reads several tables of one source database.
    consistency: Consistency | None = None
    grain: tuple[str, ...] = ()
    strategy: Strategy = Strategy.AUTO
    # None: columns may change. The version counts the promises that replaced earlier ones.
    contract: Contract | None = None
    contract_version: int = 1
    # At most one of the two.
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    # None if it was not derived: all refreshes are full.
    maintenance: Maintenance | None = None
    # The SELECT as the file has it, without the header.
    sql: str
    # The same in canonical, qualified Spark SQL; tables are written layer.name.
    query: str
    # Whether ``query`` adds columns to an ORDER BY that may leave ties: then each computation uses
    # it, so that all of them choose the same rows.
    breaks_ties: bool = False
    inputs: tuple[str, ...]
    columns: tuple[Column, ...]
    fingerprint: str
    # None if rows have no key, or if the columns decide which rows there are.
    parts: Parts | None = None
    deterministic: bool
    reads_clock: bool
    suite: dict[str, Any] | None = None
    file: str
    # 0 if no input is a gold view, otherwise one more than the highest tier of the inputs.
    tier: int
    # Names of the gold views that this one reads, and that read it.
    upstream: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()

    @property
    def table_name(self) -> TableName:
        return TableName(Layer.GOLD, self.name)

    @property
    def text_parts(self) -> tuple[str, ...]:
        """The partition columns with texts."""
        texts = {one.name for one in self.columns if one.type == "string"}
        return tuple(one for one in self.partition_by if one in texts)

    @property
    def due(self) -> str:
        """Its schedule in a few words; empty if it has none."""
        if self.schedule is not None:
            return f"at {self.schedule} {self.time_zone}"
        return f"every {duration_text(self.every_seconds)}" if self.every_seconds else ""

    @property
    def scheduled(self) -> bool:
        """Whether refreshes follow without anybody who asks for them."""
        return self.refresh is RefreshPolicy.CONTINUOUS or bool(self.due)


class SinkEntry(_Entry):
    """A target to which the changes of a table are delivered.

    Attributes:
        table: its name in SQL.
        target: the topic, the table as ``schema.table`` or ``keyspace.table``, or the key prefix.
        keys: columns that are a unique key of the table.
        columns: columns of the table, in its order.
        format: None if the system has only one.
    """

    name: str
    table: str
    system: SinkSystem
    target: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    format: KafkaFormat | RedisFormat | None = None
    file: str

    @property
    def table_name(self) -> TableName:
        return TableName.parse(self.table)


class Manifest(_Entry):
    """The compiled project."""

    format: Literal[1] = 1
    project: str  # the name of its directory
    # The deployment that applied it; None if it was only compiled.
    deployment: str | None = None
    # A digest of the files and settings that it was compiled from; None: not as any files are.
    compiled_from: str | None = None
    # The files of Avro schemas among them, as sources name them.
    schema_files: tuple[str, ...] = ()
    sources: dict[str, SourceEntry] = Field(default_factory=dict)
    silver: dict[str, SilverEntry] = Field(default_factory=dict)
    gold: dict[str, GoldEntry] = Field(default_factory=dict)
    sinks: dict[str, SinkEntry] = Field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest file.

        Raises:
            FileNotFoundError: the project was not compiled.
            ValidationError: another release wrote the file.
        """
        return cls.model_validate_json(path.read_bytes())

    def write(self, path: Path) -> None:
        """Write atomically: a reader sees the old manifest or the new one."""
        replace_file(path, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def stored(cls, text: str) -> Manifest | None:
        """Parse a manifest from the control database; None if another release wrote it."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def inputs_of(self, view: str) -> tuple[TableName, ...]:
        """The tables that a gold view reads, sorted."""
        return tuple(TableName.parse(name) for name in self.gold[view].inputs)

    def gold_by_tier(self) -> tuple[tuple[GoldEntry, ...], ...]:
        """The gold views by tier, upstream views first."""
        tiers = sorted({entry.tier for entry in self.gold.values()})
        return tuple(
            tuple(entry for _, entry in sorted(self.gold.items()) if entry.tier == tier)
            for tier in tiers
        )
