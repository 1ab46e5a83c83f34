"""Error conditions of silver tables and their quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, RefusedError, counted, first_line
from spark_jobs.names import IDENTIFIER
from spark_jobs.state.drift import Drift, drift_words

SHOWN_PLACES = 5


class SilverTableUnknownError(LakehouseError):
    """The project has no silver table of that name."""

    condition = "SILVER_TABLE_UNKNOWN"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "there is no silver table {table!r}"
    hint = "{remedy}"

    @property
    def remedy(self) -> str:
        if IDENTIFIER.fullmatch(self.table):
            return f"Declare it in sql/silver/{self.table}.sql."
        return "Name a silver table; `tidemark graph` lists them."


class SourceUnknownError(LakehouseError):
    """The project has no source of that name and kind.

    Attributes:
        kind: what every source in question has: ``records`` of a topic, or ``a file``.
    """

    condition = "SOURCE_UNKNOWN"
    source: str
    known: Sequence[str]
    kind: str = "records"
    misspelt = "source"
    primary = "there is no source {source!r} with {kind}"
    hint = "{choice}"

    @property
    def choice(self) -> str:
        if not self.known:
            return f"No source has {self.kind}."
        return f"Sources are {', '.join(self.known)}."


class SourceDatabaseUnsetError(LakehouseError):
    """No setting names the source database."""

    condition = "SOURCE_DATABASE_UNSET"
    primary = "the source database is not set"
    hint = "Set source_database in tidemark.yml, or start the local stack."


class DatabaseUnreachableError(LakehouseError):
    """The source database or the declared table cannot be read.

    Attributes:
        table: the one that was asked for; "" if no table was, as there is no connection.
        cause: what the database said.
    """

    condition = "DATABASE_UNREACHABLE"
    table: str
    cause: str
    primary = "{what} cannot be read"
    detail = "{said}"
    hint = "Check that the database runs and that the source's table and columns exist."

    @property
    def what(self) -> str:
        return f"source table {self.table!r}" if self.table else "the source database"

    @property
    def said(self) -> str:
        return first_line(self.cause)


class SourceLogBehindError(LakehouseError):
    """The log of the source database ends before changes that silver has from it."""

    condition = "SOURCE_LOG_BEHIND"
    position: str
    table: str
    reached: str
    primary = (
        "the log of the source database is at {position}, but {table} has changes at {reached}"
    )
    detail = (
        "The database was restored, or is on another server. Silver would take each change, and "
        "each row of a snapshot, for an older one. Nothing was done."
    )
    hint = "Move the log beyond {reached} first; docs/runbooks/changes-lost.md says how."


class SchemaDriftError(RefusedError):
    """Records differ from their source's declaration, and its policy blocks the table."""

    condition = "SCHEMA_DRIFT"
    table: str
    source: str
    drifts: Sequence[Drift]
    primary = "{table} waits: records of source {source!r} differ from the declaration"
    detail = "{found}. No record from there on is in the table; bronze continues."
    hint = (
        "Change sources/{source}.yml and the table's SELECT to match the records, and run tidemark "
        "apply; or accept it: tidemark source drift {source} --accept --reason TEXT."
    )

    @property
    def found(self) -> str:
        return "; ".join(f"{drift_words(one)} since {one.position}" for one in self.drifts)


class BatchHeldError(RefusedError):
    """A batch fails its suite, and the table's policy keeps it out."""

    condition = "BATCH_HELD"
    table: str
    batch: int
    file: str
    failures: Sequence[str]
    primary = "{table} waits: batch {batch} fails its suite"
    detail = "{failures:; }. No record of the batch is in the table; bronze continues."
    hint = (
        "Correct expectations/silver/{name}.json, or write on_failure: warn in {file} to let the "
        "batch pass, and run tidemark apply. The batch is judged again then."
    )

    @property
    def name(self) -> str:
        return self.table.removeprefix("silver.")


class NotInQuarantineError(LakehouseError):
    """The named records were never rejected."""

    condition = "NOT_IN_QUARANTINE"
    table: str
    places: Sequence[tuple[int, int]]
    primary = "not in the quarantine of silver table {table!r}: {records}"
    detail = "As partition:offset: {shown}."
    hint = "`tidemark quarantine show {table}` lists the records."

    @property
    def records(self) -> str:
        return counted(len(self.places), "record")

    @property
    def shown(self) -> str:
        places = [f"{partition}:{offset}" for partition, offset in self.places[:SHOWN_PLACES]]
        return ", ".join([*places, "..."] if len(places) < len(self.places) else places)


class TypesDifferError(RefusedError):
    """A column of the table has another type, or spelling, than the declarations now give."""

    condition = "TYPES_DIFFER"
    table: str
    column: str
    held: str
    declared: str
    primary = "column {column!r} of silver table {table!r} is {held}, but is declared {declared}"
    hint = (
        "Give the column in sql/silver/{table}.sql the type and the spelling that it has in the "
        "table, or rebuild the table from bronze: tidemark rebuild silver.{table}."
    )


class FixedValuesFileError(LakehouseError):
    """A line of the file of fixed records cannot be parsed."""

    condition = "FIXED_VALUES_FILE"
    file: str
    line: int
    problem: str
    primary = "{file}:{line}: {problem}"
    hint = (
        'Each line is {{"partition": 0, "offset": 7, "value": ...}}, as `tidemark quarantine show '
        "--to` writes it; the value is a JSON object or the record's text."
    )


class UnsettledError(LakehouseError):
    """It is unknown how much of bronze a silver table has applied."""

    condition = "SILVER_UNSETTLED"
    table: str
    primary = "silver table {table!r} contains a part of a batch"
    detail = "Its stream was stopped in the middle of a batch, or is reading bronze again."
    hint = (
        "Let the streams run (locally: make up) until `tidemark reconcile` balances, then try "
        "again."
    )


class BronzeIncompleteError(LakehouseError):
    """Bronze no longer has all records that a silver table was built from."""

    condition = "BRONZE_INCOMPLETE"
    table: str
    source: str
    missing: Sequence[str]
    primary = "bronze table {source!r} misses records that silver table {table!r} was built from"
    detail = "The missing offsets are {shown}."
    hint = (
        "A rebuild would lose their rows. Restore them from a backup of the bronze table, or keep "
        "the silver table as it is."
    )

    @property
    def shown(self) -> str:
        more = len(self.missing) - SHOWN_PLACES
        return "; ".join(self.missing[:SHOWN_PLACES]) + (f" and {more} more" if more > 0 else "")


class OvertakenError(LakehouseError):
    """Records were reprocessed while the table was being rebuilt."""

    condition = "REBUILD_OVERTAKEN"
    table: str
    primary = "records of silver table {table!r} were reprocessed during the rebuild"
    hint = "Nothing was written. Run the rebuild again."


class ForgetColumnError(LakehouseError):
    """A request to forget names a column that does not identify all records."""

    condition = "FORGET_COLUMN"
    source: str
    column: str
    known: Sequence[str]
    misspelt = "column"
    primary = "records of source {source!r} cannot be identified by {column!r}"
    detail = "Every record of a row or an event has {known}."
    hint = "Find the person's keys first: tidemark query."


class ForgetValueError(LakehouseError):
    """A request to forget gives a value that no record can have."""

    condition = "FORGET_VALUE"
    source: str
    column: str
    kind: str
    # Not the value: it may identify the person in a log.
    primary = "the value of {column!r} of source {source!r} is not a {kind}"
    hint = "Write it as `tidemark query` shows it."


class ForgetPendingError(LakehouseError):
    """A silver table has not applied some records yet, which may be among those to forget."""

    condition = "FORGET_PENDING"
    table: str
    records: int
    primary = "silver table {table!r} has not processed {waiting} yet"
    hint = (
        "Let the streams run (locally: make up) until `tidemark reconcile` balances, stop them, "
        "and try again."
    )

    @property
    def waiting(self) -> str:
        return counted(self.records, "record")
