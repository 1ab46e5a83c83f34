"""The compiled project: all that planning, streaming, refreshing and DAG parsing read.

Plain data without SQL parsing or Spark: reading it costs milliseconds. Types are Spark SQL types
in lower case; "" stands for a type that only Spark can tell.
"""

from __future__ import annotations

import os
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_jobs.definitions.durations import duration_text
from spark_jobs.definitions.vocabulary import (
    Consistency,
    Contract,
    KafkaFormat,
    OnDrift,
    RedisFormat,
    RefreshPolicy,
    SinkSystem,
    SourceFormat,
    Strategy,
)
from spark_jobs.names import HistoryColumn, Layer, TableName, current_strategy, strategy_words

# The relation that stands for the typed source in ``SilverEntry.projection``.
SOURCE_RELATION = "source"


class ApplyMode(StrEnum):
    """How typed records become silver rows."""

    # Each event is a row.
    APPEND = "append"
    # Each key has its current row.
    UPSERT = "upsert"
    # Each key has a row for every span of time in which it held the same values.
    HISTORY = "history"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Column(_Entry):
    """A column of a table.

    Attributes:
        required: records without it are quarantined.
        pii: it holds personal data, or is computed from a column that does.
        values: all that it should hold; () where that is not said.
    """

    name: str
    type: str
    description: str | None = None
    required: bool = False
    pii: bool = False
    values: tuple[str, ...] = ()


class MaintenanceStrategy(StrEnum):
    """How a change of the inputs reaches a gold view."""

    # Row by row: no row of the view depends on how many others there are.
    ROW_DELTAS = "row_deltas"
    # The groups that a change touches are recomputed; all others stay.
    AFFECTED_GROUP_RECOMPUTE = "affected_group_recompute"
    # Counts and sums of the groups are stored in a hidden table; changes are added to them.
    AGGREGATE_STATE = "aggregate_state"
    FULL = "full"

    @classmethod
    def _missing_(cls, value: object) -> MaintenanceStrategy | None:
        """Read the name that an older release stored."""
        name = current_strategy(value) if isinstance(value, str) else value
        return next((one for one in cls if one.value == name), None)

    @property
    def words(self) -> str:
        """The name for people."""
        return strategy_words(self.value)


class OperatorRule(_Entry):
    """An operator of a view's SQL and what is done about a change of its input.

    Attributes:
        note: what its author should know; None: nothing.
    """

    operator: str
    rule: str
    note: str | None = None


class Maintenance(_Entry):
    """What the SQL of a gold view allows.

    Attributes:
        key: columns of the view that no two of its rows share; () where none are known.
        obstacle: why every refresh is full, as a code; ``detail`` says it for people.
        operators: from the outermost to the scans.
    """

    rule: MaintenanceStrategy
    key: tuple[str, ...] = ()
    obstacle: str | None = None
    detail: str | None = None
    suggestion: str | None = None
    operators: tuple[OperatorRule, ...] = ()


class AvroSchema(_Entry):
    """A schema of Avro records, as JSON, and the bytes, in hex, that such a record begins with."""

    prefix: str
    text: str


class SourceEntry(_Entry):
    """A source: a Kafka topic, a Delta table that somebody else writes, or a file."""

    name: str
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    format: SourceFormat
    topic: str | None = None
    # An absolute path or a URL; only where the format is delta.
    location: str | None = None
    # Of a file below seeds/, from the project; with its SHA-256 as it was compiled.
    path: str | None = None
    digest: str | None = None
    most_rejected: float | None = None
    columns: tuple[Column, ...]
    # Only where the format is avro.
    schemas: tuple[AvroSchema, ...] = ()
    event_id: str | None = None
    event_time: str | None = None
    watermark_seconds: float | None = None
    keys: tuple[str, ...] = ()
    # The table in the source database, as schema.table.
    table: str | None = None
    # None: differences are warned of, and a table waits where a column that it reads vanished.
    on_drift: OnDrift | None = None
    file: str

    @property
    def table_name(self) -> TableName:
        return TableName(Layer.BRONZE, self.name)


class Expiry(_Entry):
    """When the rows of a table leave it: so many days after the time in a column."""

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
    # The name that the source's event id has in the output, where it is projected.
    event_id: str | None = None
    # Spark SQL over the typed source's columns; None where changes are appended.
    apply_as_deletes: str | None = None
    # Spark SQL over the typed source's columns; None: the source's commit order.
    sequence_by: str | None = None
    expiry: Expiry | None = None
    suite: dict[str, Any] | None = None
    file: str
    fingerprint: str

    @property
    def table_name(self) -> TableName:
        return TableName(Layer.SILVER, self.name)

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that no two rows share; () where that is not known."""
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
    """Digests of what a view's definition is made of.

    Attributes:
        rows: of everything but the output columns: which rows there are.
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
    # A cron expression, and the time zone whose clock it follows.
    schedule: str | None = None
    time_zone: str = "UTC"
    freshness_seconds: int | None = None
    verify_seconds: int | None = None
    # None: transactional where it reads several tables of one source database.
    consistency: Consistency | None = None
    grain: tuple[str, ...] = ()
    strategy: Strategy = Strategy.AUTO
    # None: columns may change. The version counts the promises that replaced earlier ones.
    contract: Contract | None = None
    contract_version: int = 1
    # None where nobody derived it: every refresh is full then.
    maintenance: Maintenance | None = None
    # The SELECT as the file has it, without the header.
    sql: str
    # The same in canonical, qualified Spark SQL; tables are written layer.name.
    query: str
    inputs: tuple[str, ...]
    columns: tuple[Column, ...]
    fingerprint: str
    # None where rows cannot be told apart, or where all columns together decide which there are.
    parts: Parts | None = None
    deterministic: bool
    reads_clock: bool
    suite: dict[str, Any] | None = None
    file: str
    # 0 where no input is a gold view, otherwise one more than the highest tier among the inputs.
    tier: int
    # Names of the gold views that this one reads, and of those that read it.
    upstream: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()

    @property
    def table_name(self) -> TableName:
        return TableName(Layer.GOLD, self.name)

    @property
    def due(self) -> str:
        """When its schedule refreshes it, in a few words; empty where it has none."""
        if self.schedule is not None:
            return f"at {self.schedule} {self.time_zone}"
        return f"every {duration_text(self.every_seconds)}" if self.every_seconds else ""


class SinkEntry(_Entry):
    """Where the changes of a table are delivered.

    Attributes:
        table: as SQL names it.
        target: the topic, the table as ``schema.table`` or ``keyspace.table``, or the prefix of the
            keys.
        keys: columns that no two rows of the table share.
        columns: of the table, in its order.
        format: None where the system has one only.
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
    """The whole project."""

    format: Literal[1] = 1
    # The name of the project directory.
    project: str
    # The deployment that put it in force; None where it was compiled and nothing was applied.
    deployment: str | None = None
    sources: dict[str, SourceEntry] = Field(default_factory=dict)
    silver: dict[str, SilverEntry] = Field(default_factory=dict)
    gold: dict[str, GoldEntry] = Field(default_factory=dict)
    sinks: dict[str, SinkEntry] = Field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest file.

        Raises:
            FileNotFoundError: the project was not compiled.
            ValidationError: another version of the program wrote the file.
        """
        return cls.model_validate_json(path.read_bytes())

    def write(self, path: Path) -> None:
        """Write atomically, so that a reader sees the old manifest or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.model_dump_json(indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @classmethod
    def stored(cls, text: str) -> Manifest | None:
        """A manifest that the control database keeps; None where another release wrote it."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def inputs_of(self, view: str) -> tuple[TableName, ...]:
        """The tables that a gold view reads, sorted."""
        return tuple(TableName.parse(name) for name in self.gold[view].inputs)

    def gold_by_tier(self) -> tuple[tuple[GoldEntry, ...], ...]:
        """The gold views, those that only read the layers below first."""
        tiers = sorted({entry.tier for entry in self.gold.values()})
        return tuple(
            tuple(entry for _, entry in sorted(self.gold.items()) if entry.tier == tier)
            for tier in tiers
        )


def captured(manifest: Manifest) -> list[str]:
    """The tables that the connector captures, sorted, as ``schema.table``.

    A source that names no table stands with its topic, which is called after the table.
    """
    return sorted(
        source.table or source.topic or ""
        for source in manifest.sources.values()
        if source.format is SourceFormat.DEBEZIUM
    )
