"""Reads case files of silver tables: records and their expected outcome."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from spark_jobs.definitions.marked import Places
from spark_jobs.definitions.silver_case import RecordFile, Refusal, SilverCaseFile, SilverStepFile
from spark_jobs.errors import LakehouseError, Location, ProblemsError
from spark_jobs.graph.manifest import Manifest, SilverEntry, SourceEntry
from spark_jobs.names import Disposition
from spark_jobs.storage.arrow_types import arrow_columns
from spark_jobs.testing.case_files import ANY_TIME, SILVER_CASES, read_content, view_of
from spark_jobs.testing.errors import (
    CaseAfterRefusalError,
    CaseOfNoTableError,
    CaseRecordError,
    CaseTableError,
)
from spark_jobs.testing.records import Sent, sent, words
from spark_jobs.testing.text_tables import TextTable, read_text_table, typed_rows

FIRST = "the first records"


@dataclass(frozen=True)
class CaseRecord:
    """A record and its expected outcome.

    Attributes:
        words: identify it among its neighbours, in messages.
        disposition: None: any but quarantined.
        reason: of its quarantine; None: any, or none.
        detail: of its quarantine; None: any, or none.
    """

    sent: Sent
    words: str
    location: Location
    disposition: Disposition | None
    reason: str | None
    detail: str | None


@dataclass(frozen=True)
class SilverStep:
    """A batch of records, their arrival time, and the expected table."""

    step: str
    location: Location
    clock: datetime
    records: tuple[CaseRecord, ...]
    refused: Refusal | None
    then: TextTable


@dataclass(frozen=True)
class SilverCase:
    """A case of a silver table.

    Attributes:
        name: of the file, without its ending.
        table: the silver table, without its layer.
    """

    name: str
    table: str
    steps: tuple[SilverStep, ...]


def read_silver_case(file: Path, manifest: Manifest) -> SilverCase:
    """Read a case and check what can be checked without running it.

    Raises:
        ProblemsError: all problems of the file.
    """
    name, table = f"{SILVER_CASES}/{file.name}", view_of(file)
    content, places, problems = read_content(file, name, SilverCaseFile)
    entry = manifest.silver.get(table)
    steps: tuple[SilverStep, ...] = ()
    if entry is None:
        known = sorted(manifest.silver)
        problems.append(CaseOfNoTableError(table, known, location=Location(name)))
    elif content is not None:
        reader = _Reader(manifest.sources[entry.source], entry, places, problems)
        steps = reader.steps(content)
    if problems:
        raise ProblemsError(problems)
    return SilverCase(file.stem, table, steps)


@dataclass
class _Reader:
    """Makes the steps of a case, and collects problems.

    Attributes:
        newest: the highest position of a change so far.
    """

    source: SourceEntry
    entry: SilverEntry
    places: Places
    problems: list[LakehouseError]
    newest: int = 0

    def steps(self, content: SilverCaseFile) -> tuple[SilverStep, ...]:
        clock = content.clock or ANY_TIME
        refused = content.refused
        found = [self.step(FIRST, content, clock)]
        for at, step in enumerate(content.when):
            clock = step.clock or clock
            if refused is not None:
                place = self.places.value_of("when", at)
                self.problems.append(CaseAfterRefusalError(step.step, location=place))
            refused = refused or step.refused
            found.append(self.step(step.step, step, clock, "when", at))
        return tuple(found)

    def step(
        self, name: str, step: SilverCaseFile | SilverStepFile, clock: datetime, *path: str | int
    ) -> SilverStep:
        records = []
        for at, one in enumerate(step.records):
            place = self.places.value_of(*path, "records", at)
            try:
                records.append(self.record(one, clock, place))
            except CaseRecordError as error:
                self.problems.append(error)
        place = self.places.value_of(*path, "then")
        try:
            then = self.rows(step.then, place)
        except CaseTableError as error:
            self.problems.append(error)
            then = TextTable((), (), place)
        begin = self.places.of(*path, "step" if path else "records")
        return SilverStep(name, begin, clock, tuple(records), step.refused, then)

    def record(self, record: RecordFile, clock: datetime, place: Location) -> CaseRecord:
        made = sent(record, self.source, position=self.newest + 1, clock=clock, location=place)
        self.newest = max(self.newest, made.position or 0)
        disposition, told = record.disposition, record.reason or record.detail
        if told and disposition not in (None, Disposition.QUARANTINED):
            problem = f"it has a reason of quarantine, but the disposition {disposition}"
            hint = "Remove one of them; a record with a reason is quarantined."
            raise CaseRecordError(problem, hint, location=place)
        if record.detail is not None and record.reason is None:
            hint = "Add the reason that the detail belongs to."
            raise CaseRecordError("it has a detail without a reason", hint, location=place)
        if record.reason is not None:
            disposition = Disposition.QUARANTINED
        reason = None if record.reason is None else str(record.reason)
        text = words(record, made)
        return CaseRecord(made, text, place, disposition, reason, record.detail)

    def rows(self, text: str, place: Location) -> TextTable:
        table = read_text_table(text, place)
        names = tuple(column.name for column in self.entry.columns)
        if table.columns != names:
            problem = f"the table's columns are {' | '.join(names)}"
            raise CaseTableError(problem, "Name all of them, in their order.", location=place)
        schema = arrow_columns(self.entry.columns)
        if schema is not None:
            typed_rows(table, schema)
        return table


def case_name(stem: str) -> str:
    """The name of a case, which differs from those of all views' cases.

    >>> case_name("orders.late")
    'silver.orders.late'
    """
    return f"silver.{stem}"
