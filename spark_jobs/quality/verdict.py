"""The gate's verdict as plain values; needs neither Great Expectations nor Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from spark_jobs.definitions.vocabulary import Severity

JsonObject = dict[str, Any]
JsonScalar = str | int | float | bool | None


class Outcome(StrEnum):
    """The consequence of the verdict; only ``blocked`` stops the publication."""

    PASSED = "passed"
    WARNED = "warned"
    BLOCKED = "blocked"
    # It was blocked, and a person released it.
    RELEASED = "released"

    @classmethod
    def _missing_(cls, value: object) -> Outcome | None:
        """Accept the names that older releases stored."""
        return cls.BLOCKED if value == "held" else None


@dataclass(frozen=True, kw_only=True)
class ExpectationResult:
    """The result of one expectation.

    Attributes:
        position: position in the suite, from 0.
        type: its name in Great Expectations.
        kwargs: as declared in the suite.
        column: the column, or several separated by commas; None for a rule about the table.
        unexpected_count: number of unexpected values or rows; None if the rule does not count.
        unexpected_percent: their share of the table's rows.
        samples: some of them as text; none for columns with personal data.
        keys: grain of some unexpected rows, as text.
        observed: the observed value of an aggregate rule.
        note: the author's note.
        message: one line of text with keys but without values, because many people may read it.
    """

    position: int
    type: str
    kwargs: JsonObject
    column: str | None
    severity: Severity
    success: bool
    unexpected_count: int | None = None
    unexpected_percent: float | None = None
    samples: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    observed: JsonScalar = None
    note: str = ""
    message: str = ""

    @property
    def name(self) -> str:
        """The rule and its column."""
        return f"{self.type}({self.column})" if self.column else self.type


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The recorded outcome, if the results alone do not give it."""

    outcome: Outcome
    expectations: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The gate's verdict on one staged table.

    Attributes:
        table: the audited table.
        suite: the suite's name; None if the table has none.
        rows: audited rows; None if there was nothing to audit. With 0 rows, row-level expectations
            pass but prove nothing.
        seconds: duration of the audit, including imports.
        recorded: set if a person released the result, or if the verdict was read from a commit,
            which has counts but no results.
    """

    table: str
    suite: str | None
    rows: int | None
    results: tuple[ExpectationResult, ...] = ()
    seconds: float = 0.0
    recorded: Recorded | None = None

    @property
    def expectations(self) -> int:
        """Number of checked expectations."""
        return self.recorded.expectations if self.recorded else len(self.results)

    @property
    def failures(self) -> int:
        """Number of failed expectations of any severity."""
        return self.recorded.failed if self.recorded else len(self.failed)

    @property
    def failed(self) -> tuple[ExpectationResult, ...]:
        """Results of failed expectations of any severity."""
        return tuple(result for result in self.results if not result.success)

    @property
    def blocking(self) -> tuple[ExpectationResult, ...]:
        """The failed expectations that block the publication."""
        return tuple(one for one in self.failed if one.severity is Severity.CRITICAL)

    @property
    def outcome(self) -> Outcome:
        """Given by the worst failed severity; ``info`` has no effect."""
        if self.recorded:
            return self.recorded.outcome
        severities = {result.severity for result in self.failed}
        if Severity.CRITICAL in severities:
            return Outcome.BLOCKED
        return Outcome.WARNED if Severity.WARNING in severities else Outcome.PASSED

    def as_dict(self) -> JsonObject:
        """As stored in the ledger."""
        return {
            "table": self.table,
            "suite": self.suite,
            "outcome": str(self.outcome),
            "expectations": self.expectations,
            "failed": self.failures,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "results": [
                {
                    **asdict(one),
                    "severity": str(one.severity),
                    "samples": list(one.samples),
                    "keys": list(one.keys),
                }
                for one in self.results
            ],
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Verdict:
        """Decode the result of ``as_dict``, or the part of it that a commit has."""
        return cls(
            table=entry["table"],
            suite=entry.get("suite"),
            rows=entry.get("rows"),
            seconds=entry.get("seconds", 0.0),
            results=tuple(_result(one) for one in entry.get("results", ())),
            recorded=_recorded(entry),
        )


def _result(entry: Mapping[str, Any]) -> ExpectationResult:
    severity, samples = Severity(entry["severity"]), tuple(entry["samples"])
    # Older releases stored no keys.
    keys = tuple(entry.get("keys", ()))
    return ExpectationResult(**{**entry, "severity": severity, "samples": samples, "keys": keys})


def _recorded(entry: Mapping[str, Any]) -> Recorded | None:
    outcome = Outcome(entry["outcome"])
    if "results" in entry and outcome is not Outcome.RELEASED:
        return None
    return Recorded(outcome=outcome, expectations=entry["expectations"], failed=entry["failed"])
