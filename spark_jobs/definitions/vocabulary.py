"""The closed sets of words that a declaration may use."""

from __future__ import annotations

from enum import StrEnum


class SourceFormat(StrEnum):
    """How a source's records are written."""

    JSON = "json"
    DEBEZIUM = "debezium"
    # A Delta table that somebody else writes; read where it lies, never copied to bronze.
    DELTA = "delta"


class RefreshPolicy(StrEnum):
    """Who calls the refresh of a gold view; what a refresh does is the same for all."""

    CONTINUOUS = "continuous"
    MICRO_BATCH = "micro-batch"
    BULK = "bulk"


class Strategy(StrEnum):
    """How a gold view may be refreshed when its inputs moved."""

    # The planner chooses the cheapest rule that is proved to keep the view equal to its SQL.
    AUTO = "auto"
    # Follow changes wherever a rule allows it, however much has changed.
    INCREMENTAL = "incremental"
    # The same, and refuse a definition that no rule can maintain.
    STRICT = "strict"
    FULL = "full"


class Severity(StrEnum):
    """What a failed expectation does: critical holds the publication, the others report."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"
