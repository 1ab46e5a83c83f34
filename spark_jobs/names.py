"""Names that several layers share, and the rule for names of tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from spark_jobs.errors import InvalidNameError

# Lower case only, so that a name means the same in Spark (case-insensitive), on an object store
# (case-sensitive), in Airflow ids and in a shell; 63 bytes is PostgreSQL's limit.
IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,62}")

# Columns keep the case that they have in their database or record.
COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")

# Kafka's own rule.
TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")

# Internal topics of Kafka, Connect, Debezium and the sinks, which no source may read.
INTERNAL_TOPIC = re.compile(r"_.*|connect-(configs|offsets|status)")
# Debezium writes the begin and end of each transaction to the topic PREFIX.transaction.
TRANSACTION_SUFFIX = ".transaction"

# Prefix of a sink's keys in Redis, where other characters are patterns.
REDIS_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")

# Cassandra's rule for keyspaces and tables that need no quotes.
CASSANDRA_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")

# Prefixes of columns and directories that the project adds, so that their names never clash with
# those of declared columns and tables.
RESERVED_COLUMN_PREFIX = "__"
RESERVED_DIRECTORY_PREFIX = "_"

# The schema of the status tables, which are computed when they are read.
OPS_SCHEMA = "ops"


class Layer(StrEnum):
    """The medallion layers; also the schema part of a table's name in SQL."""

    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


@dataclass(frozen=True, order=True)
class TableName:
    """A table as SQL names it: ``layer.name``."""

    layer: Layer
    name: str

    def __str__(self) -> str:
        return f"{self.layer}.{self.name}"

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read ``layer.name``.

        Raises:
            InvalidNameError: the layer is unknown, or the name is not an identifier.

        >>> TableName.parse("gold.daily_orders")
        TableName(layer=<Layer.GOLD: 'gold'>, name='daily_orders')
        """
        layer, dot, name = text.partition(".")
        if not dot or layer not in set(Layer) or not IDENTIFIER.fullmatch(name):
            raise InvalidNameError(text)
        return cls(Layer(layer), name)


@dataclass(frozen=True)
class TableVersion:
    """One state of a Delta table; the id changes if the table is recreated."""

    table_id: str
    version: int


class BronzeColumn(StrEnum):
    """The columns of a bronze table: a Kafka record as it was received."""

    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"
    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    ARRIVED_AT = "arrived_at"
    ARRIVAL_DATE = "arrival_date"


class SilverColumn(StrEnum):
    """Columns that a silver table has in addition to those of its SELECT."""

    # Position of the row's record in Kafka; distinguishes a repeated batch from a repeated event.
    PARTITION = "__partition"
    OFFSET = "__offset"
    # When bronze received the record.
    ARRIVED_AT = "__arrived_at"
    # Position of a change in the source's commit order; only if changes are applied by key.
    SEQUENCE = "__sequence"


class HistoryColumn(StrEnum):
    """Columns that an SCD type 2 silver table has after those of its SELECT."""

    # From when the row is valid; with the key, it identifies a row of the table.
    VALID_FROM = "valid_from"
    # From when it is no longer valid; NULL for the current row.
    VALID_TO = "valid_to"


class Disposition(StrEnum):
    """The outcome of a bronze record in a silver table; every record has exactly one."""

    APPLIED = "applied"
    SUPERSEDED = "superseded"
    QUARANTINED = "quarantined"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"


# Maintenance strategies under the names that older releases stored in the ledger, in watermarks and
# in manifests.
_FORMER_STRATEGIES = {
    "changed_rows": "row_deltas",
    "affected_groups": "affected_group_recompute",
    "kept_groups": "aggregate_state",
}


def passed_keys(*, passed: bool) -> dict[str, bool]:
    """Whether a check passed, for programs: under its key, and under the one of older releases.

    >>> passed_keys(passed=True)
    {'passed': True, 'holds': True}
    """
    return {"passed": passed, "holds": passed}


def current_strategy(stored: str) -> str:
    """The name of a maintenance strategy, from any name under which it was stored.

    >>> current_strategy("kept_groups"), current_strategy("row_deltas")
    ('aggregate_state', 'row_deltas')
    """
    return _FORMER_STRATEGIES.get(stored, stored)


def strategy_words(stored: str) -> str:
    """A stored maintenance strategy for people.

    >>> strategy_words("affected_groups")
    'affected-group recompute'
    """
    return current_strategy(stored).replace("affected_group_", "affected-group ").replace("_", " ")
