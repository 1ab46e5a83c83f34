"""Compares a staged result with the published table: rows to delete and to insert."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.compute.difference import (
    count_difference,
    differing_rows,
    has_incomparable,
    same_columns,
)
from spark_jobs.gold.compute.pinned import query_failures
from spark_jobs.gold.refresh.staging import (
    last_step_of,
    staged_result,
    staged_rows,
    staged_rows_changed,
)
from spark_jobs.graph.last_step import Overwrite
from spark_jobs.graph.personal import personal_columns
from spark_jobs.planning.work import WorkItem
from spark_jobs.storage import log, reader

_EXAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class ChangeReport:
    """The effect that publishing would have on the table's rows.

    Attributes:
        deleted: rows that would be deleted; None if rows cannot be compared. For a range, all
            copies of a row whose number of copies differs.
        inserted: rows that would be inserted, counted likewise.
        same_versions: whether both sides come from the same input versions. Then every differing
            row was wrong before.
        examples: some rows, each as {column: text}; the key "" has the signed count. They are
            stored and logged, so personal values are masked.
        detail: why rows were not counted.
    """

    deleted: int | None
    inserted: int | None
    same_versions: bool
    examples: tuple[dict[str, str | None], ...] = ()
    detail: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, but ``leaving`` and ``entering`` for the row counts."""
        return {
            "leaving": self.deleted,
            "entering": self.inserted,
            "same_versions": self.same_versions,
            "examples": [dict(one) for one in self.examples],
            "detail": self.detail,
        }


def change_report(context: GoldContext, work: WorkItem) -> ChangeReport:
    """Compare what an attempt staged with the published table, as multisets."""
    location = context.published_at(work.view)
    hidden = personal_columns(context.entry(work.view))
    if log.table_version(location) is None:
        rows = staged_result(context, work).rows
        return ChangeReport(
            deleted=0, inserted=rows, same_versions=False, detail="nothing is published yet"
        )
    latest = latest_publication(location)
    vector = work.vector
    same = latest is not None and latest.watermark.vector == vector
    step = last_step_of(context, work)
    if not isinstance(step, Overwrite):
        change = staged_rows_changed(context, staged_result(context, work), step)
        sides = change.deleted, change.inserted
        return ChangeReport(
            deleted=change.deletes,
            inserted=change.inserts,
            same_versions=same,
            examples=differing_rows(*(one.frame for one in sides), limit=_EXAMPLES, hidden=hidden)
            if change.any
            else (),
        )
    try:
        with query_failures(work.view):
            return _against_all(context, work, location, same=same, hidden=hidden)
    except QueryFailedError:
        # A damaged table can be replaced nevertheless.
        return ChangeReport(
            deleted=None, inserted=None, same_versions=same, detail="its rows cannot be read"
        )


def _against_all(
    context: GoldContext,
    work: WorkItem,
    location: str,
    *,
    same: bool,
    hidden: Collection[str],
) -> ChangeReport:
    """Compare all rows that are staged with all that are published."""
    published, staged = reader.read(context.spark, location), staged_rows(context, work)
    if not same_columns(published, staged):
        return ChangeReport(
            deleted=None, inserted=None, same_versions=same, detail="the columns differ"
        )
    if has_incomparable(staged):
        return ChangeReport(
            deleted=None, inserted=None, same_versions=same, detail="values cannot be compared"
        )
    found = count_difference(published, staged)
    examples: tuple[dict[str, str | None], ...] = ()
    if found:
        examples = differing_rows(published, staged, limit=_EXAMPLES, hidden=hidden)
    return ChangeReport(
        deleted=found.missing, inserted=found.unexpected, same_versions=same, examples=examples
    )
