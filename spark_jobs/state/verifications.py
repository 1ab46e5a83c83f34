"""Results of verifications."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, field
from datetime import datetime

from sqlalchemy import Connection, insert, select

from spark_jobs.state.tables import VERIFICATIONS
from spark_jobs.state.types import JsonObject, utc_now


@dataclass(frozen=True, kw_only=True)
class VerificationRecord:
    """The result of one verification.

    Attributes:
        version: version of the published table that was compared.
        finding: a ``Finding`` of ``gold.verify``.
        vector: versions of the inputs.
        rows: number of compared rows; None if the log has no counts.
        sample: the compared buckets with their counts; None if all rows were compared.
        largest_difference: largest relative difference of floats that was accepted.
    """

    view: str
    version: int
    finding: str
    detail: str
    vector: JsonObject
    rows: int | None
    missing: int = 0
    unexpected: int = 0
    largest_difference: float | None = None
    sample: JsonObject | None = None
    seconds: float = 0.0
    at: datetime = field(default_factory=utc_now)
    verification_id: str = field(default_factory=lambda: uuid.uuid4().hex)


def record_verification(connection: Connection, record: VerificationRecord) -> None:
    """Record the result of a verification."""
    connection.execute(insert(VERIFICATIONS).values(asdict(record)))


def verifications(
    connection: Connection, view: str | None = None, *, limit: int = 20
) -> list[VerificationRecord]:
    """Results of verifications, newest first."""
    query = select(VERIFICATIONS).order_by(VERIFICATIONS.c.at.desc())
    if view is not None:
        query = query.where(VERIFICATIONS.c.view == view)
    rows = connection.execute(query.limit(limit)).mappings()
    return [VerificationRecord(**row) for row in rows]
