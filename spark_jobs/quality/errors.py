"""Error conditions of the quality gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from spark_jobs.errors import LakehouseError
from spark_jobs.quality.verdict import Verdict


@dataclass(frozen=True)
class RefusedExpectation:
    """An expectation that cannot be checked: its position in the suite from 0, and why."""

    position: int
    type: str
    problem: str

    def __str__(self) -> str:
        return f"Expectation {self.position + 1} ({self.type}): {self.problem}."


class SuiteRefusedError(LakehouseError):
    """A suite has an expectation that would not be checked as written."""

    condition = "SUITE_REFUSED"
    suite: str
    _: KW_ONLY
    table: str
    refused: Sequence[RefusedExpectation]
    primary = "suite {suite!r} of table {table!r} is refused"
    detail = "{refused: }"
    hint = "Fix the file in expectations/; `tidemark validate` checks it."


@dataclass(frozen=True)
class CrashedExpectation:
    """An expectation whose check raised an error, with its first line."""

    position: int
    type: str
    column: str | None
    problem: str

    def __str__(self) -> str:
        about = f" of {self.column}" if self.column else ""
        return f"Expectation {self.position + 1} ({self.type}{about}): {self.problem}."


class GateCrashedError(LakehouseError):
    """The check of an expectation raised an error, so that there is no verdict."""

    condition = "GATE_CRASHED"
    suite: str
    _: KW_ONLY
    table: str
    crashed: Sequence[CrashedExpectation]
    primary = "suite {suite!r} could not be checked against table {table!r}"
    detail = "{crashed: }"
    hint = (
        "The table keeps its old content. Check that each column exists in the table; otherwise "
        "run the refresh again."
    )


class GateBlockedError(LakehouseError):
    """Critical expectations failed, so the table keeps its old content."""

    condition = "GATE_BLOCKED"
    verdict: Verdict
    primary = "table {verdict.table!r} is blocked by {names}"
    detail = "{messages}"
    hint = (
        "The table keeps its old content. Fix the data or the rule in expectations/, then refresh "
        "again. The form ops__release, or tidemark release {view} --reason TEXT, publishes this "
        "result once."
    )

    @property
    def view(self) -> str:
        return self.verdict.table.removeprefix("gold.")

    @property
    def names(self) -> str:
        return ", ".join(one.name for one in self.verdict.blocking)

    @property
    def messages(self) -> str:
        return " ".join(f"{one.message}." for one in self.verdict.blocking)


class StillBlockedError(GateBlockedError):
    """A newer result is blocked too, and an earlier one waits for a person's decision."""

    condition = "STILL_BLOCKED"
    waiting: str
    primary = (
        "newer input of table {verdict.table!r} fails {names} too; attempt {waiting} still waits "
        "for a person"
    )
    hint = (
        "The form ops__release, or tidemark release {view} --reason TEXT, publishes the waiting "
        "attempt; tidemark refresh {view} replaces it with the newer result."
    )
