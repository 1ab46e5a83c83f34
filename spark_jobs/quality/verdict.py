"""What the gate found, as plain values; needs neither Great Expectations nor Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

JsonObject = dict[str, Any]
JsonScalar = str | int | float | bool | None


class Severity(StrEnum):
    """What a failed expectation does: block the publication, warn, or be written down."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Outcome(StrEnum):
    """What the verdict means for the publication; ``blocked`` alone stops it."""

    PASSED = "passed"
    WARNED = "warned"
    BLOCKED = "blocked"
    # It was blocked, and a person let it through.
    RELEASED = "released"

    @classmethod
    def _missing_(cls, value: object) -> Outcome | None:
        """Read the name under which older releases stored an outcome."""
        return cls.BLOCKED if value == "held" else None


@dataclass(frozen=True, kw_only=True)
class ExpectationResult:
    """One expectation of the suite and what came of it.

    Attributes:
        position: its place in the suite, from 0.
        type: Great Expectations' name for it.
        kwargs: as the suite declares them.
        column: the column, or several joined by commas; None for a rule about the table.
        unexpected_count: values or rows that do not fit; None where the rule counts none.
        unexpected_percent: their share of the table's rows.
        samples: a few of them, as text; none of a column with personal data.
        keys: the grain of a few rows that do not fit, as text.
        observed: the value that a rule about an aggregate saw.
        note: the words of the rule's author.
        message: one line for people; it shows keys and no values, as many may read it.
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
        """The rule and its column, for people."""
        return f"{self.type}({self.column})" if self.column else self.type


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What a record says of an audit, where the results alone do not say it."""

    outcome: Outcome
    expectations: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The gate's word on one staged table.

    Attributes:
        table: the table that was audited.
        suite: the suite's name; None where the table has none.
        rows: rows audited; None where there was nothing to audit. Row-level expectations hold
            for a table of 0 rows, so 0 says that they proved nothing.
        seconds: how long the audit took, imports included.
        recorded: set where a person released the result, or where the verdict was read from a
            commit, which keeps its counts and no results.
    """

    table: str
    suite: str | None
    rows: int | None
    results: tuple[ExpectationResult, ...] = ()
    seconds: float = 0.0
    recorded: Recorded | None = None

    @property
    def expectations(self) -> int:
        """How many expectations were checked."""
        return self.recorded.expectations if self.recorded else len(self.results)

    @property
    def failures(self) -> int:
        """How many expectations failed, of any severity."""
        return self.recorded.failed if self.recorded else len(self.failed)

    @property
    def failed(self) -> tuple[ExpectationResult, ...]:
        """The results of the expectations that failed, of any severity."""
        return tuple(result for result in self.results if not result.success)

    @property
    def blocking(self) -> tuple[ExpectationResult, ...]:
        """The failed expectations that stop the publication."""
        return tuple(one for one in self.failed if one.severity is Severity.CRITICAL)

    @property
    def outcome(self) -> Outcome:
        """The worst failed severity decides; ``info`` is only written down."""
        if self.recorded:
            return self.recorded.outcome
        severities = {result.severity for result in self.failed}
        if Severity.CRITICAL in severities:
            return Outcome.BLOCKED
        return Outcome.WARNED if Severity.WARNING in severities else Outcome.PASSED

    def as_dict(self) -> JsonObject:
        """The verdict as the ledger keeps it."""
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
        """Read what ``as_dict`` wrote, or the part of it that a commit keeps."""
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
    # Releases before this one kept no keys.
    keys = tuple(entry.get("keys", ()))
    return ExpectationResult(**{**entry, "severity": severity, "samples": samples, "keys": keys})


def _recorded(entry: Mapping[str, Any]) -> Recorded | None:
    outcome = Outcome(entry["outcome"])
    if "results" in entry and outcome is not Outcome.RELEASED:
        return None
    return Recorded(outcome=outcome, expectations=entry["expectations"], failed=entry["failed"])
