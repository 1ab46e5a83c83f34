"""Error conditions of sinks. A refused sink waits for a person; other errors are retried."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError


class SinkRefusedError(LakehouseError):
    """Base class of errors that only a person can resolve."""

    condition = "SINK_REFUSED"


class SinkGapError(SinkRefusedError):
    """The changes since the last delivery are no longer available, or do not fit."""

    condition = "SINK_GAP"
    sink: str
    reason: str
    primary = "sink {sink!r} cannot continue: {reason}"
    hint = "Rebuild it from the current table: tidemark sink rebuild {sink}"


class SinkColumnsMissingError(LakehouseError):
    """The table was not written yet with all columns that the project declares."""

    condition = "SINK_COLUMNS_MISSING"
    sink: str
    table: str
    columns: Sequence[str]
    primary = "sink {sink!r}: {table} has no column {listed} yet"
    hint = (
        "The deployment or the next refresh adds it. Then rebuild the sink: tidemark sink rebuild "
        "{sink}"
    )

    @property
    def listed(self) -> str:
        return ", ".join(self.columns)


class SinkOccupiedError(SinkRefusedError):
    """The target of a new sink has rows that it did not deliver."""

    condition = "SINK_OCCUPIED"
    sink: str
    target: str
    primary = "sink {sink!r} is new, but {target!r} contains rows that it did not deliver"
    hint = (
        "Choose another target in the header, or replace the existing rows: tidemark sink rebuild "
        "{sink}"
    )


class SinkKeysNotUniqueError(SinkRefusedError):
    """Two rows of the table have the same key."""

    condition = "SINK_KEYS_NOT_UNIQUE"
    sink: str
    key: str
    primary = "sink {sink!r}: several rows have the key {key}"
    hint = 'Set "keys" in the table\'s header to columns that identify a row.'


class SinkValueError(SinkRefusedError):
    """The target system rejects a value or a statement."""

    condition = "SINK_VALUE"
    sink: str
    cause: str
    primary = "sink {sink!r}: the delivery is refused"
    detail = "{cause}"
    hint = "Fix the value in the table's SELECT, or the permission or table that the message names."


class SinkUnreachableError(LakehouseError):
    """The target system does not answer."""

    condition = "SINK_UNREACHABLE"
    sink: str
    system: str
    cause: str
    primary = "sink {sink!r}: {system} does not answer"
    detail = "{cause}"
    hint = (
        "Delivery is retried automatically. Check that the server runs, and that its address in "
        "the environment is right."
    )


class SinkAddressMissingError(LakehouseError):
    """No setting has the address of a system."""

    condition = "SINK_ADDRESS_MISSING"
    sink: str
    system: str
    primary = "sink {sink!r}: the address of its {system} server is not set"
    hint = "Set {variable} in the environment, or start the local stack: make up"

    @property
    def variable(self) -> str:
        return f"TIDEMARK_SINKS__{self.system.upper()}"


class SinkClientMissingError(LakehouseError):
    """The Python client of a system is not installed."""

    condition = "SINK_CLIENT_MISSING"
    sink: str
    system: str
    primary = "sink {sink!r}: the Python client of {system} is not installed"
    hint = "Install the extra: uv sync --extra {system}. `make setup` installs all extras."


class SinkMovedError(LakehouseError):
    """Another process delivered to the sink at the same time."""

    condition = "SINK_MOVED"
    sink: str
    primary = "sink {sink!r} was written by another process at the same time"
    hint = "Nothing was delivered twice. Run it again."


class SinkUnknownError(LakehouseError):
    """No table declares a sink of that name."""

    condition = "SINK_UNKNOWN"
    sink: str
    known: Sequence[str]
    misspelt = "sink"
    primary = "no sink has the name {sink!r}"
    hint = "{choice}"

    @property
    def choice(self) -> str:
        return f"Sinks are {', '.join(self.known)}." if self.known else "No table declares one."


class SinkNotBuiltError(LakehouseError):
    """The sink contains no version of its table."""

    condition = "SINK_NOT_BUILT"
    sink: str
    primary = "sink {sink!r} was not built yet, or its last delivery did not finish"
    hint = "The streaming application delivers it; to deliver it now: tidemark sink run {sink}"
