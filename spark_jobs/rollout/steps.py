"""Carries out the steps of an apply; all are idempotent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from spark_jobs.bronze.seed_table import load_seed
from spark_jobs.definitions.vocabulary import RefreshPolicy, SinkSystem
from spark_jobs.deploy.change import Kind
from spark_jobs.deploy.errors import StepFailedError
from spark_jobs.deploy.steps import Step, StepKind
from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.graph.manifest import GoldEntry, Manifest, SourceEntry
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.rollout.apply import Note
from spark_jobs.rollout.capture import (
    add_topic,
    capture_tables,
    grant_rights,
    read_rows,
    topic_records,
)
from spark_jobs.settings import Settings
from spark_jobs.state.deployments import DONE, Deployment
from spark_jobs.state.errors import LeaseTakenError, TableLockedError
from spark_jobs.state.progress import SINK_PREFIX, StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.errors import LogUnreadableError, TableMissingError
from spark_jobs.storage.in_force import put_manifest
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import size

LOOK_SECONDS = 0.5
STREAM_SECONDS = 300.0
ROWS_SECONDS = 900.0
BUILD_SECONDS = 900.0
# Tries of a build, in case another refresh of the view is running.
_TRIES = 5
# Reasons to skip a build that another tick may not have.
_SOON = frozenset({ReasonCode.REPLAY_PUBLISHES, ReasonCode.INPUT_BEHIND})


@dataclass
class Carrier:
    """Carries out the steps of one apply.

    Attributes:
        manifest: the project's manifest.
        refresher: computes views; created on first use.
    """

    settings: Settings
    store: ControlStore
    manifest: Manifest
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    refresher: Refresher | None = field(default=None)
    _captures: bool = field(default=False, init=False)

    def carry(self, step: Step, deployment: Deployment, note: Note) -> str | None:
        """Carry out a step; returns a message for the user, or None.

        Raises:
            StepFailedError: the step failed or timed out.
            LakehouseError: something that the step needs is missing or refuses.
        """
        match step.kind:
            case StepKind.TOPIC:
                add_topic(self.settings, self.manifest, step.subject)
            case StepKind.CONNECTOR | StepKind.DISCONNECT:
                self._captures = True
                return capture_tables(self.settings, self.manifest)
            case StepKind.MANIFEST:
                self._put_in_force(deployment)
            case StepKind.STREAM:
                return self._stream(step, deployment, note)
            case StepKind.STOP:
                return self._stopped(step, note)
            case StepKind.SNAPSHOT:
                source = self.manifest.sources[step.subject]
                read_rows(
                    self.settings,
                    source,
                    request=deployment.deployment_id,
                    taken=lambda: self._done_elsewhere(step, deployment),
                    wait=lambda lacks: self._until(step, lacks, note, seconds=ROWS_SECONDS),
                )
            case StepKind.TAKE_UP:
                return self._taken_up(step, note)
            case StepKind.SEED:
                return load_seed(self.settings, self.manifest.sources[step.subject]).message
            case StepKind.PROMOTE | StepKind.BUILD:
                # This apply may take over a killed promotion: compute what that would have
                # published.
                return self._build(step, deployment, note)
            case _:
                assert_never(step.kind)
        return None

    def _done_elsewhere(self, step: Step, deployment: Deployment) -> bool:
        """Whether a command of another process recorded that a step is done."""
        found = self.store.deployment(deployment.deployment_id)
        return found is not None and found.steps.get(str(step)) == DONE

    def close(self) -> None:
        """Close what was opened for computing."""
        if self.refresher is not None:
            self.refresher.context.close()

    def _put_in_force(self, deployment: Deployment) -> None:
        changes = deployment.plan.get("changes", ())
        changed = {one["name"] for one in changes if one["kind"] == Kind.SINK}
        sinks = (one for one in self.manifest.sinks.values() if one.name in changed)
        if any(one.system is SinkSystem.KAFKA for one in sinks):
            # They write to topics of their own.
            grant_rights(self.settings, self.manifest)
        self.store.put_in_force(deployment.deployment_id)
        found = self.manifest.model_copy(update={"deployment": deployment.deployment_id})
        put_manifest(self.settings, found)
        if self._captures:
            # A start of the stack may have told the connector the tables of before since.
            capture_tables(self.settings, self.manifest)

    def _streams_run(self) -> bool:
        now = utc_now()
        return any(
            row.alive(now=now)
            for row in self.store.progress()
            if not row.query.startswith(SINK_PREFIX)
        )

    def _row(self, query: str) -> StreamProgress | None:
        return next((one for one in self.store.progress() if one.query == query), None)

    def _stream(self, step: Step, deployment: Deployment, note: Note) -> str | None:
        if not self._streams_run():
            return "the streams do not run; they take it up when they start"

        def lacks() -> str | None:
            row = self._row(step.subject)
            if row is None or (row.deployment or 0) < deployment.number:
                return "the streams have not taken it up yet"
            if row.state is StreamState.REFUSED:
                raise StepFailedError(str(step), row.error or "the stream refuses its source")
            return None if row.state is StreamState.RUNNING else f"is {row.state.value}"

        self._until(step, lacks, note, seconds=STREAM_SECONDS)
        return None

    def _stopped(self, step: Step, note: Note) -> str | None:
        if not self._streams_run():
            return None

        def lacks() -> str | None:
            return "still runs" if self._row(step.subject) is not None else None

        self._until(step, lacks, note, seconds=STREAM_SECONDS)
        return None

    def _taken_up(self, step: Step, note: Note) -> str | None:
        if not self._streams_run():
            return "the streams do not run; they read the rows when they start"
        silver = self.manifest.silver[step.subject.partition(".")[2]]
        source = self.manifest.sources[silver.source]
        written = topic_records(self.settings, source.topic or "")

        def lacks() -> str | None:
            # Batches of an earlier epoch wrote a table that was dropped since.
            epoch = self.store.epoch(step.subject)
            done = self.store.silver_totals(silver.name, epoch=epoch).records
            landed = self._landed(source, written)
            wanted = written if landed is None else min(landed, written)
            return None if done >= wanted else f"{done:,} of {wanted:,} records"

        self._until(step, lacks, note, seconds=ROWS_SECONDS)
        return None

    def _landed(self, source: SourceEntry, written: int) -> int | None:
        """The records of bronze, once it has read a topic up to its end; None before, or unknown.

        They may be fewer than were written: Kafka may have deleted some before bronze began.
        """
        row = self._row(str(source.table_name))
        ends = ((row and row.end_offsets) or {}).get(source.topic or "", {})
        if not ends or sum(map(int, ends.values())) < written:
            return None
        try:
            return size(Lake(self.settings.lake).location(source.table_name)).rows
        except (TableMissingError, LogUnreadableError):
            return None

    def _build(self, step: Step, deployment: Deployment, note: Note) -> str | None:
        entry = self.manifest.gold[step.subject.partition(".")[2]]
        pinned = self.store.pinned_views().get(entry.name)
        if pinned is not None:
            return (
                f"not computed, because a rollback pinned it to version {pinned.version}; the "
                f"first refresh after `tidemark release {entry.name}` computes it"
            )
        if entry.refresh is RefreshPolicy.CONTINUOUS and self._streams_run():
            self._until(step, lambda: self._unpublished(entry), note, seconds=BUILD_SECONDS)
            return None
        if self.refresher is None:
            self.refresher = Refresher(self.settings, self.manifest, self.store)
        allowed = f"deployment {deployment.deployment_id} was confirmed"
        obstacle = "other refreshes of it published again and again"
        for attempt in range(_TRIES):
            tick = f"{deployment.deployment_id}/{attempt}" if attempt else deployment.deployment_id
            try:
                plan = self.refresher.plan(entry.name, tick=tick, let_pass=allowed)
                note(plan.line)
                self.refresher.carry_out(plan, on_step=note)
            except (BaseMovedError, LeaseTakenError, TableLockedError):
                # A scheduled or continuous refresh was first.
                if self._unpublished(entry) is None:
                    return None
                self.sleep(LOOK_SECONDS * 2**attempt)
                continue
            if plan.skips and plan.reason.code in _SOON:
                obstacle = plan.reason.text
                self.sleep(LOOK_SECONDS * 2**attempt)
                continue
            # The published rows must be those of this definition.
            if self._behind(entry) is None:
                return None
            if plan.skips:
                return plan.reason.text
            # A refresh of the definition before was first.
            self.sleep(LOOK_SECONDS * 2**attempt)
        raise StepFailedError(str(step), obstacle)

    def _unpublished(self, entry: GoldEntry) -> str | None:
        row = self._row(str(entry.table_name))
        if row is not None and row.state in {StreamState.BLOCKED, StreamState.FAILED} and row.error:
            raise StepFailedError(f"build {entry.table_name}", row.error)
        return self._behind(entry)

    def _behind(self, entry: GoldEntry) -> str | None:
        found = latest_publication(Lake(self.settings.lake).location(entry.table_name))
        if found is None:
            return "the streams have not published it yet"
        same = found.watermark.fingerprint == entry.fingerprint
        return None if same else "the streams have not recomputed it yet"

    def _until(
        self, step: Step, lacks: Callable[[], str | None], note: Note, *, seconds: float
    ) -> None:
        """Poll until nothing is lacking, as long as there is progress: a table may be large.

        Raises:
            StepFailedError: nothing new was lacking for ``seconds``.
        """
        deadline, seen = self.clock() + seconds, set[str]()
        while (lacking := lacks()) is not None:
            note(lacking)
            if lacking not in seen:
                seen.add(lacking)
                deadline = self.clock() + seconds
            if self.clock() > deadline:
                raise StepFailedError(str(step), f"{lacking} after {seconds:.0f} s")
            self.sleep(LOOK_SECONDS)
