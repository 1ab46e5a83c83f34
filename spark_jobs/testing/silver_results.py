"""Results of a silver table's case: rows and records that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_jobs.names import Disposition, passed_keys
from spark_jobs.testing.multisets import Row
from spark_jobs.testing.silver_case_files import CaseRecord, SilverCase

NOT_PROCESSED = "not processed"


@dataclass(frozen=True)
class RecordEnd:
    """The outcome of a record: its disposition, and the reason and detail of its quarantine."""

    disposition: Disposition | None
    reason: str | None = None
    detail: str | None = None

    def meets(self, record: CaseRecord) -> bool:
        """Whether the outcome is the expected one."""
        if record.disposition is None:
            return self.disposition is not Disposition.QUARANTINED
        wanted = (record.disposition, record.reason, record.detail)
        found = (self.disposition, self.reason, self.detail)
        return all(one in (None, other) for one, other in zip(wanted, found, strict=True))

    def __str__(self) -> str:
        told = (self.disposition or NOT_PROCESSED, self.reason, self.detail)
        return " ".join(str(part) for part in told if part is not None)


@dataclass(frozen=True)
class RecordDifference:
    """A record with another outcome than expected.

    Attributes:
        place: of the record in its file.
    """

    place: str
    record: str
    expected: str
    found: str

    @classmethod
    def of(cls, record: CaseRecord, end: RecordEnd) -> RecordDifference:
        """The difference, as text."""
        wanted = (record.disposition, record.reason, record.detail)
        expected = " ".join(str(part) for part in wanted if part is not None)
        place, text = str(record.location), record.words
        return cls(place, text, expected or f"not {Disposition.QUARANTINED}", str(end))

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected}, found {self.found}\n  {self.record}"


@dataclass(frozen=True)
class SilverStepResult:
    """The result of a step.

    Attributes:
        missing: expected rows that are missing.
        unexpected: rows that were not expected.
        records: records with another outcome than expected.
        refusal: what differs from the expected refusal; None if nothing does.
    """

    step: str
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]
    records: tuple[RecordDifference, ...]
    refusal: str | None

    @property
    def passed(self) -> bool:
        return not (self.missing or self.unexpected or self.records or self.refusal)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and the result under the names of ``passed_keys``."""
        records = [vars(one) for one in self.records]
        return {**vars(self), "records": records, **passed_keys(passed=self.passed)}


@dataclass(frozen=True)
class SilverCaseResult:
    """The result of a case: its steps up to the first failed one."""

    case: SilverCase
    steps: tuple[SilverStepResult, ...]

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.steps)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What differs in the last step, apart from its rows."""
        step = self.steps[-1]
        refusals = () if step.refusal is None else (step.refusal,)
        return (*map(str, step.records), *refusals)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: ``table`` in SQL, and ``steps``."""
        steps = [one.as_dict() for one in self.steps]
        return {"table": f"silver.{self.case.table}", "steps": steps}
