"""The operators' DAGs: whole runs, what holds for their tasks, and strings that mean harm."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSkipException,
    ParamValidationError,
)
from deltalake import DeltaTable

from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.orchestration import replay_steps, view_steps
from spark_jobs.orchestration.airflow import gold_dags
from spark_jobs.orchestration.alerts import AlertNotifier
from spark_jobs.orchestration.approval import approver
from spark_jobs.orchestration.errors import SamePersonError
from spark_jobs.orchestration.operations import operations_dags
from spark_jobs.orchestration.task_options import CONTROL
from spark_jobs.planning.errors import ReplayRequestError
from spark_jobs.planning.request import ReplayRequest
from spark_jobs.quality.verdict import ExpectationResult, Verdict
from spark_jobs.sections import Pools
from spark_jobs.settings import load_settings
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.replays import ReplayKind, ReplayRecord, ReplayStatus
from spark_jobs.state.store import ControlStore
from tests.dags.asset_events import events
from tests.unit.planning.hostile import HOSTILE

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]

# A person's words are data, whatever they look like.
REASON = "ada's amounts are 50% off: {{ 7 * 7 }} <b>größer</b>"
OPS = Path(__file__).parents[2] / "dags/tidemark_ops.py"


def run(dag_id: str, **conf: Any) -> Any:
    """One run of a fresh DAG object, with the fields of its form."""
    dag = operations_dags()[dag_id]
    for one in dag.tasks:
        one.retries = 0
    return dag.test(run_conf={"reason": REASON, **conf})


def states(dag_run: Any) -> dict[str, str]:
    return {one.task_id: str(one.state) for one in dag_run.get_task_instances()}


def refresh(**conf: Any) -> None:
    dag = gold_dags()["gold__order_totals"]
    assert str(dag.test(run_conf=conf).state) == "success"


def test_forms_show_all_required_fields(project) -> None:
    for dag_id, dag in operations_dags().items():
        fields = {name: dag.params.get_param(name) for name in dag.params}
        shown = {name for name, one in fields.items() if "section" not in one.schema}
        # What may stay empty has NULL among its types.
        empty = {name for name, one in fields.items() if not one.has_value}
        needed = {name for name in empty if "null" not in fields[name].schema["type"]}
        assert "reason" in needed
        assert needed <= shown, dag_id
        assert {"reason", "dry_run"} & fields.keys() <= shown, dag_id


def test_a_dry_run_shows_the_plan_and_writes_nothing(project) -> None:
    project.order("ada", "5.00")
    dry = run("ops__replay", views=["order_totals"])
    assert str(dry.state) == "success"
    assert {name: state for name, state in states(dry).items() if state == "success"}.keys() == {
        "validate",
        "plan",
        "limit",
        "report",
    }
    with ControlStore.open(load_settings().control_url) as store:
        assert store.replays() == []
    assert not Path(project.totals_at).exists()


def test_a_replay_publishes_what_differs_and_a_wrong_form_is_refused(project) -> None:
    project.order("ada", "5.00")
    refresh()
    DeltaTable(project.totals_at).update(updates={"revenue": "CAST(1 AS DECIMAL(12, 2))"})
    events("gold.order_totals")
    done = run("ops__replay", views=["order_totals"], dry_run=False)
    assert str(done.state) == "success", states(done)
    assert states(done)["approve"] == "skipped"
    assert project.totals() == {"ada": Decimal("5.00")}
    with ControlStore.open(load_settings().control_url) as store:
        (record,) = store.replays()
        (row,) = store.replay_views(record.replay_id)
    assert (record.status, record.reason) == (ReplayStatus.DONE, REASON)
    assert row.difference["leaving"] == row.difference["entering"] == 1
    (told,) = events("gold.order_totals")
    assert (told["attempt"], told["version"]) == (row.attempt_id, row.published_version)

    with pytest.raises(ParamValidationError, match="ticket"):
        run("ops__replay", views=["order_totals"], dry_run=False, ticket="$(touch pwned)")
    with ControlStore.open(load_settings().control_url) as store:
        assert len(store.replays()) == 1


def test_every_task_has_a_policy_a_limit_and_a_pool_that_exists(project) -> None:
    bag = DagBag(dag_folder=str(OPS))
    assert bag.import_errors == {}
    assert set(bag.dags) == {"ops__replay", "ops__rollback", "ops__release"}
    for dag in bag.dags.values():
        assert dag.owner == "operations"
        with pytest.raises(ParamValidationError):
            _ = dag.params["reason"]
        for one in dag.tasks:
            assert one.execution_timeout
            assert one.pool in {CONTROL, *Pools.model_fields}
            if one.task_id != "approve":
                assert one.has_retry_policy
                assert one.on_failure_callback
    waiting = {one.task_id: one.pool for one in bag.dags["ops__replay"].tasks}
    assert waiting["build"] == waiting["publish"] == "replay"
    assert bag.dags["ops__replay"].get_task("approve").downstream_task_ids == {"begin"}
    assert bag.dags["ops__rollback"].get_task("approve").downstream_task_ids == {"rollback"}
    assert bag.dags["ops__release"].get_task("approve").downstream_task_ids == {"release"}


FIELDS = ("views", "branch", "from", "to", "chunk", "only_stale", "ticket")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("listed", [False, True])
def test_no_hostile_string_passes_the_first_task(project, field: str, listed: bool) -> None:
    good = {
        "views": ["order_totals"],
        "branch": False,
        "from": "2026-01-01",
        "to": "2026-01-02",
        "chunk": None,
        "only_stale": False,
        "reason": REASON,
        "ticket": None,
    }
    assert replay_steps.validate_replay({"params": good})["dry_run"]
    for text in HOSTILE:
        value = [text] if listed else text
        with pytest.raises(ReplayRequestError) as caught:
            replay_steps.validate_replay({"params": {**good, field: value}})
        assert caught.value.field == field, text
        assert caught.value.hint
        assert text not in str(caught.value)


@pytest.mark.parametrize("field", ["view", "version", "replay", "ticket"])
def test_no_hostile_string_takes_a_view_back(project, field: str) -> None:
    good = {"view": "order_totals", "version": None, "replay": None, "reason": REASON}
    assert view_steps.validate_rollback({"params": good})["view"] == "order_totals"
    for text in HOSTILE:
        with pytest.raises(ReplayRequestError) as caught:
            view_steps.validate_rollback({"params": {**good, field: text}})
        assert caught.value.field == field, text


@pytest.mark.parametrize("field", ["view", "ticket", "attempt"])
def test_no_hostile_string_lets_a_result_through(project, field: str) -> None:
    good = {"view": "order_totals", "reason": REASON, "ticket": None, "attempt": None}
    assert view_steps.validate_release({"params": good})["view"] == "order_totals"
    named = {**good, "attempt": "order_totals-20260102T120000-00c0ffee"}
    assert view_steps.validate_release({"params": named})["attempt"] == named["attempt"]
    for text in HOSTILE:
        with pytest.raises(ReplayRequestError) as caught:
            view_steps.validate_release({"params": {**good, field: text}})
        assert caught.value.field == field, text


@pytest.mark.parametrize(
    "wrong",
    [
        {"views": ["'; DROP TABLE x; --"]},
        {"views": []},
        {"views": ["order_totals"], "reason": "why not"},
        {"views": ["order_totals"], "chunk": "1 second"},
        {"views": ["order_totals"], "branch": "yes"},
        {"views": ["order_totals"], "from": "'; DROP TABLE x; --"},
        {"views": ["order_totals"], "to": "yesterday"},
        {"views": ["order_totals"], "ticket": "$(id)"},
    ],
)
def test_the_form_refuses_what_its_lists_do_not_name(project, wrong: dict[str, Any]) -> None:
    with pytest.raises(ParamValidationError):
        run("ops__replay", **wrong)


@pytest.mark.parametrize(
    ("planned", "task"),
    [
        ({"dry_run": True, "views": ["a"], "approval": True}, None),
        ({"dry_run": False, "views": [], "approval": True}, None),
        ({"dry_run": False, "views": ["a"], "approval": True}, "approve"),
        ({"dry_run": False, "views": ["a"], "approval": False}, "begin"),
    ],
)
def test_a_replay_above_the_limit_needs_approval(planned: dict[str, Any], task: str | None) -> None:
    assert replay_steps.next_of_plan(planned, approve="approve", begin="begin") == task


def test_a_replay_has_the_views_that_were_approved(monkeypatch) -> None:
    asked = {
        "request": ReplayRequest(views=("a", "b"), only_stale=True).as_dict(),
        "reason": REASON,
        "ticket": None,
    }
    context = asked_by("oncall", ANSWER)
    pulled = {"approve": ANSWER, "plan": {"views": ["a"]}}
    context["ti"].xcom_pull = lambda *, task_ids: pulled.get(task_ids)
    planned: list[ReplayRequest] = []
    replays = SimpleNamespace(
        plan=planned.append,
        begin=lambda _, **named: SimpleNamespace(**named),
        views=lambda _: [SimpleNamespace(view=one) for one in planned[0].views],
    )
    monkeypatch.setattr(replay_steps, "replayer", lambda: nullcontext(replays))
    # While it waited, a live refresh may have reached "a", and "b" may have become stale.
    assert replay_steps.begin_replay(asked, context) == ["a"]
    assert planned == [ReplayRequest(views=("a",))]


def test_a_rejection_is_recorded_and_red(project) -> None:
    form = {"views": ["order_totals"], "branch": False, "only_stale": False, "reason": REASON}
    answers = {
        "approve": {**ANSWER, "chosen_options": ["Reject"]},
        "validate": replay_steps.validate_replay({"params": {**form, "dry_run": False}}),
    }
    context: Any = {
        "run_id": "manual__1",
        "dag_run": SimpleNamespace(triggering_user_name="oncall"),
        "ti": SimpleNamespace(xcom_pull=lambda *, task_ids: answers.get(task_ids)),
    }
    with pytest.raises(AirflowFailException, match="rejected"):
        replay_steps.report(context)
    with ControlStore.open(load_settings().control_url) as store:
        (record,) = store.replays()
    assert (record.status, record.who) == (ReplayStatus.REJECTED, "airflow:oncall")
    assert [(one["what"], one["who"]) for one in record.decisions] == [("rejected", "airflow:eve")]


def asked_by(name: str, answered: dict[str, Any] | None = None) -> Any:
    """What a task sees of a run that somebody asked for and somebody answered."""
    pushed: dict[str, Any] = {}
    pulled = {"approve": answered}
    ti = SimpleNamespace(
        xcom_pull=lambda *, task_ids: pulled.get(task_ids),
        xcom_push=lambda *, key, value: pushed.update({key: value}),
        pushed=pushed,
    )
    return {"run_id": "m", "dag_run": SimpleNamespace(triggering_user_name=name), "ti": ti}


def test_the_form_ends_a_rollback_and_keeps_who_agreed(project) -> None:
    with ControlStore.open(load_settings().control_url) as store:
        record = ReplayRecord(
            replay_id="rollback-1",
            kind=ReplayKind.ROLLBACK,
            who="ann",
            reason="negative revenue",
            request={"views": ["order_totals"]},
            plan={},
        )
        store.begin_replay(record, views=["order_totals"])
        hold = PinnedView(
            view="order_totals", version=3, who="ann", reason="negative", replay_id="rollback-1"
        )
        store.pin_view(hold)
        form = {"view": "order_totals", "reason": REASON, "ticket": "OPS-7"}
        asked = view_steps.validate_release({"params": form})
        context = asked_by("oncall", ANSWER)
        agreed = view_steps.plan_release(asked, context)
        assert agreed == {"rollback": "rollback-1"}
        assert "version 3" in context["ti"].pushed["markdown"]
        view_steps.release(asked, agreed, context)
        assert store.pinned_views() == {}
        (ended,) = store.replay("rollback-1").decisions
    told = {"who": "airflow:oncall", "approved_by": "airflow:eve", "reason": REASON}
    assert ended.items() >= told.items()
    with pytest.raises(AirflowFailException, match=r"rollback-1 no longer pins gold\.order_totals"):
        view_steps.release(asked, agreed, context)


def test_the_question_of_a_release_shows_keys_of_rows_as_they_are() -> None:
    failed = ExpectationResult(
        position=0,
        type="expect_column_values_to_not_be_null",
        kwargs={},
        column="total",
        severity=Severity.CRITICAL,
        success=False,
        message="1 value does not fit; rows with name=[pay](http://x)<b>",
    )
    shown = view_steps.failed_rules(
        Verdict(table="gold.daily", suite="daily", rows=1, results=(failed,))
    )
    assert shown == (
        r"- critical: 1 value does not fit; rows with name=\[pay\]\(http://x\)&lt;b&gt;"
    )


ANSWER = {"chosen_options": ["Approve"], "responded_by_user": {"id": "eve", "name": "eve"}}


@pytest.mark.parametrize("second", [False, True])
def test_with_two_person_approval_a_run_cannot_be_self_approved(
    project, monkeypatch: pytest.MonkeyPatch, *, second: bool
) -> None:
    if second:
        monkeypatch.setenv("TIDEMARK_REPLAY__APPROVAL", "second_person")
    given = {**ANSWER, "params_input": {}, "responded_at": datetime(2026, 1, 1, tzinfo=UTC)}
    for dag in operations_dags().values():
        approve = dag.get_task("approve")
        assert approve.retries == 3, "a try asks again"
        if second:
            with pytest.raises(SamePersonError):
                approve.execute_complete(asked_by("eve"), given)
        else:
            approve.execute_complete(asked_by("eve"), given)
        taken = approve.execute_complete(asked_by("oncall"), given)
        assert approver(asked_by("oncall", taken)) == "airflow:eve"
    assert approver(asked_by("oncall")) is None


def _after(planned: dict[str, Any] | None) -> Any:
    """What the last task sees where nothing was begun after such a plan."""
    answers = {"validate": {"request": {}}, "plan": planned}
    pulled = SimpleNamespace(xcom_pull=lambda *, task_ids: answers.get(task_ids))
    return {"run_id": "manual__2", "ti": pulled}


@pytest.mark.parametrize(
    ("dag_id", "wrong", "task_id"),
    [
        (
            "ops__replay",
            {"views": ["order_totals"], "from": "2999-01-01T00:00:00Z"},
            "validate",
        ),
        ("ops__release", {"view": "order_totals"}, "plan"),
        ("ops__rollback", {"view": "order_totals"}, "plan"),
    ],
)
def test_a_refused_form_is_a_skipped_run_and_no_alert(
    project, dag_id: str, wrong: dict[str, Any], task_id: str
) -> None:
    ended = states(run(dag_id, **wrong))
    assert ended.pop(task_id) == "skipped"
    ended.pop("validate", None)
    assert set(ended.values()) == {"skipped"}, ended
    assert not (load_settings().state / "alerts.jsonl").exists()


def test_a_refusal_is_one_sentence_and_says_what_to_do(project) -> None:
    asked = view_steps.validate_release({"params": {"view": "order_totals", "reason": REASON}})
    with (
        pytest.raises(AirflowSkipException, match="is refused") as refused,
        replay_steps.form_read(),
    ):
        view_steps.plan_release(asked, asked_by("oncall"))
    assert "[NOTHING_TO_RELEASE]" in str(refused.value)
    assert "`tidemark status` shows" in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(ZeroDivisionError), replay_steps.form_read():
        _ = 1 // 0


def test_a_failed_plan_is_reported_once(project) -> None:
    """The last task fails too, or the run would be green; it sends no second alert."""
    settings = load_settings()
    notifier = AlertNotifier(settings, runbook="gold-is-wrong")
    with pytest.raises(AirflowFailException, match="no plan") as last:
        replay_steps.report(_after(None))
    ti = {"dag_id": "ops__replay", "run_id": "manual__3"}
    for task, raised in (("plan", ValueError("broken")), ("report", last.value)):
        notifier.notify({"ti": SimpleNamespace(**ti, task_id=task), "exception": raised})
    (line,) = (settings.state / "alerts.jsonl").read_text().splitlines()
    assert json.loads(line)["task_id"] == "plan"


def test_a_replay_that_was_to_run_and_did_not_is_red(project) -> None:
    wanted = {"dry_run": False, "views": ["order_totals"], "approval": True}
    with pytest.raises(AirflowFailException, match="was not begun"):
        replay_steps.report(_after(wanted))
    for nothing in ({"dry_run": True}, {"views": []}):
        assert replay_steps.report(_after(wanted | nothing)) == "nothing was written"


def test_dry_run_is_the_default(project) -> None:
    good = {"views": ["order_totals"], "branch": False, "only_stale": False, "reason": REASON}
    for text in (*HOSTILE, None, 0, ""):
        assert replay_steps.validate_replay({"params": {**good, "dry_run": text}})["dry_run"]
    assert not replay_steps.validate_replay({"params": {**good, "dry_run": False}})["dry_run"]
