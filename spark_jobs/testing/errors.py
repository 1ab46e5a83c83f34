"""Conditions of case files: what a user wrote there and what does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, Location, did_you_mean


class CaseOfNoViewError(LakehouseError):
    """A case file whose name is that of no gold view."""

    condition = "CASE_OF_NO_VIEW"

    def __init__(self, view: str, known: Sequence[str], *, location: Location) -> None:
        self.view = view
        super().__init__(
            f"there is no gold view {view!r} for this case",
            hint=did_you_mean(view, known) or "Name the file VIEW.yml, or VIEW.WORD.yml.",
            location=location,
        )


class NoCasesError(LakehouseError):
    """A view that has no case file, where its cases were asked for."""

    condition = "NO_CASES"

    def __init__(self, view: str, folder: str) -> None:
        self.view = view
        super().__init__(
            f"gold view {view!r} has no case",
            hint=f"Write {folder}/{view}.yml with given, then and when; see docs/views.md.",
        )


class CaseInputError(LakehouseError):
    """A table in a case that the view does not read."""

    condition = "CASE_INPUT"

    def __init__(self, table: str, known: Sequence[str], *, location: Location) -> None:
        self.table = table
        super().__init__(
            f"the view does not read {table!r}",
            hint=did_you_mean(table, known) or f"It reads {', '.join(known)}.",
            location=location,
        )


class CaseTableError(LakehouseError):
    """Rows in a case that are not rows of their table."""

    condition = "CASE_TABLE"

    def __init__(self, problem: str, hint: str, *, location: Location) -> None:
        self.problem = problem
        super().__init__(f"these rows do not fit: {problem}", hint=hint, location=location)


class CaseClockError(LakehouseError):
    """A case that sets no clock for a view that reads it."""

    condition = "CASE_CLOCK"

    def __init__(self, view: str, *, location: Location) -> None:
        self.view = view
        super().__init__(
            f"gold view {view!r} reads the clock, and this case does not set it",
            hint="Add for instance 'clock: 2026-03-01 12:00:00', which is in UTC.",
            location=location,
        )
