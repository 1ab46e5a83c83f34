"""Publish: one commit on the published table that carries rows, watermark and transaction id."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.errors import BaseMovedError
from spark_jobs.gold.guard import sole_writer
from spark_jobs.gold.net import net_change
from spark_jobs.gold.publications import intruder, latest_publication, publication_of
from spark_jobs.gold.staging import (
    is_change,
    staged_change_rows,
    staged_result,
    staged_rows,
)
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.keeper import LeaseKeeper
from spark_jobs.storage import tables
from spark_jobs.storage.tables import CHANGE_FEED, Txn


@dataclass(frozen=True)
class Published:
    """Where an attempt ended.

    Attributes:
        version: the published table's version; None where a newer attempt was there first.
        changed: whether the publication changed any row.
    """

    view: str
    attempt_id: str
    version: int | None
    changed: bool

    @property
    def superseded(self) -> bool:
        return self.version is None


def publish(context: GoldContext, attempt: RefreshAttempt) -> Published:
    """Commit the staged result, unless this attempt or a newer one did so before.

    The table's own log is asked, before and after: it alone knows what was committed.

    Raises:
        BaseMovedError: an incremental refresh is not based on the newest publication.
        LeaseTakenError: another writer keeps the table.
        TableLockedError: another process of this machine keeps the table.
        LeaseLostError: this writer held the lease no longer when it was to commit.
    """
    location = context.published_at(attempt.view)
    with sole_writer(context, attempt.view, attempt_id=attempt.attempt_id) as keeper:
        failpoint("gold.publish.locked")
        found = publication_of(location, attempt.attempt_id)
        if found is None and not _overtaken(location, attempt):
            _commit(context, attempt, keeper)
            failpoint("gold.publish.committed")
            # Delta skips a transaction that it has seen without a word, so the log is read back.
            found = publication_of(location, attempt.attempt_id)
    if found is None:
        return Published(attempt.view, attempt.attempt_id, version=None, changed=False)
    return Published(attempt.view, attempt.attempt_id, found.version, found.watermark.changed)


def _overtaken(location: str, attempt: RefreshAttempt) -> bool:
    """Whether the published content already comes from later versions of an input."""
    latest = latest_publication(location)
    if latest is None:
        return False
    watermark = latest.watermark
    if (watermark.epoch, watermark.sequence) > (attempt.epoch, attempt.sequence or 0):
        return True
    if attempt.reason_code == ReasonCode.INPUT_REWOUND:
        return False
    ours = VersionVector.from_dict(attempt.vector or {})
    return watermark.epoch == attempt.epoch and any(
        (published := watermark.vector.get(table)) is not None
        and published.table_id == version.table_id
        and published.version > version.version
        for table, version in ours
    )


def _commit(context: GoldContext, attempt: RefreshAttempt, keeper: LeaseKeeper) -> None:
    if is_change(attempt):
        _commit_change(context, attempt, keeper)
        return
    location = context.published_at(attempt.view)
    staged = staged_rows(context, attempt)
    with net_change(context, attempt) as net:
        watermark = _watermark(attempt, changed=net is None or bool(net.rows))
        txn = Txn(watermark.app_id, watermark.sequence)
        metadata = watermark.as_metadata()
        keeper.check()
        failpoint("gold.publish.before_commit")
        if net is None:
            # The same properties again where the table exists: an overwrite keeps them.
            tables.overwrite(staged, location, txn=txn, metadata=metadata, properties=CHANGE_FEED)
        elif not net.rows:
            # A commit without files: the watermark moves, readers of the change feed see nothing.
            tables.append(staged.limit(0), location, txn=txn, metadata=metadata)
        else:
            tables.merge_rows(
                context.spark,
                location,
                leaving=net.leaving,
                entering=net.entering,
                key=(),
                txn=txn,
                metadata=metadata,
            )


def _commit_change(context: GoldContext, attempt: RefreshAttempt, keeper: LeaseKeeper) -> None:
    """Apply the staged change to the publication that it was computed from.

    Raises:
        BaseMovedError: that is not the newest publication any more.
    """
    location = context.published_at(attempt.view)
    staged = staged_result(context, attempt)
    latest = latest_publication(location)
    if latest is None or latest.version != staged.base:
        raise BaseMovedError(attempt.view, f"it was staged for version {staged.base}")
    if (stranger := intruder(location, latest)) is not None:
        raise BaseMovedError(attempt.view, f"somebody else wrote version {stranger.version}")
    watermark = replace(
        _watermark(attempt, changed=bool(staged.leaving or staged.entering)),
        states=staged.states,
    )
    txn = Txn(watermark.app_id, watermark.sequence)
    metadata = watermark.as_metadata()
    leaving, entering = staged_change_rows(context, attempt)
    entry = context.entry(attempt.view)
    key = entry.maintenance.key if entry.maintenance is not None else ()
    keeper.check()
    failpoint("gold.publish.before_commit")
    if staged.leaving:
        tables.merge_rows(
            context.spark,
            location,
            leaving=leaving,
            entering=entering,
            key=key,
            txn=txn,
            metadata=metadata,
        )
    else:
        tables.append(entering, location, txn=txn, metadata=metadata)


def _watermark(attempt: RefreshAttempt, *, changed: bool) -> Watermark:
    return Watermark(
        view=attempt.view,
        sequence=attempt.sequence or 0,
        epoch=attempt.epoch,
        fingerprint=attempt.fingerprint or "",
        rule=attempt.decision or "full",
        vector=VersionVector.from_dict(attempt.vector or {}),
        tick=attempt.tick,
        attempt=attempt.attempt_id,
        clock=attempt.started_at,
        changed=changed,
        verdict=_brief(attempt),
    )


def _brief(attempt: RefreshAttempt) -> dict[str, object]:
    """The verdict without its rows of detail: a commit is no place for reports."""
    verdict = attempt.verdict or {}
    return {key: value for key, value in verdict.items() if isinstance(value, str | int | bool)}
