"""Conditions of case files: what a user wrote there and what does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, LocatedError


class CaseOfNoViewError(LocatedError):
    """A case file whose name is that of no gold view."""

    condition = "CASE_OF_NO_VIEW"
    view: str
    known: Sequence[str]
    misspelt = "view"
    primary = "there is no gold view {view!r} for this case"
    hint = "Name the file VIEW.yml, or VIEW.WORD.yml."


class NoCasesError(LakehouseError):
    """A view that has no case file, where its cases were asked for."""

    condition = "NO_CASES"
    view: str
    folder: str
    primary = "gold view {view!r} has no case"
    hint = "Write {folder}/{view}.yml with given, then and when; see docs/views.md."


class CaseInputError(LocatedError):
    """A table in a case that the view does not read."""

    condition = "CASE_INPUT"
    table: str
    known: Sequence[str]
    misspelt = "table"
    primary = "the view does not read {table!r}"
    hint = "It reads {known}."


class CaseTableError(LocatedError):
    """Rows in a case that are not rows of their table."""

    condition = "CASE_TABLE"
    problem: str
    hint: str
    primary = "these rows are not valid: {problem}"


class CaseClockError(LocatedError):
    """A case that sets no clock for a view that reads it."""

    condition = "CASE_CLOCK"
    view: str
    primary = "gold view {view!r} reads the clock, but this case does not set it"
    hint = "Add for instance 'clock: 2026-03-01 12:00:00', in UTC."
