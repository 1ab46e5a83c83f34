"""Whole refreshes in this process, while something else happens between two of their steps."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from rich.progress import Progress

from spark_jobs.cli.refresh import _refresh_one
from spark_jobs.deploy.steps import Step
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import (
    AttemptStateError,
    BaseMovedError,
    QueryFailedError,
    RecomputeStoppedError,
)
from spark_jobs.gold.base.freshness import Freshness, view_status
from spark_jobs.gold.base.publications import Publication
from spark_jobs.gold.recover.recompute import Recomputer
from spark_jobs.gold.recover.replay import Replayer
from spark_jobs.gold.recover.rollback import Rollbacker
from spark_jobs.gold.refresh import auditing, publishing, staging
from spark_jobs.gold.refresh.again import (
    audit_on_newest,
    check_followed,
    newest_attempt,
    publish_on_newest,
    stage_on_newest,
)
from spark_jobs.gold.refresh.ledger import past_refreshes
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.recompute import Recompute
from spark_jobs.planning.request import Why, replay_request
from spark_jobs.planning.work import WorkItem
from spark_jobs.rollout.steps import Carrier
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.deployments import Deployment
from spark_jobs.state.errors import LeaseTakenError
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.replays import ReplayRecord, ReplayStatus, ReplayView, ViewProgress
from spark_jobs.state.types import utc_now
from spark_jobs.storage import arrow_tables, log, writer
from spark_jobs.storage.errors import LogUnreadableError
from spark_jobs.storage.history import remove_table
from spark_jobs.storage.rows import Rows
from tests.unit.gold.test_refreshes_here import PLAIN, Project, table

OTHER = "SELECT a.k, a.x * 2 AS x FROM bronze.a AS a"
WHY = Why("a test wants it so", None)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    project.refresh()
    project.append("a", k=[2], x=[20])
    return project


@pytest.mark.parametrize("force", [False, True])
def test_another_definition_than_the_planned_one_is_not_computed(
    project: Project, force: bool
) -> None:
    with project.opened() as planning:
        attempt = planning.plan("v", tick="t", force=force).attempt_id
    project.define(OTHER)
    with project.opened() as later, pytest.raises(BaseMovedError, match="definition"):
        later.stage(attempt)
    project.define(PLAIN)
    project.refresh()
    assert project.rows() == [(1, 10), (2, 20)]


def test_a_result_of_another_definition_is_computed_again_and_published(project: Project) -> None:
    with project.opened() as earlier:
        attempt = earlier.plan("v", tick="t").attempt_id
        earlier.stage(attempt)
        earlier.audit(attempt)
    project.define(OTHER)
    with project.opened() as later:
        assert publish_on_newest(later, attempt).changed
        assert later.explain("v").reason.code is ReasonCode.NO_UPSTREAM_CHANGE
    assert project.rows() == [(1, 20), (2, 40)]


def test_what_fails_after_the_commit_does_not_hide_the_publication(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise LogUnreadableError("/lake", "the disk is away")

    with monkeypatch.context() as away:
        away.setattr(publishing, "set_clustering", fails)
        with pytest.raises(LogUnreadableError):
            project.refresh()
    project.refresh()
    with project.opened() as refresher:
        found = refresher.context.store.attempts("v", statuses=(AttemptStatus.PUBLISHED,))
        assert [one.published_version for one in found] == [1, 0]
        assert found[0].error is None


def test_an_error_of_spark_s_writer_has_a_condition(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command goes on with its other views."""

    def fails(*_: object, **__: object) -> None:
        raise PySparkException("[TASK_WRITE_FAILED] Task failed while writing rows to /lake.")

    with monkeypatch.context() as full:
        full.setattr(writer, "change", fails)
        with pytest.raises(QueryFailedError, match="TASK_WRITE_FAILED"):
            project.refresh()
    project.refresh()
    assert project.rows() == [(1, 10), (2, 20)]


@pytest.mark.parametrize("force", [False, True], ids=["change", "rewrite"])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_two_tries_of_an_attempt_publish_it_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, when: str, *, force: bool
) -> None:
    """In an object store a lock does not keep a retry from its first try, which still runs."""
    change, commit = writer.change, publishing._commit

    def slower(rows: Any, location: str, **options: Any) -> None:
        change(rows, location, **options)
        change(rows, location, **options)

    def later(*arguments: Any) -> None:
        commit(*arguments)
        commit(*arguments)

    with project.opened() as refresher:
        attempt = refresher.plan("v", tick="t", force=force).attempt_id
        refresher.stage(attempt)
        refresher.audit(attempt)
        with monkeypatch.context() as twice:
            if when == "before":
                twice.setattr(publishing, "_commit", later)
            else:
                twice.setattr(writer, "change", slower)
            published = refresher.publish(attempt)
        assert (published.version, published.changed) == (1, True)
        assert refresher.context.store.attempt(attempt).status is AttemptStatus.PUBLISHED
        assert refresher.explain("v").reason.code is ReasonCode.NO_UPSTREAM_CHANGE
    assert DeltaTable(project.published).version() == 1
    assert project.rows() == [(1, 10), (2, 20)]


def test_a_column_that_came_after_the_tick_is_read_in_the_next(project: Project) -> None:
    """The tick has pinned the input's version without it; the published content stays."""
    with project.opened() as refresher:
        refresher.run("v", tick="early")
    rows = table(k=[3], x=[30], y=[31])
    write_deltalake(project.data / "a", rows, mode="append", schema_mode="merge")
    project.define("SELECT a.k, a.x, a.y FROM bronze.a AS a")
    with project.opened() as refresher:
        waits = refresher.run("v", tick="early").plan
        assert (waits.word, waits.reason.code) == ("skip", ReasonCode.INPUT_BEHIND)
        assert waits.reason.text == "bronze.a@1 does not have the column y yet, a later version has"
        assert refresher.run("v", tick="late").status is AttemptStatus.PUBLISHED
    assert project.rows() == [(1, 10, None), (2, 20, None), (3, 30, 31)]


def test_rows_that_a_rewrite_replaced_are_corrected_already(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer appends them after the rewrite has looked at the table's version."""
    replace_rows, location = writer.replace, project.published

    def overtaken(rows: Rows, at: str, **options: Any) -> None:
        if at == location:
            write_deltalake(location, table(k=[9], x=[9]), mode="append")
        replace_rows(rows, at, **options)

    with monkeypatch.context() as crowded:
        crowded.setattr(writer, "replace", overtaken)
        project.define("SELECT a.k, a.x, a.x + 1 AS y FROM bronze.a AS a")
        project.refresh()
    assert project.rows() == [(1, 10, 11), (2, 20, 21)]
    assert project.refresh().plan.reason.code is ReasonCode.NO_UPSTREAM_CHANGE


def test_a_recomputation_that_a_refresh_overtakes_before_its_audit_is_built_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with project.opened() as refresher:
        recomputer, stage = Recomputer(refresher), refresher.stage
        asked = Recompute(code=ReasonCode.REPLAYED)
        first = recomputer.plan("v", tick="r1", asked=asked).attempt_id

        def overtaken(attempt: str) -> object:
            staged = stage(attempt)
            if attempt == first:
                project.refresh()
            return staged

        monkeypatch.setattr(refresher, "stage", overtaken)
        built = recomputer.build(first)
        assert built != first
        assert recomputer.publish(built).version == 2
    assert project.rows() == [(1, 10), (2, 20)]


@pytest.mark.parametrize("step", ["plan", "stage", "publish"])
def test_a_view_without_a_schedule_is_refreshed_after_a_recomputation(
    project: Project, step: str
) -> None:
    """Nothing would start another run for it: the view would stay stale without a word."""
    with project.opened() as refresher:
        store = refresher.context.store
        planned = refresher.plan("v", tick="t")
        if step == "publish":
            refresher.stage(planned.attempt_id)
            refresher.audit(planned.attempt_id)
        project.append("a", k=[3], x=[30])
        project.refresh()
        project.append("a", k=[4], x=[40])

        def run() -> object:
            if step == "plan":
                plan = refresher.plan("v", tick="later")
                check_followed(refresher.context, plan)
                return refresher.carry_out(plan)
            if step == "stage":
                # The versions of its tick are published.
                return stage_on_newest(refresher, planned.attempt_id)
            return publish_on_newest(refresher, planned.attempt_id)

        with (
            store.lease("recompute/gold.v", owner="replay r1", seconds=60),
            pytest.raises(LeaseTakenError, match="replay r1"),
        ):
            run()
        assert "refresh it after that" in store.attempts("v", limit=1)[0].reason
        run()
    assert project.rows()[:3] == [(1, 10), (2, 20), (3, 30)]
    assert ((4, 40) in project.rows()) is (step == "plan")


@pytest.mark.parametrize("step", ["build", "publish"])
def test_a_recomputation_that_is_overtaken_twice_is_built_a_third_time(
    project: Project, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with project.opened() as refresher:
        recomputer, audit = Recomputer(refresher), refresher.audit
        asked = Recompute(code=ReasonCode.BACKFILLED)
        attempt = recomputer.plan("v", tick="r1", asked=asked).attempt_id
        if step == "publish":
            recomputer.build(attempt)
            project.refresh()
        overtaken = 1 if step == "publish" else 2

        def is_overtaken(one: str) -> object:
            nonlocal overtaken
            if overtaken:
                overtaken -= 1
                # A refresh that was planned before the recomputation began.
                raise BaseMovedError("v", "a newer refresh of it was published")
            return audit(one)

        monkeypatch.setattr(refresher, "audit", is_overtaken)
        if step == "build":
            attempt = recomputer.build(attempt)
        assert recomputer.publish(attempt).version is not None
        assert not overtaken


@pytest.mark.parametrize("code", [ReasonCode.REPLAYED, ReasonCode.BACKFILLED])
def test_a_recomputation_that_a_refresh_overtakes_is_published_on_top_of_it(
    project: Project, code: ReasonCode
) -> None:
    with project.opened() as refresher:
        recomputer = Recomputer(refresher)
        first = recomputer.plan("v", tick="r1", asked=Recompute(code=code)).attempt_id
        built = recomputer.build(first)
        project.refresh()
        assert recomputer.publish(built).version == 2
        assert refresher.context.store.attempts("v", limit=1)[0].reason_code == code
    assert project.rows() == [(1, 10), (2, 20)]


def test_a_join_is_followed_although_the_files_before_a_compaction_are_gone(
    tmp_path: Path,
) -> None:
    query = "SELECT a.k, a.x, b.x AS y FROM bronze.a AS a JOIN bronze.b AS b ON a.k = b.k"
    project = Project(tmp_path, query, a=table(k=[1], x=[10]), b=table(k=[1], x=[5]))
    project.append("b", k=[2], x=[6])
    project.refresh()
    quiet = DeltaTable(project.data / "b")
    quiet.optimize.compact()
    quiet.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    project.append("a", k=[2], x=[20])
    assert project.refresh().plan.word == "incremental"
    assert project.rows() == [(1, 10, 5), (2, 20, 6)]


@pytest.mark.parametrize("more", [1, 2])
def test_an_input_that_grew_again_after_a_restore_is_read_whole(tmp_path: Path, more: int) -> None:
    project = Project(tmp_path, PLAIN, a=table(k=[1], x=[10]))
    shutil.copytree(project.data / "a", tmp_path / "backup")
    project.append("a", k=[2], x=[20])
    project.refresh()
    shutil.rmtree(project.data / "a")
    shutil.copytree(tmp_path / "backup", project.data / "a")
    for key in range(more):
        project.append("a", k=[key + 3], x=[30])
    with project.opened() as refresher:
        assert view_status(refresher.context, "v", now=utc_now()).freshness is Freshness.BEHIND
    assert project.refresh().plan.reason.code is ReasonCode.INPUT_REWOUND
    assert project.rows() == [(1, 10), (3, 30), (4, 30)][: more + 1]
    assert project.refresh().plan.reason.code is ReasonCode.NO_UPSTREAM_CHANGE


def test_a_refresh_of_another_definition_is_planned_again(project: Project) -> None:
    with project.opened() as planning:
        attempt = planning.plan("v", tick="t").attempt_id
    project.define(OTHER)
    with project.opened() as later:
        again = stage_on_newest(later, attempt)
        assert again is not None
        assert again != attempt
        later.audit(again)
        later.publish(again)
        assert later.context.store.attempt(attempt).status is AttemptStatus.SUPERSEDED
    assert project.rows() == [(1, 20), (2, 40)]


def test_nothing_is_left_of_a_refresh_that_another_overtook(project: Project) -> None:
    with project.opened() as refresher:
        attempt = refresher.plan("v", tick="t").attempt_id
        project.append("a", k=[3], x=[30])
        assert project.refresh().status is AttemptStatus.PUBLISHED
        assert stage_on_newest(refresher, attempt) is None


def test_a_recomputation_does_not_undo_a_later_rollback(project: Project) -> None:
    pinned = PinnedView(view="v", version=0, who="ann", reason=WHY.reason, replay_id="rollback-1")
    with project.opened() as refresher:
        recomputer = Recomputer(refresher)
        asked = Recompute(code=ReasonCode.REPLAYED)
        built = recomputer.build(recomputer.plan("v", tick="r1", asked=asked).attempt_id)
        project.refresh()
        store = refresher.context.store
        store.pin_view(replace(pinned, since=utc_now()))
        with pytest.raises(RecomputeStoppedError, match="ann"):
            recomputer.publish(built)
        replayer = Replayer(refresher)
        request = replay_request(refresher.context.manifest, ["v"])
        replayer.begin(replayer.plan(request), replay_id="r2", who="bob", why=WHY)
        store.pin_view(replace(pinned, since=utc_now()))
        with pytest.raises(RecomputeStoppedError, match="ann"):
            replayer.build("r2", "v")
    assert log.commits(project.published, limit=1)[0].version == 1


def test_a_rollback_that_fails_leaves_the_pins_of_others(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.refresh()
    with project.opened() as refresher:
        store, rollbacker = refresher.context.store, Rollbacker(refresher)

        def fails(*_: object) -> int:
            raise RecomputeStoppedError("v", "the disk is full")

        def is_overtaken(*_: object) -> int:
            store.pin_view(replace(store.pinned_views()["v"], replay_id="rollback-later"))
            return fails()

        def run(replay_id: str, publish: Callable[..., int]) -> str | None:
            monkeypatch.setattr(rollbacker, "_publish", publish)
            target = rollbacker.target("v", to=0)
            rollbacker.begin("v", target, replay_id=replay_id, who=replay_id, why=WHY)
            with suppress(RecomputeStoppedError):
                rollbacker.run(replay_id)
            pinned = store.pinned_views().get("v")
            return None if pinned is None else pinned.replay_id

        assert run("rollback-1", fails) is None
        assert run("rollback-2", lambda *_: 2) == "rollback-2"
        assert run("rollback-3", fails) == "rollback-2"
        assert run("rollback-4", is_overtaken) == "rollback-later"


def test_a_rollback_that_two_processes_run_keeps_its_pin(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.refresh()
    with project.opened() as one, project.opened() as other:
        first, second = Rollbacker(one), Rollbacker(other)
        first.begin("v", first.target("v", to=0), replay_id="rollback-1", who="ann", why=WHY)
        found: list[ReplayView] = []
        twin = Thread(target=lambda: found.append(second.run("rollback-1")), daemon=True)

        def fails(*_: object) -> int:
            raise RecomputeStoppedError("v", "its files are gone")

        def while_the_twin_runs(*_: object) -> int:
            twin.start()
            twin.join(2)
            return 2

        monkeypatch.setattr(second, "_publish", fails)
        monkeypatch.setattr(first, "_publish", while_the_twin_runs)
        done = first.run("rollback-1")
        twin.join(30)
        assert found == [done]
        assert one.context.store.replay("rollback-1").status is ReplayStatus.DONE
        assert one.context.store.pinned_views().keys() == {"v"}


def test_a_rollback_that_is_asked_for_again_has_the_new_reason(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.refresh()
    with project.opened() as refresher:
        store, rollbacker = refresher.context.store, Rollbacker(refresher)
        target, later = rollbacker.target("v", to=0), Why("it is wrong once more", "OPS-2")
        begin = partial(rollbacker.begin, "v", target)
        begin(replay_id="rollback-1", who="ann", why=WHY, approved_by="eve")
        for name in ("rollback-2", "rollback-3"):
            begun = begin(replay_id=name, who="bob", why=later)
            assert (begun.replay_id, begun.approved_by) == ("rollback-1", None)
        (_, again) = begun.decisions
        told = {"what": "asked again", "who": "bob", "reason": later.reason, "ticket": "OPS-2"}
        assert again.items() >= told.items()
        monkeypatch.setattr(rollbacker, "_publish", lambda *_: 2)
        rollbacker.run("rollback-1")
        pinned = store.pinned_views()["v"]
        assert (pinned.who, pinned.reason) == ("bob", later.reason)


def test_a_refresh_after_a_replay_that_another_overtakes_is_planned_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with project.opened() as refresher:
        store, replayer, stage = refresher.context.store, Replayer(refresher), refresher.stage
        request = replay_request(refresher.context.manifest, ["v"])
        replayer.begin(replayer.plan(request), replay_id="r1", who="bob", why=WHY)
        store.update_replay_view("r1", "v", status=ViewProgress.PUBLISHED)

        def overtaken(attempt: str) -> object:
            if project.ticks == 1:
                project.append("a", k=[3], x=[30])
                project.refresh()
            return stage(attempt)

        monkeypatch.setattr(refresher, "stage", overtaken)
        assert not replayer.follow("r1")["v"].startswith("failed")
    assert project.rows() == [(1, 10), (2, 20), (3, 30)]


def test_a_rollback_that_fails_after_its_commit_is_done(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.refresh()
    with project.opened() as refresher:
        context, rollbacker = refresher.context, Rollbacker(refresher)
        target = rollbacker.target("v", to=0)

        def fails_late(record: ReplayRecord, row: ReplayView, target: Publication) -> int:
            attempt = rollbacker._plan(record, row, target)
            epoch, location = target.watermark.epoch + 1, context.published_at("v")
            mark = replace(target.watermark, attempt=attempt, epoch=epoch).as_metadata()
            rows = DeltaTable(location, version=target.version).to_pyarrow_table()
            arrow_tables.replace(rows, location, metadata=mark)
            context.store.update_attempt(attempt, status=AttemptStatus.FAILED, error="away")
            raise LogUnreadableError("/lake", "the disk is away")

        monkeypatch.setattr(rollbacker, "_publish", fails_late)
        rollbacker.begin("v", target, replay_id="rollback-1", who="ann", why=WHY)
        assert rollbacker.run("rollback-1").published_version == 2
        assert context.store.replay("rollback-1").status is ReplayStatus.DONE
        assert context.store.pinned_views().keys() == {"v"}


def test_the_seconds_of_a_repeated_step_add_up_and_a_resumed_one_is_no_sample(
    project: Project,
) -> None:
    with project.opened() as refresher:
        store, attempt = refresher.context.store, refresher.plan("v", tick="t").attempt_id
        refresher.stage(attempt)
        before = store.attempt(attempt).actual
        assert before is not None
        store.update_attempt(attempt, actual={**before, "seconds": {"stage": 100.0}})
        refresher.stage(attempt)
        refresher.audit(attempt)
        refresher.publish(attempt)
        samples = past_refreshes(refresher.context, "v")
        assert [one.seconds > 100 for one in samples] == [True, False]
    project.append("a", k=[3], x=[30])
    with project.opened() as refresher:
        store, attempt = refresher.context.store, refresher.plan("v", tick="t2").attempt_id
        refresher.stage(attempt)
        # As a process that was killed right after the write leaves it.
        store.update_attempt(attempt, status=AttemptStatus.PLANNED, actual={})
        for step in (refresher.stage, refresher.stage, refresher.audit, refresher.publish):
            step(attempt)
        assert past_refreshes(refresher.context, "v") == samples


@pytest.mark.parametrize(("where", "step"), [(staging, "staged_once"), (auditing, "audit")])
def test_a_refresh_whose_files_a_newer_one_removes_is_planned_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, where: ModuleType, step: str
) -> None:
    with project.opened() as refresher:
        real: Callable[..., object] = getattr(where, step)

        def overtaken(context: GoldContext, work: WorkItem) -> object:
            monkeypatch.setattr(where, step, real)
            project.append("a", k=[3], x=[30])
            project.refresh()
            staging.discard(context, work)
            if step == "audit":
                return real(context, work)
            raise QueryFailedError("v", "[FAILED_READ_FILE.FILE_NOT_EXIST]")

        monkeypatch.setattr(where, step, overtaken)
        assert refresher.run("v", tick="t").plan.skips
        found = refresher.context.store.attempts("v", tick="t")
        wanted = [AttemptStatus.SKIPPED, AttemptStatus.SUPERSEDED]
        assert [(one.status, one.error) for one in found] == [(one, None) for one in wanted]
    assert project.rows() == [(1, 10), (2, 20), (3, 30)]


def test_the_command_refreshes_again_on_top_of_a_newer_publication_of_older_input(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = auditing.audit
    with project.opened() as rival, project.opened() as refresher:
        rival.plan("v", tick="pinned")
        project.append("a", k=[3], x=[30])

        def overtaken(context: GoldContext, work: WorkItem) -> object:
            monkeypatch.setattr(auditing, "audit", real)
            assert rival.run("v", tick="pinned", force=True).status is AttemptStatus.PUBLISHED
            return real(context, work)

        monkeypatch.setattr(auditing, "audit", overtaken)
        done = _refresh_one(
            refresher,
            "v",
            "t",
            progress=Progress(disable=True),
            force=False,
            let_pass=None,
            asked_by="ann",
            tries=2,
        )
    assert (done.status, done.error) == ("published", None)
    assert project.rows() == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("before", ["stage", "audit", "publish"])
@pytest.mark.parametrize("retried", [False, True])
def test_a_task_refreshes_again_on_top_of_a_newer_publication_of_older_input(
    project: Project, before: str, retried: bool
) -> None:
    with project.opened() as rival, project.opened() as refresher:
        rival.plan("v", tick="pinned")
        project.append("a", k=[3], x=[30])
        attempt: str | None = refresher.plan("v", tick="t").attempt_id
        for step in (stage_on_newest, audit_on_newest):
            assert attempt is not None
            if step.__name__.startswith(before):
                rival.run("v", tick="pinned", force=True)
            first, attempt = attempt, step(refresher, attempt)
            if retried:
                # Its process was killed before Airflow knew the result.
                attempt = step(refresher, first)
        assert attempt is not None
        if before == "publish":
            rival.run("v", tick="pinned", force=True)
        done = publish_on_newest(refresher, attempt)
        if retried:
            assert publish_on_newest(refresher, attempt) == done
        assert done.changed
        assert newest_attempt(refresher.context.store, attempt).attempt_id == done.attempt_id
    assert project.rows() == [(1, 10), (2, 20), (3, 30)]


def test_an_applied_definition_is_built_although_a_refresh_of_the_one_before_is_faster(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = Deployment(deployment_id="d2", number=2, who="ann", manifest="{}")
    real = auditing.audit
    with project.opened() as earlier:
        project.define(OTHER)
        with project.opened() as later:

            def overtaken(context: GoldContext, work: WorkItem) -> object:
                monkeypatch.setattr(auditing, "audit", real)
                verdict = real(context, work)
                assert earlier.run("v", tick="old").status is AttemptStatus.PUBLISHED
                return verdict

            monkeypatch.setattr(auditing, "audit", overtaken)
            parts = later.context.settings, later.context.store, later.context.manifest
            carrier = Carrier(*parts, sleep=lambda _: None, refresher=later)
            assert carrier.carry(Step.parse("build gold.v"), deployment, lambda _: None) is None
    assert project.rows() == [(1, 20), (2, 40)]


def test_an_applied_definition_is_built_although_its_tick_is_older_than_a_column(
    project: Project,
) -> None:
    """An apply that was killed goes on with the versions of its first run."""
    deployment = Deployment(deployment_id="d2", number=2, who="ann", manifest="{}")
    with project.opened() as killed:
        killed.plan("v", tick="d2")
    rows = table(k=[3], x=[30], y=[31])
    write_deltalake(project.data / "a", rows, mode="append", schema_mode="merge")
    project.define("SELECT a.k, a.y FROM bronze.a AS a WHERE a.k > 1")
    with project.opened() as later:
        parts = later.context.settings, later.context.store, later.context.manifest
        carrier = Carrier(*parts, sleep=lambda _: None, refresher=later)
        assert carrier.carry(Step.parse("build gold.v"), deployment, lambda _: None) is None
    assert project.rows() == [(2, None), (3, 31)]


def test_a_refresh_that_began_before_a_drop_does_not_bring_the_table_back(
    project: Project,
) -> None:
    """Nobody could drop it again: it is not among the tables that an apply removed."""
    with project.opened() as refresher:
        attempt = refresher.plan("v", tick="t", force=True).attempt_id
        refresher.stage(attempt)
        refresher.audit(attempt)
        location = refresher.context.published_at("v")
        remove_table(location)
        refresher.context.store.bump_epoch("gold.v", reason="dropped")
        with pytest.raises(AttemptStateError, match="dropped"):
            refresher.publish(attempt)
        assert log.table_version(location) is None
    # Declared again, it is built as a new one.
    project.refresh()
    assert project.rows() == [(1, 10), (2, 20)]


def test_a_forced_refresh_that_another_overtakes_is_forced_again(project: Project) -> None:
    with project.opened() as refresher:
        attempt = refresher.plan("v", tick="t", force=True).attempt_id
        assert stage_on_newest(refresher, attempt) == attempt
        assert audit_on_newest(refresher, attempt) == attempt
        project.refresh()
        done = publish_on_newest(refresher, attempt)
        published = refresher.context.store.attempt(done.attempt_id)
        assert (done.version, published.reason_code) == (2, ReasonCode.FORCED)


def test_a_step_that_fails_without_a_newer_publication_is_a_failure(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with project.opened() as refresher:
        attempt = refresher.plan("v", tick="t").attempt_id
        with pytest.raises(AttemptStateError, match="not staged"):
            refresher.audit(attempt)
        refresher.stage(attempt)

        def fails(*_: object) -> object:
            raise QueryFailedError("v", "[FAILED_READ_FILE.FILE_NOT_EXIST]")

        monkeypatch.setattr(auditing, "audit", fails)
        with pytest.raises(QueryFailedError):
            refresher.audit(attempt)
        assert refresher.context.store.attempt(attempt).status is AttemptStatus.FAILED


@pytest.mark.parametrize("live", [False, True])
def test_a_recomputation_whose_files_a_refresh_removes_is_staged_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, live: bool
) -> None:
    with project.opened() as refresher:
        recomputer, staged_once = Recomputer(refresher), staging.staged_once
        asked = Recompute(code=ReasonCode.REPLAYED)
        first = recomputer.plan("v", tick="r1", asked=asked).attempt_id

        def fails(context: GoldContext, work: WorkItem) -> object:
            monkeypatch.setattr(staging, "staged_once", staged_once)
            if live:
                project.refresh()
            raise QueryFailedError("v", "[FAILED_READ_FILE.FILE_NOT_EXIST]")

        monkeypatch.setattr(staging, "staged_once", fails)
        if live:
            assert recomputer.stage(first) != first
            return
        with pytest.raises(QueryFailedError):
            recomputer.stage(first)


def test_an_input_that_is_gone_is_missing(project: Project) -> None:
    with project.opened() as refresher:
        shutil.rmtree(project.data / "a")
        assert refresher.explain("v").reason.code is ReasonCode.INPUT_MISSING
