"""Publish: one commit on the published table with rows, watermark and transaction id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from spark_jobs.gold.base.commit_times import times_of
from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.base.errors import AttemptStateError, BaseMovedError
from spark_jobs.gold.base.publications import (
    intruder,
    latest_publication,
    publication_of,
)
from spark_jobs.gold.compute.increment import check_definition
from spark_jobs.gold.refresh.lease import sole_writer
from spark_jobs.gold.refresh.net_change import net_change
from spark_jobs.gold.refresh.staging import (
    last_step_of,
    staged_content,
    staged_result,
    staged_rows_changed,
)
from spark_jobs.graph.last_step import Overwrite
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.decision import ReasonCode, decision_word, rule_of
from spark_jobs.planning.watermark import Watermark
from spark_jobs.planning.work import WorkItem
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.keeper import LeaseKeeper
from spark_jobs.storage import log, writer
from spark_jobs.storage.compaction import join_small_files
from spark_jobs.storage.delta import CHANGE_FEED, SHORT_LOG, Txn
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.layout import Layout, set_clustering
from spark_jobs.storage.rows import RowChange

# Tries of a commit when others commit to the table at the same time.
_TRIES = 3
_GOES_BACK = frozenset({ReasonCode.INPUT_REWOUND, ReasonCode.ROLLED_BACK, ReasonCode.PROMOTED})
_PROPERTIES = {**CHANGE_FEED, **SHORT_LOG}


@dataclass(frozen=True)
class Published:
    """The result of publishing an attempt.

    Attributes:
        version: the published table's version; None if a newer attempt was published first.
        changed: whether the publication changed any row.
    """

    view: str
    attempt_id: str
    version: int | None
    changed: bool

    @property
    def superseded(self) -> bool:
        return self.version is None


def publish(context: GoldContext, work: WorkItem) -> Published:
    """Commit the staged result, unless this attempt or a newer one is already published.

    The table's own log is read before and after: only it knows what was committed.

    Raises:
        BaseMovedError: an incremental refresh is not based on the newest publication, or another
            definition was applied after the plan.
        AttemptStateError: the table was dropped after the plan.
        LeaseTakenError: another writer holds the table's lease.
        TableLockedError: another process of this machine holds the table's lock.
        LeaseLostError: the lease expired before the commit.
    """
    location = context.published_at(work.view)
    with sole_writer(context, work.view, attempt_id=work.attempt_id) as keeper:
        failpoint("gold.publish.locked")
        found = publication_of(location, work.attempt_id)
        if found is None and not _overtaken(context, work):
            check_definition(context, work)
            _commit_again(context, work, keeper)
            failpoint("gold.publish.committed")
            # Delta skips a transaction that it has seen silently, so the log is read back.
            found = publication_of(location, work.attempt_id)
            if found is not None:
                layout = Layout.of(context.entry(work.view))
                set_clustering(location, layout, lambda: context.spark)
            if found is not None and found.watermark.changed:
                maintenance = context.settings.maintenance
                join_small_files(location, maintenance, spark=lambda: context.spark)
    if found is None:
        return Published(work.view, work.attempt_id, version=None, changed=False)
    return Published(work.view, work.attempt_id, found.version, found.watermark.changed)


def _overtaken(context: GoldContext, work: WorkItem) -> bool:
    """Whether the published content comes from later input versions."""
    latest = latest_publication(context.published_at(work.view))
    if latest is None:
        _check_not_dropped(context, work)
        return False
    watermark = latest.watermark
    if watermark.place > work.place:
        return True
    # These decisions go back on purpose; the last two have epochs of their own.
    if work.decision.reason.code in _GOES_BACK:
        return False
    ours = work.vector
    return watermark.epoch == work.epoch and any(
        (published := watermark.vector.get(table)) is not None
        and published.table_id == version.table_id
        and published.version > version.version
        and not _lost(context, table, published)
        for table, version in ours
    )


def _check_not_dropped(context: GoldContext, work: WorkItem) -> None:
    """A refresh that began before a drop must not bring back a table that nobody declares."""
    if context.store.epoch(gold_table(work.view)) > work.epoch:
        status = "of a table that was dropped since"
        raise AttemptStateError(work.attempt_id, status=status, step="publish")


def _lost(context: GoldContext, table: TableName, published: TableVersion) -> bool:
    """Whether a table no longer has a version, because an older state of it was put back."""
    current = log.table_version(context.locations.of(table))
    return current is not None and current.version < published.version


def _commit_again(context: GoldContext, work: WorkItem, keeper: LeaseKeeper) -> None:
    """Commit, and retry if another commit, such as a compaction, came in between.

    In an object store a retry of the attempt may run beside its first try, and commit the same.
    """
    location = context.published_at(work.view)
    for left in reversed(range(_TRIES)):
        try:
            _commit(context, work, keeper)
        except (BaseMovedError, TableMovedError) as moved:
            if publication_of(location, work.attempt_id) is not None:
                return
            if not left or isinstance(moved, BaseMovedError):
                raise
        else:
            return


def _commit(context: GoldContext, work: WorkItem, keeper: LeaseKeeper) -> None:
    location = context.published_at(work.view)
    seen = log.table_version(location)
    with _prepared(context, work) as (change, states):
        changed = change is None or change.any
        # What a rewrite finds in the table is gone, also what another writer has just committed.
        follows = None if change is None else seen
        watermark = _watermark(context, work, follows, changed=changed, states=states)
        txn = Txn(watermark.app_id, watermark.sequence)
        metadata = watermark.as_metadata()
        keeper.check()
        failpoint("gold.publish.before_commit")
        if change is None:
            # The same properties again where the table exists: an overwrite keeps them.
            writer.replace(
                staged_content(context, work),
                location,
                txn=txn,
                metadata=metadata,
                properties=_PROPERTIES,
                partition_by=context.entry(work.view).partition_by,
            )
        else:
            writer.change(change, location, seen=seen, txn=txn, metadata=metadata)


@contextmanager
def _prepared(
    context: GoldContext, work: WorkItem
) -> Iterator[tuple[RowChange | None, Mapping[str, TableVersion]]]:
    """The rows to commit (None: rewrite the table) and the aggregate state that belongs to them.

    Raises:
        BaseMovedError: the staged change was computed for another publication than the newest.
    """
    step = last_step_of(context, work)
    if isinstance(step, Overwrite):
        # A full result may turn out to differ in a few rows only.
        with net_change(context, work) as change:
            yield change, {}
        return
    location = context.published_at(work.view)
    staged = staged_result(context, work)
    latest = latest_publication(location)
    if latest is None or latest.version != staged.base:
        raise BaseMovedError(work.view, f"it was staged for version {staged.base}")
    if (stranger := intruder(location, latest)) is not None:
        raise BaseMovedError(work.view, f"somebody else wrote version {stranger.version}")
    yield staged_rows_changed(context, staged, step), staged.states


def _watermark(
    context: GoldContext,
    work: WorkItem,
    follows: TableVersion | None,
    *,
    changed: bool,
    states: Mapping[str, TableVersion],
) -> Watermark:
    entry = context.entry(work.view)
    return Watermark(
        view=work.view,
        sequence=work.sequence,
        epoch=work.epoch,
        fingerprint=work.fingerprint,
        rule=rule_of(work.decision) or decision_word(work.decision),
        vector=work.vector,
        tick=work.tick,
        attempt=work.attempt_id,
        clock=work.clock,
        changed=changed,
        verdict=_brief(work),
        states=states,
        parts=entry.parts if entry.fingerprint == work.fingerprint else None,
        announced=context.announces,
        committed=times_of(context, work),
        follows=None if follows is None else follows.version,
    )


def _brief(work: WorkItem) -> dict[str, object]:
    """The verdict without details, small enough for a commit's metadata."""
    verdict = work.verdict or {}
    return {key: value for key, value in verdict.items() if isinstance(value, str | int | bool)}
