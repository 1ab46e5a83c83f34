"""A request to reprocess quarantined records, the records that it is about, and its outcome.

The records are found without Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow.compute as pc

from spark_jobs.names import Disposition
from spark_jobs.silver.errors import NotInQuarantineError
from spark_jobs.silver.store.releases import PLACE, Place, ReleaseAction, releases
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.reader import read_columns


@dataclass(frozen=True, kw_only=True)
class ReprocessRequest:
    """The records to reprocess, and how.

    Attributes:
        places: only these records; None: all.
        reason: only records with this reason.
        values: fixed values; if given, only these records are processed.
        discard: ignore the records for good.
        let_pass: discard even if there are many records.
        by: the person who asks.
        words: the person's reason.
    """

    by: str
    words: str | None = None
    reason: str | None = None
    places: frozenset[Place] | None = None
    values: Mapping[Place, bytes] = field(default_factory=dict)
    discard: bool = False
    let_pass: bool = False

    @property
    def named(self) -> frozenset[Place] | None:
        """The records that are named one by one, or None."""
        return frozenset(self.values) if self.values else self.places

    @property
    def action(self) -> ReleaseAction:
        """The action for each of them."""
        if self.discard:
            return ReleaseAction.DISCARDED
        return ReleaseAction.FIXED if self.values else ReleaseAction.RETRIED


@dataclass(frozen=True)
class Reprocessed:
    """The outcome of a record, with a reason if it is rejected again."""

    partition: int
    offset: int
    disposition: Disposition
    reason: str | None
    detail: str | None


def requested(tables: SilverTables, asked: ReprocessRequest) -> set[Place]:
    """The requested records that are in quarantine.

    Raises:
        NotInQuarantineError: a named record was never rejected.
    """
    found, named = quarantined(tables), asked.named
    if named is not None:
        never = named - found - _decided(tables)
        if never:
            raise NotInQuarantineError(tables.entry.name, sorted(never))
        found &= named
    return found if asked.reason is None else found & quarantined(tables, reason=asked.reason)


def unfinished(tables: SilverTables) -> set[Place]:
    """Decided records that are still in quarantine: their command was killed."""
    return _decided(tables) & quarantined(tables)


def quarantined(tables: SilverTables, *, reason: str | None = None) -> set[Place]:
    """The records in quarantine, by default with any reason."""
    chosen = None if reason is None else pc.field("reason") == reason
    try:
        rows = read_columns(tables.quarantine, PLACE, where=chosen).to_pylist()
    except TableMissingError:
        return set()
    return {(row["partition"], row["offset"]) for row in rows}


def _decided(tables: SilverTables) -> set[Place]:
    return {one.place for one in releases(tables.releases)}
