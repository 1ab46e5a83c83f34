"""Error conditions of silver tables and their quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, RefusedError, first_line
from spark_jobs.state.drift import Drift, drift_words

SHOWN_PLACES = 5


class SilverTableUnknownError(LakehouseError):
    """The project has no silver table of that name."""

    condition = "SILVER_TABLE_UNKNOWN"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "there is no silver table {table!r}"
    hint = "Declare it in sql/silver/{table}.sql."


class SourceUnknownError(LakehouseError):
    """The project has no streamed source of that name."""

    condition = "SOURCE_UNKNOWN"
    source: str
    known: Sequence[str]
    misspelt = "source"
    primary = "there is no source {source!r} of records"
    hint = "Sources are {known}."


class SourceDatabaseUnsetError(LakehouseError):
    """No setting names the source database."""

    condition = "SOURCE_DATABASE_UNSET"
    primary = "no source database is known"
    hint = "Set source_database in tidemark.yml, or start the local stack."


class DatabaseUnreachableError(LakehouseError):
    """The source database or the declared table cannot be read."""

    condition = "DATABASE_UNREACHABLE"
    table: str
    cause: str
    primary = "source table {table!r} cannot be read"
    detail = "{said}"
    hint = "Check that the database runs and that the source's table and columns exist."

    @property
    def said(self) -> str:
        return first_line(self.cause)


class SchemaDriftError(RefusedError):
    """Records differ from their source's declaration, and its policy blocks the table."""

    condition = "SCHEMA_DRIFT"
    table: str
    source: str
    drifts: Sequence[Drift]
    primary = "{table} waits: what source {source!r} sends is not what it declares"
    detail = "{found}. Nothing from there on is in the table; bronze goes on."
    hint = (
        "Let sources/{source}.yml and the table's SELECT say what arrives now, and restart the "
        "streams; or accept it: tidemark source drift {source} --accept --reason TEXT."
    )

    @property
    def found(self) -> str:
        return "; ".join(f"{drift_words(one)} since {one.position}" for one in self.drifts)


class NotInQuarantineError(LakehouseError):
    """The named records were never rejected."""

    condition = "NOT_IN_QUARANTINE"
    table: str
    places: Sequence[tuple[int, int]]
    primary = "{count} records are not in the quarantine of silver table {table!r}"
    detail = "They are {shown}, as partition:offset."
    hint = "`tidemark quarantine show {table}` tells which records are."

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def shown(self) -> str:
        places = [f"{partition}:{offset}" for partition, offset in self.places[:SHOWN_PLACES]]
        return ", ".join([*places, "..."] if self.count > SHOWN_PLACES else places)


class TypesDifferError(RefusedError):
    """A column of the table has another type than the declarations now give."""

    condition = "TYPES_DIFFER"
    table: str
    column: str
    held: str
    declared: str
    primary = "column {column!r} of silver table {table!r} is {held}, and is declared {declared}"
    hint = (
        "Write sql/silver/{table}.sql so that its columns are those of the table, or make the "
        "table again from bronze: tidemark rebuild silver.{table}."
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
    primary = "silver table {table!r} has taken up a part of a batch"
    detail = "Its stream was stopped in the middle of a batch, or reads bronze again."
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
    primary = "bronze table {source!r} lacks records that silver table {table!r} was made of"
    detail = "Missing are {shown}."
    hint = (
        "What is made of the rest would lose their rows. Put them back from a backup of the bronze "
        "table, or keep the silver table as it is."
    )

    @property
    def shown(self) -> str:
        more = len(self.missing) - SHOWN_PLACES
        return "; ".join(self.missing[:SHOWN_PLACES]) + (f" and {more} more" if more > 0 else "")


class OvertakenError(LakehouseError):
    """Records were reprocessed while the table was being rebuilt."""

    condition = "REBUILD_OVERTAKEN"
    table: str
    primary = "records of silver table {table!r} were reprocessed while it was rebuilt"
    hint = "Nothing was written. Run the rebuild again."


class ForgetColumnError(LakehouseError):
    """A request to forget names a column that does not identify all records."""

    condition = "FORGET_COLUMN"
    source: str
    column: str
    known: Sequence[str]
    misspelt = "column"
    primary = "records of source {source!r} cannot be told by {column!r}"
    detail = "What tells every record of a row or an event is {known}."
    hint = "Find the person's keys first: tidemark query."


class ForgetPendingError(LakehouseError):
    """A silver table has not applied some records yet, which may be among those to forget."""

    condition = "FORGET_PENDING"
    table: str
    records: int
    primary = "silver table {table!r} has yet to take up {records} records"
    hint = (
        "Let the streams run (locally: make up) until `tidemark reconcile` balances, stop them, "
        "and try again."
    )
