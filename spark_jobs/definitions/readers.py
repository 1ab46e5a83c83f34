"""Parses the text of a file of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from pydantic import BaseModel

from spark_jobs.definitions.checked import checked
from spark_jobs.definitions.durations import duration_text
from spark_jobs.definitions.errors import (
    KeyNotApplicableError,
    MissingKeyError,
    ScheduleError,
)
from spark_jobs.definitions.files import DeclaredFile
from spark_jobs.definitions.header import split_header
from spark_jobs.definitions.marked import Places, read_marked
from spark_jobs.definitions.models import GoldHeader, SilverHeader, SourceFile
from spark_jobs.definitions.schedules import cron_of
from spark_jobs.definitions.source_checks import check_source
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.errors import LakehouseError
from spark_jobs.names import Layer

Header = TypeVar("Header", bound=BaseModel)


def read_source(
    file: DeclaredFile, problems: list[LakehouseError]
) -> tuple[SourceFile | None, Places]:
    """Parse a source; None if it does not fit the model. Problems are added to the list."""
    subject = f'source "{file.name}"'
    try:
        marked = read_marked(file.text, file.file)
    except LakehouseError as error:
        problems.append(error)
        return None, Places(file.file, 1, {}, {})
    source, found = checked(marked, SourceFile, subject)
    if source:
        found += check_source(source, marked.places, subject, written=frozenset(marked.data))
    problems += found
    return source, marked.places


@dataclass(frozen=True)
class SqlFile(Generic[Header]):
    """A SQL file in its parts; the header is None if it is not valid."""

    header: Header | None
    places: Places
    sql: str
    padded: str


def read_silver(file: DeclaredFile, problems: list[LakehouseError]) -> SqlFile[SilverHeader] | None:
    """Parse a silver file; None if it has no header. Problems are added to the list."""
    return _read_sql(file, Layer.SILVER, SilverHeader, problems)


def read_gold(file: DeclaredFile, problems: list[LakehouseError]) -> SqlFile[GoldHeader] | None:
    """Parse a gold file; None if it has no header. Problems are added to the list."""
    read = _read_sql(file, Layer.GOLD, GoldHeader, problems)
    if read and read.header:
        subject = f'gold view "{file.name}"'
        problems += _check_policy(read.header, read.places, subject)
        problems += _check_columns(read.header, read.places, subject)
    return read


def _check_policy(header: GoldHeader, places: Places, subject: str) -> Iterator[LakehouseError]:
    scheduled = [key for key in ("every", "schedule") if getattr(header, key) is not None]
    match header.refresh:
        case RefreshPolicy.CONTINUOUS:
            for key in scheduled:
                yield KeyNotApplicableError(
                    subject,
                    key,
                    "a continuous view is refreshed whenever its inputs change",
                    f'Remove "{key}", or write "refresh: micro-batch".',
                    location=places.of(key),
                )
        case RefreshPolicy.MICRO_BATCH if not scheduled:
            reason = 'A micro-batch view is refreshed by "every" or by "schedule".'
            yield MissingKeyError(subject, "every", reason, location=places.of())
    if len(scheduled) > 1:
        yield KeyNotApplicableError(
            subject,
            "schedule",
            'it has the key "every"',
            "Keep one of the two.",
            location=places.of("schedule"),
        )
    if header.time_zone is not None and header.schedule is None:
        yield KeyNotApplicableError(
            subject,
            "time_zone",
            'only a "schedule" has one: the periods of "every" are counted in UTC',
            location=places.of("time_zone"),
        )
    if header.every and not _aligned(header.every):
        yield _drifting("every", header.every, places, subject)
    if header.ttl is not None:
        yield KeyNotApplicableError(
            subject,
            "ttl",
            "the view's rows are those of its SELECT",
            "Say in the WHERE clause which rows it has, by CURRENT_DATE() for instance, or give "
            'the silver table that it reads a "ttl".',
            location=places.of("ttl"),
        )
    if header.contract_version is not None and header.contract is None:
        yield KeyNotApplicableError(
            subject,
            "contract_version",
            "the view promises nothing",
            'Write "contract: strict", or remove the key.',
            location=places.of("contract_version"),
        )
    if header.verify and not _aligned(header.verify):
        yield _drifting("verify", header.verify, places, subject)


def _check_columns(header: GoldHeader, places: Places, subject: str) -> Iterator[LakehouseError]:
    for name, column in header.columns.items():
        if column.use is not None and column.deprecated is None:
            yield KeyNotApplicableError(
                f'{subject}: column "{name}"',
                "use",
                "it is not deprecated",
                'Say from when it may be removed, "deprecated: YYYY-MM-DD", or remove the key.',
                location=places.of("columns", name, "use"),
            )


def _drifting(key: str, period: timedelta, places: Places, subject: str) -> ScheduleError:
    text = duration_text(period.total_seconds())
    return ScheduleError(subject, key, text, location=places.value_of(key))


def _aligned(period: timedelta) -> bool:
    return cron_of(int(period.total_seconds())) is not None


def _read_sql(
    file: DeclaredFile, layer: Layer, model: type[Header], problems: list[LakehouseError]
) -> SqlFile[Header] | None:
    kind = "silver table" if layer is Layer.SILVER else "gold view"
    try:
        split = split_header(file.text, file.file, layer)
    except LakehouseError as error:
        problems.append(error)
        return None
    try:
        marked = read_marked(split.header, file.file, first_line=split.header_line)
    except LakehouseError as error:
        problems.append(error)
        nowhere = Places(file.file, split.header_line, {}, {})
        return SqlFile(None, nowhere, split.sql, split.padded)
    header, found = checked(marked, model, f'{kind} "{file.name}"')
    problems += found
    return SqlFile(header, marked.places, split.sql, split.padded)
