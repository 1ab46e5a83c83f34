"""Conditions of the quality gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.errors import LakehouseError
from spark_jobs.quality.verdict import Verdict


@dataclass(frozen=True)
class RefusedExpectation:
    """An expectation that cannot be checked, its place in the suite from 0, and why."""

    position: int
    type: str
    problem: str

    def __str__(self) -> str:
        return f"Expectation {self.position + 1} ({self.type}): {self.problem}."


class SuiteRefusedError(LakehouseError):
    """A suite holds an expectation that would not be checked as it is written."""

    condition = "SUITE_REFUSED"

    def __init__(self, suite: str, *, table: str, refused: Sequence[RefusedExpectation]) -> None:
        self.suite = suite
        self.table = table
        self.refused = tuple(refused)
        super().__init__(
            f"suite {suite!r} of table {table!r} is refused",
            detail=" ".join(str(one) for one in self.refused),
            hint="Mend the file in expectations/; `tidemark validate` checks it.",
        )


@dataclass(frozen=True)
class CrashedExpectation:
    """An expectation whose check raised, and the first line of what it raised."""

    position: int
    type: str
    column: str | None
    problem: str

    def __str__(self) -> str:
        about = f" of {self.column}" if self.column else ""
        return f"Expectation {self.position + 1} ({self.type}{about}): {self.problem}."


class GateCrashedError(LakehouseError):
    """An expectation could not be checked, so nothing is known about the data."""

    condition = "GATE_CRASHED"

    def __init__(self, suite: str, *, table: str, crashed: Sequence[CrashedExpectation]) -> None:
        self.suite = suite
        self.table = table
        self.crashed = tuple(crashed)
        super().__init__(
            f"suite {suite!r} could not be checked against table {table!r}",
            detail=" ".join(str(one) for one in self.crashed),
            hint="The table keeps its old content. Check that each column is one of the table's; "
            "otherwise run the refresh again.",
        )


class GateHeldError(LakehouseError):
    """Critical expectations fail, so the table keeps its old content."""

    condition = "GATE_HELD"

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        names = ", ".join(one.name for one in verdict.holding)
        super().__init__(
            f"table {verdict.table!r} is held by {names}",
            detail=" ".join(f"{one.message}." for one in verdict.holding),
            hint="The table keeps its old content. Mend the data or the rule in expectations/, "
            "then refresh again; tidemark release VIEW --reason TEXT publishes this result once.",
        )
