"""Kills, doubled runs, late zombies and strangers: a result is published once, and only ours."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from spark_jobs.gold.base.errors import AttemptStateError
from spark_jobs.gold.refresh import publishing, staging
from spark_jobs.gold.refresh import steps as refresh
from spark_jobs.gold.refresh.steps import FAILPOINTS
from spark_jobs.sections import GoldSettings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.errors import LeaseTakenError
from spark_jobs.storage import log
from tests.spark.gold_project import GoldProject

MORE = "SELECT 4L AS order_id, 'eve' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount"


class Killed(BaseException):
    """Ends a run as a signal would: nothing that handles errors sees it."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch):
    """Arm a failpoint of the gold steps."""

    def arm(name: str | None) -> None:
        def failpoint(passed: str) -> None:
            if passed == name:
                raise Killed(name)

        for module in (refresh, staging, publishing):
            monkeypatch.setattr(module, "failpoint", failpoint)

    return arm


# What a full refresh does otherwise than an incremental one, which test_incremental_faults kills
# at each point.
OWN = (
    "gold.stage.before_write",
    "gold.stage.written",
    "gold.publish.before_commit",
    "gold.publish.committed",
)


@pytest.mark.parametrize(
    "name",
    [one if one in OWN else pytest.param(one, marks=pytest.mark.long) for one in FAILPOINTS],
)
def test_a_killed_refresh_that_runs_again_publishes_once(
    gold: GoldProject, kill_at, name: str
) -> None:
    gold.refresh("totals", "t1")
    gold.append("silver.orders", MORE)
    kill_at(name)
    with pytest.raises(Killed):
        gold.refresh("totals", "t2")
    kill_at(None)
    gold.refresh("totals", "t2")
    assert gold.rows("totals")[-1] == ("eve", 1, Decimal("1.00"))
    assert len(gold.publications("totals")) == 2
    assert gold.attempts("totals", *refresh.ledger.OPEN) == []
    published = gold.attempts("totals", AttemptStatus.PUBLISHED)
    assert [attempt.published_version for attempt in published] == [1, 0]
    for attempt in published:
        staged = gold.refresher.context.lake.staging("totals", attempt.attempt_id)
        assert log.table_version(staged) is None
    gold.assert_right("totals")


def test_each_step_may_be_called_again(gold: GoldProject) -> None:
    attempt_id = gold.refresher.plan("totals", tick="t1").attempt_id
    assert gold.refresher.plan("totals", tick="t1").attempt_id == attempt_id
    with pytest.raises(AttemptStateError):
        gold.refresher.audit(attempt_id)
    assert gold.refresher.stage(attempt_id) == gold.refresher.stage(attempt_id)
    with pytest.raises(AttemptStateError):
        gold.refresher.publish(attempt_id)
    gold.refresher.audit(attempt_id)
    gold.refresher.audit(attempt_id)
    first = gold.refresher.publish(attempt_id)
    assert gold.refresher.publish(attempt_id) == first
    assert (first.version, first.changed) == (0, True)
    skipped = gold.refresher.plan("totals", tick="t2")
    with pytest.raises(AttemptStateError):
        gold.refresher.stage(skipped.attempt_id)


def staged(gold: GoldProject, tick: str) -> str:
    """An attempt that lacks nothing but its publication."""
    attempt_id = gold.refresher.plan("totals", tick=tick).attempt_id
    gold.refresher.stage(attempt_id)
    gold.refresher.audit(attempt_id)
    return attempt_id


def test_an_older_attempt_never_replaces_a_newer_one(gold: GoldProject) -> None:
    older = staged(gold, "t1")
    gold.append("silver.orders", MORE)
    newer = staged(gold, "t2")
    gold.refresher.publish(newer)
    assert gold.store.attempt(older).status is AttemptStatus.SUPERSEDED
    assert gold.refresher.publish(older).superseded
    assert len(gold.rows("totals")) == 4
    gold.assert_right("totals")


def test_a_later_number_with_older_inputs_does_not_go_back(gold: GoldProject) -> None:
    gold.store.pin_version(
        "t1",
        gold.refresher.context.manifest.inputs_of("totals")[0],
        log.table_version(gold.location("silver.orders")),
    )
    gold.append("silver.orders", MORE)
    newer = staged(gold, "t2")
    older = staged(gold, "t1")
    gold.refresher.publish(newer)
    assert gold.refresher.publish(older).superseded
    assert len(gold.rows("totals")) == 4


def test_attempts_that_publish_at_once_leave_one_content(gold: GoldProject) -> None:
    first, second = staged(gold, "t1"), staged(gold, "t2")
    errors: list[Exception] = []

    def publish(attempt_id: str) -> None:
        try:
            gold.refresher.publish(attempt_id)
        except Exception as error:  # noqa: BLE001 - the main thread looks at each
            errors.append(error)

    threads = [threading.Thread(target=publish, args=(one,)) for one in (first, second, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    sequences = [one["sequence"] for one in gold.publications("totals")]
    assert sequences in ([1, 2], [2]), "each at most once, and never back"
    assert len(gold.rows("totals")) == 3
    gold.assert_right("totals")


def test_a_table_that_another_writer_keeps_is_waited_for_and_then_named(gold: GoldProject) -> None:
    patient = gold.settings.model_copy(update={"gold": GoldSettings(lease_seconds=1)})
    gold.settings = patient
    attempt_id = staged(gold, "t1")
    with (
        gold.store.lease("gold.totals", owner="somebody", seconds=60),
        pytest.raises(LeaseTakenError),
    ):
        gold.refresher.publish(attempt_id)
    assert gold.store.attempt(attempt_id).status is AttemptStatus.FAILED
    assert gold.refresher.publish(attempt_id).version == 0


def test_a_restored_table_is_found_and_repaired(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    gold.append("silver.orders", MORE)
    gold.refresh("totals", "t2")
    gold.execute("RESTORE TABLE {} TO VERSION AS OF 0", "gold.totals")
    assert gold.verify("totals").finding == "FOREIGN_COMMIT"
    assert gold.reason("totals") == "RESTORED"
    assert gold.refresher.begin_epoch("totals", reason="restored") == 2
    outcome = gold.refresh("totals", "t3")
    assert (outcome.status, outcome.changed) == (AttemptStatus.PUBLISHED, True)
    assert log.transaction_version(gold.location("gold.totals"), "gold/totals/2") == 1
    assert len(gold.rows("totals")) == 4
    gold.assert_right("totals")


def test_a_new_epoch_begins_with_a_full_refresh(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    old = staged_in_old_epoch(gold)
    gold.refresher.begin_epoch("totals", reason="test")
    assert gold.reason("totals") == "EPOCH_BUMPED"
    gold.refresh("totals", "t3")
    assert gold.publications("totals")[-1]["epoch"] == 2
    assert gold.refresher.publish(old).superseded
    assert gold.reason("totals") == "NO_UPSTREAM_CHANGE"


def staged_in_old_epoch(gold: GoldProject) -> str:
    gold.append("silver.orders", MORE)
    return staged(gold, "t2")


def test_a_strangers_rows_are_found_and_replaced(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    gold.execute("DELETE FROM {} WHERE customer = 'ann'", "gold.totals")
    found = gold.verify("totals")
    assert (found.finding, found.passed) == ("FOREIGN_COMMIT", False)
    assert gold.reason("totals") == "FOREIGN_COMMIT"
    gold.refresh("totals", "t2")
    assert len(gold.rows("totals")) == 3
    gold.assert_right("totals")


def test_compacting_a_published_table_is_no_intrusion(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    gold.execute("OPTIMIZE {}", "gold.totals")
    gold.execute("ALTER TABLE {} SET TBLPROPERTIES ('delta.appendOnly' = 'false')", "gold.totals")
    assert gold.verify("totals").passed
    assert gold.reason("totals") == "NO_UPSTREAM_CHANGE"


def test_verify_shows_the_rows_that_differ(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    entry = gold.manifest.gold["totals"]
    other = entry.sql.replace("COUNT(*)", "COUNT(o.amount)")
    changed = entry.model_copy(update={"sql": other})
    gold.manifest = gold.manifest.model_copy(update={"gold": {"totals": changed}})
    found = gold.verify("totals")
    assert (found.finding, found.missing, found.unexpected) == ("ROWS_DIFFER", 1, 1)
    assert {example["orders"]: example[""] for example in found.examples} == {"0": "-1", "1": "+1"}
    assert {example["customer"] for example in found.examples} == {None}


def test_a_lost_control_database_is_no_loss(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    gold.refresher.begin_epoch("totals", reason="test")
    gold.refresh("totals", "t2")
    from spark_jobs.state.store import ControlStore

    with ControlStore.open(f"sqlite:///{gold.settings.state}/fresh.db") as fresh:
        gold.store = fresh
        assert gold.reason("totals") == "NO_UPSTREAM_CHANGE"
        gold.append("silver.orders", MORE)
        assert gold.refresh("totals", "t3").status is AttemptStatus.PUBLISHED
        last = gold.publications("totals")[-1]
        assert (last["epoch"], last["sequence"]) == (2, 2)
        gold.assert_right("totals")
