"""A request to reprocess quarantined records, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_jobs.names import Disposition
from spark_jobs.silver.store.releases import Place, ReleaseAction


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
