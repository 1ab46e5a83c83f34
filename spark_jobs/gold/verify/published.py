"""Verify: compares a published table with its SQL at the input versions that it records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import NotPublishedError
from spark_jobs.gold.base.publications import Publication, intruder, latest_publication
from spark_jobs.gold.compute.difference import count_difference, differing_rows, same_columns
from spark_jobs.gold.compute.pinned import pinned_result, query_failures
from spark_jobs.gold.verify.sampling import Sample, in_buckets, sample_of
from spark_jobs.gold.verify.tolerance import close_rows
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.personal import personal_columns
from spark_jobs.names import passed_keys
from spark_jobs.planning.vector import VersionVector
from spark_jobs.state.verifications import VerificationRecord
from spark_jobs.storage import log, reader
from spark_jobs.storage.history import last_alike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EXAMPLES = 5
# Maps the row count of a published table to the hash buckets to compare.
Buckets = Callable[[int | None], Sequence[int]]


class Finding(StrEnum):
    """The result of a verification."""

    EQUAL = "EQUAL"
    # Equal except for rounding of floating-point numbers.
    EQUAL_WITHIN_TOLERANCE = "EQUAL_WITHIN_TOLERANCE"
    ROWS_DIFFER = "ROWS_DIFFER"
    COLUMNS_DIFFER = "COLUMNS_DIFFER"
    # Another writer changed rows after the newest publication.
    FOREIGN_COMMIT = "FOREIGN_COMMIT"
    # The published table was computed by other SQL; a refresh is needed.
    DEFINITION_CHANGED = "DEFINITION_CHANGED"


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The result of a verification, with the evidence.

    Attributes:
        vector: the input versions that the publication records.
        version: the version of the published table that was compared.
        rows: rows of the published table; None if its log has no counts.
        missing: rows of the SQL's result that the table lacks, duplicates counted.
        unexpected: rows of the table that the SQL does not return.
        examples: some differing rows, each as {column: text}; the key "" has the signed count.
            Personal values are masked.
        largest_difference: largest relative difference of floats that was accepted.
        sample: the buckets that were compared; None if all rows were.
    """

    view: str
    finding: Finding
    detail: str
    vector: VersionVector
    version: int
    rows: int | None
    missing: int = 0
    unexpected: int = 0
    examples: tuple[dict[str, str | None], ...] = ()
    largest_difference: float | None = None
    sample: Sample | None = None
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.finding in {Finding.EQUAL, Finding.EQUAL_WITHIN_TOLERANCE}

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and the result under the names of ``passed_keys``."""
        return {
            "view": self.view,
            **passed_keys(passed=self.passed),
            "finding": self.finding.value,
            "detail": self.detail,
            "vector": self.vector.as_dict(),
            "version": self.version,
            "rows": self.rows,
            "missing": self.missing,
            "unexpected": self.unexpected,
            "examples": [dict(example) for example in self.examples],
            "largest_difference": self.largest_difference,
            "sample": None if self.sample is None else self.sample.as_dict(),
            "seconds": round(self.seconds, 3),
        }


def verify(context: GoldContext, view: str, *, buckets: Buckets | None = None) -> Verification:
    """Compare a view's published table with its SQL as multisets, and record the result.

    Args:
        context: settings, manifest and locations of the project.
        view: the view's name.
        buckets: chooses the hash buckets to compare, see ``sampling``; None: all rows.

    Raises:
        ViewUnknownError: the project has no such view.
        NotPublishedError: the view was never published.
        QueryFailedError: the SQL no longer runs at the recorded versions, or a file is damaged.
    """
    started = perf_counter()
    entry = context.entry(view)
    location = context.published_at(view)
    publication = latest_publication(location)
    if publication is None:
        raise NotPublishedError(view)
    with query_failures(view):
        found = _verification(context, entry, publication, buckets)
    found = replace(found, seconds=perf_counter() - started)
    context.store.record_verification(_record(found))
    return found


def _verification(
    context: GoldContext,
    entry: GoldEntry,
    publication: Publication,
    buckets: Buckets | None,
) -> Verification:
    location = context.published_at(entry.name)
    mark = publication.watermark
    found = Verification(
        view=entry.name,
        finding=Finding.EQUAL,
        detail="the table equals its SQL",
        vector=mark.vector,
        version=publication.version,
        rows=log.size(location, publication.version).rows,
    )
    foreign = intruder(location, publication)
    if foreign is not None:
        detail = f"version {foreign.version} ({foreign.operation}) was not written by a refresh"
        return replace(found, finding=Finding.FOREIGN_COMMIT, detail=detail)
    if mark.fingerprint != entry.fingerprint:
        detail = f"sql/gold/{entry.name}.sql changed after version {publication.version}"
        return replace(found, finding=Finding.DEFINITION_CHANGED, detail=detail)
    contents = _readable_longest(context, mark.vector)
    expected = pinned_result(context, entry, vector=contents, clock=mark.clock)
    actual = reader.read_by_delta(context.spark, location, publication.version)
    if not same_columns(expected, actual):
        wanted, has = expected.schema.simpleString(), actual.schema.simpleString()
        detail = f"the SQL gives {wanted}, the table has {has}"
        return replace(found, finding=Finding.COLUMNS_DIFFER, detail=detail)
    if buckets is not None:
        key = entry.maintenance.key if entry.maintenance is not None else ()
        sample = sample_of(expected, actual, key=key, numbers=buckets(found.rows))
        found = replace(found, sample=sample, detail=_sampled(sample))
        if not sample.differing:
            return found
        expected = in_buckets(expected, sample.by, sample.differing)
        actual = in_buckets(actual, sample.by, sample.differing)
    tolerance, hidden = context.settings.gold.float_tolerance, personal_columns(entry)
    return _compared(found, expected, actual, tolerance=tolerance, hidden=hidden)


def _readable_longest(context: GoldContext, vector: VersionVector) -> VersionVector:
    """The newest versions of the inputs with the rows of a vector.

    A view whose inputs were only compacted keeps its vector, but a vacuum of theirs deletes the
    files that it names.
    """
    found = {}
    for table, version in vector:
        location = context.locations.of(table)
        newest = log.table_version(location)
        if newest is not None and newest.table_id == version.table_id:
            last = last_alike(location, at=version.version, upto=newest.version)
            version = replace(version, version=last)  # noqa: PLW2901
        found[table] = version
    return VersionVector(found)


def _compared(
    found: Verification,
    expected: DataFrame,
    actual: DataFrame,
    *,
    tolerance: float,
    hidden: Collection[str],
) -> Verification:
    """Compare row by row: exactly, then with the tolerance for floats."""
    difference = count_difference(expected, actual)
    if not difference:
        return found
    close = close_rows(expected, actual, tolerance=tolerance)
    if close is not None:
        detail = (
            f"{found.detail}, but for floats in {close.rows} rows, by {close.largest:.2g} of their "
            f"value at most; {tolerance:g} is tolerated"
        )
        return replace(
            found,
            finding=Finding.EQUAL_WITHIN_TOLERANCE,
            detail=detail,
            largest_difference=close.largest,
        )
    return replace(
        found,
        finding=Finding.ROWS_DIFFER,
        detail=f"{difference.missing} rows missing, {difference.unexpected} unexpected",
        missing=difference.missing,
        unexpected=difference.unexpected,
        examples=differing_rows(expected, actual, limit=_EXAMPLES, hidden=hidden),
    )


def _sampled(sample: Sample) -> str:
    compared = f"{len(sample.buckets)} of {sample.of} buckets, {sample.rows:,} rows"
    return f"the table equals its SQL in {compared}"


def _record(found: Verification) -> VerificationRecord:
    return VerificationRecord(
        view=found.view,
        version=found.version,
        finding=found.finding.value,
        detail=found.detail,
        vector=found.vector.as_dict(),
        rows=found.rows if found.sample is None else found.sample.rows,
        missing=found.missing,
        unexpected=found.unexpected,
        largest_difference=found.largest_difference,
        sample=None if found.sample is None else found.sample.as_dict(),
        seconds=found.seconds,
    )
