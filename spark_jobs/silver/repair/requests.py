"""What a person asks of a quarantine, and what became of each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_jobs.names import Disposition
from spark_jobs.silver.store.releases import Place, ReleaseAction


@dataclass(frozen=True, kw_only=True)
class ReprocessRequest:
    """Which records a person wants out of quarantine, and how.

    Attributes:
        places: only these; None means all.
        reason: only records that were rejected for this reason.
        values: what stands for the values of these records; then only these are taken.
        discard: leave them aside for good.
        let_pass: discard them also where they are many.
        by: who asks.
        words: why, in the person's own words.
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
        """What becomes of each of them."""
        if self.discard:
            return ReleaseAction.DISCARDED
        return ReleaseAction.FIXED if self.values else ReleaseAction.RETRIED


@dataclass(frozen=True)
class Reprocessed:
    """What became of a record, or would; with a reason where it is rejected again."""

    partition: int
    offset: int
    disposition: Disposition
    reason: str | None
    detail: str | None
