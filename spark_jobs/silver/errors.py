"""Conditions of silver tables and of what is in their quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, RefusedError, did_you_mean

SHOWN_PLACES = 5


class SilverTableUnknownError(LakehouseError):
    """A name that no silver table of the project has."""

    condition = "SILVER_TABLE_UNKNOWN"

    def __init__(self, table: str, known: Sequence[str]) -> None:
        self.table = table
        super().__init__(
            f"there is no silver table {table!r}",
            hint=did_you_mean(table, known) or f"Declare it in sql/silver/{table}.sql.",
        )


class SourceUnknownError(LakehouseError):
    """A name that no source of records has."""

    condition = "SOURCE_UNKNOWN"

    def __init__(self, source: str, known: Sequence[str]) -> None:
        self.source = source
        super().__init__(
            f"there is no source {source!r} of records",
            hint=did_you_mean(source, known) or f"Sources are {', '.join(known)}.",
        )


class SourceDatabaseUnsetError(LakehouseError):
    """Nothing says which database the changes come from."""

    condition = "SOURCE_DATABASE_UNSET"

    def __init__(self) -> None:
        super().__init__(
            "no source database is known",
            hint="Set source_database in tidemark.yml, or start the local stack.",
        )


class DatabaseUnreachableError(LakehouseError):
    """The source database does not answer, or not with the declared table."""

    condition = "DATABASE_UNREACHABLE"

    def __init__(self, table: str, cause: str) -> None:
        self.table = table
        super().__init__(
            f"source table {table!r} cannot be read",
            detail=cause.strip().splitlines()[0] + "." if cause.strip() else None,
            hint="Check that the database runs and that the source's table and columns exist.",
        )


class NotInQuarantineError(LakehouseError):
    """Records that are named and were never rejected."""

    condition = "NOT_IN_QUARANTINE"

    def __init__(self, table: str, places: Sequence[tuple[int, int]]) -> None:
        self.table = table
        self.places = tuple(places)
        shown = ", ".join(f"{partition}:{offset}" for partition, offset in places[:SHOWN_PLACES])
        more = ", ..." if len(places) > SHOWN_PLACES else ""
        super().__init__(
            f"{len(places)} records are not in the quarantine of silver table {table!r}",
            detail=f"They are {shown}{more}, as partition:offset.",
            hint=f"`tidemark quarantine show {table}` tells which records are.",
        )


class TypesDifferError(RefusedError):
    """The table was created with another type than the declarations now give a column."""

    condition = "TYPES_DIFFER"

    def __init__(self, table: str, column: str, held: str, declared: str) -> None:
        self.table = table
        self.column = column
        self.held = held
        self.declared = declared
        super().__init__(
            f"column {column!r} of silver table {table!r} is {held}, and is declared {declared}",
            hint=f"Write sql/silver/{table}.sql so that its columns are those of the table, or "
            f"make the table anew from bronze: tidemark rebuild silver.{table}.",
        )


class MendedFileError(LakehouseError):
    """A line of the file of mended records that does not read."""

    condition = "MENDED_FILE"

    def __init__(self, file: str, line: int, problem: str) -> None:
        self.file = file
        self.line = line
        self.problem = problem
        super().__init__(
            f"{file}:{line}: {problem}",
            hint='Each line is {"partition": 0, "offset": 7, "value": ...}, as `tidemark '
            "quarantine show --to` writes it; the value is a JSON object or the record's text.",
        )


class UnsettledError(LakehouseError):
    """How much of bronze a silver table holds cannot be told now."""

    condition = "SILVER_UNSETTLED"

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"silver table {table!r} has taken up a part of a batch",
            detail="Its stream was stopped in the middle of a batch, or reads bronze anew.",
            hint="Let the streams run (locally: make up) until `tidemark reconcile` balances, then "
            "try again.",
        )


class BronzeIncompleteError(LakehouseError):
    """Bronze no longer holds every record that a silver table was made of."""

    condition = "BRONZE_INCOMPLETE"

    def __init__(self, table: str, source: str, missing: Sequence[str]) -> None:
        self.table = table
        self.source = source
        self.missing = tuple(missing)
        more = f" and {len(missing) - SHOWN_PLACES} more" if len(missing) > SHOWN_PLACES else ""
        super().__init__(
            f"bronze table {source!r} lacks records that silver table {table!r} was made of",
            detail=f"Missing are {'; '.join(missing[:SHOWN_PLACES])}{more}.",
            hint="What is made of the rest would lose their rows. Put them back from a backup of "
            "the bronze table, or keep the silver table as it is.",
        )


class OvertakenError(LakehouseError):
    """Records left quarantine while a table was built beside the live one."""

    condition = "REBUILD_OVERTAKEN"

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"records of silver table {table!r} were readmitted while it was rebuilt",
            hint="Nothing was written. Run the rebuild again.",
        )


class ForgetColumnError(LakehouseError):
    """A request to forget names a column by which not every record can be found."""

    condition = "FORGET_COLUMN"

    def __init__(self, source: str, column: str, telling: Sequence[str]) -> None:
        self.source = source
        self.column = column
        super().__init__(
            f"records of source {source!r} cannot be told by {column!r}",
            detail=f"What tells every record of a row or an event is {', '.join(telling)}.",
            hint=did_you_mean(column, telling) or "Find the person's keys first: tidemark query.",
        )


class ForgetPendingError(LakehouseError):
    """A silver table has yet to take up records, which may be some of those to forget."""

    condition = "FORGET_PENDING"

    def __init__(self, table: str, records: int) -> None:
        self.table = table
        self.records = records
        super().__init__(
            f"silver table {table!r} has yet to take up {records} records",
            hint="Let the streams run (locally: make up) until `tidemark reconcile` balances, stop "
            "them, and try again.",
        )
