"""Compares a sink with its table at the delivered version, row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from spark_jobs.names import TableVersion, passed_keys
from spark_jobs.sinks.changes import Change, difference
from spark_jobs.sinks.delivery import OTHER_COLUMNS, OTHER_FORM, Delivery
from spark_jobs.sinks.errors import (
    SinkColumnsMissingError,
    SinkGapError,
    SinkMovedError,
    SinkNotBuiltError,
)
from spark_jobs.sinks.target import Watermark
from spark_jobs.storage import log
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.history import readable

EXAMPLES = 20


@dataclass(frozen=True)
class SinkVerification:
    """The result of a comparison.

    Attributes:
        rows: rows of the sink.
        missing: rows that only the table has.
        unexpected: keys that only the sink has.
        different: common keys with different rows.
        examples: some of them; ``before`` is the sink's row, ``after`` the table's.
    """

    sink: str
    watermark: Watermark
    rows: int
    missing: int
    unexpected: int
    different: int
    examples: tuple[Change, ...]

    @property
    def passed(self) -> bool:
        return not (self.missing or self.unexpected or self.different)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and the result under the names of ``passed_keys``."""
        return {**asdict(self), **passed_keys(passed=self.passed)}


def verify_sink(delivery: Delivery, *, wait_seconds: float = 60) -> SinkVerification:
    """Compare a sink with its table; deliveries are locked out meanwhile.

    Raises:
        SinkNotBuiltError: the sink was never built.
        SinkGapError: the delivered version is no longer readable.
        SinkMovedError: another machine delivered meanwhile.
    """
    name = delivery.sink.name
    with delivery.held(wait_seconds=wait_seconds):
        newest = log.table_version(delivery.location)
        if newest is None:
            raise TableMissingError(delivery.location)
        mark = delivery.target(newest).watermark()
        if mark is None or not mark.whole:
            raise SinkNotBuiltError(name)
        if mark.table_id != newest.table_id or not readable(delivery.location, mark.version):
            reason = f"version {mark.version}, which it holds, is not readable any more"
            raise SinkGapError(name, reason)
        if not delivery.fits(mark):
            raise SinkGapError(name, OTHER_FORM)
        try:
            target = delivery.target(TableVersion(mark.table_id, mark.version))
        except SinkColumnsMissingError as error:
            raise SinkGapError(name, OTHER_COLUMNS) from error
        held = dict(target.rows())
        counts: Counter[str] = Counter()
        examples: list[Change] = []
        for one in difference(name, delivery.rows_at(mark.version), held):
            counts[_kind(one)] += 1
            if len(examples) < EXAMPLES:
                examples.append(one)
        if target.watermark() != mark:
            raise SinkMovedError(name)
    return SinkVerification(
        sink=name,
        watermark=mark,
        rows=len(held),
        missing=counts["missing"],
        unexpected=counts["unexpected"],
        different=counts["different"],
        examples=tuple(examples),
    )


def _kind(change: Change) -> str:
    if change.before is None:
        return "missing"
    return "unexpected" if change.after is None else "different"
