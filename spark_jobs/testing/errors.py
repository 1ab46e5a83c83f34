"""Conditions of case files."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, LocatedError, first_line


class CaseOfNoViewError(LocatedError):
    """A case file that is named after no gold view."""

    condition = "CASE_OF_NO_VIEW"
    view: str
    known: Sequence[str]
    misspelt = "view"
    primary = "there is no gold view {view!r} for this case"
    hint = "Name the file VIEW.yml, or VIEW.WORD.yml."


class CaseOfNoTableError(LocatedError):
    """A case file that is named after no silver table."""

    condition = "CASE_OF_NO_TABLE"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "there is no silver table {table!r} for this case"
    hint = "Name the file TABLE.yml, or TABLE.WORD.yml."


class NoCasesError(LakehouseError):
    """A table without case files whose cases were requested."""

    condition = "NO_CASES"
    table: str
    primary = "{table} has no case"
    hint = "Write tests/cases/{path}.yml; docs/{page} shows an example."

    @property
    def path(self) -> str:
        return self.table.replace(".", "/")

    @property
    def page(self) -> str:
        return "silver.md" if self.table.startswith("silver.") else "views.md"


class CaseInputError(LocatedError):
    """A table in a case that the view does not read."""

    condition = "CASE_INPUT"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "the view does not read {table!r}"
    hint = "It reads {known}."


class CaseTableError(LocatedError):
    """Rows in a case that do not fit their table."""

    condition = "CASE_TABLE"
    problem: str
    hint: str
    primary = "these rows are not valid: {problem}"


class CaseClockError(LocatedError):
    """A case without a clock, of a view that reads the clock."""

    condition = "CASE_CLOCK"
    view: str
    primary = "gold view {view!r} reads the clock, but this case does not set it"
    hint = "Add for instance 'clock: 2026-03-01 12:00:00', in UTC."


class CaseRecordError(LocatedError):
    """A record in a case of a silver table that cannot be encoded."""

    condition = "CASE_RECORD"
    problem: str
    hint: str
    primary = "this record is not valid: {problem}"


class CaseAfterRefusalError(LocatedError):
    """A step of a case after one whose batch is refused."""

    condition = "CASE_AFTER_REFUSAL"
    step: str
    primary = "step {step!r} comes after a refused batch"
    detail = "A table that refuses a batch waits before it, and processes no record after it."
    hint = "Let the refused batch be the last step, and write another case for the other steps."


class CaseBatchError(LocatedError):
    """A batch of a case that Spark cannot apply, which would stop the table's stream."""

    condition = "CASE_BATCH"
    step: str
    cause: str
    file: str
    primary = "step {step!r} cannot be applied"
    detail = "{said}"
    hint = "The stream of the table would stop here. Correct the SELECT in {file}."

    @property
    def said(self) -> str:
        return first_line(self.cause)
