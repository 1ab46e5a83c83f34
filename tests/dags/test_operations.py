"""The operators' DAGs: whole runs, what holds for their tasks, and strings that mean harm."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError
from deltalake import DeltaTable

from spark_jobs.orchestration import replay_steps, view_steps
from spark_jobs.orchestration.airflow import gold_dags
from spark_jobs.orchestration.alerts import AlertNotifier
from spark_jobs.orchestration.operations import CONTROL, operations_dags
from spark_jobs.planning.errors import ReplayRequestError
from spark_jobs.sections import Lanes
from spark_jobs.settings import load_settings
from spark_jobs.state.replays import ReplayStatus
from spark_jobs.state.store import ControlStore
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


def test_no_form_hides_what_somebody_must_fill_in_or_should_see(project) -> None:
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
    done = run("ops__replay", views=["order_totals"], dry_run=False)
    assert str(done.state) == "success", states(done)
    assert states(done)["approve"] == "skipped"
    assert project.totals() == {"ada": Decimal("5.00")}
    with ControlStore.open(load_settings().control_url) as store:
        (record,) = store.replays()
        (row,) = store.replay_views(record.replay_id)
    assert (record.status, record.reason) == (ReplayStatus.DONE, REASON)
    assert row.difference["leaving"] == row.difference["entering"] == 1

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
            assert one.pool in {CONTROL, *Lanes.model_fields}
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


@pytest.mark.parametrize("field", ["view", "ticket"])
def test_no_hostile_string_lets_a_result_through(project, field: str) -> None:
    good = {"view": "order_totals", "reason": REASON, "ticket": None}
    assert view_steps.validate_release({"params": good})["view"] == "order_totals"
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
def test_a_person_is_asked_above_the_limit(planned: dict[str, Any], task: str | None) -> None:
    assert replay_steps.next_of_plan(planned, approve="approve", begin="begin") == task


def test_a_rejection_is_recorded_and_red(project) -> None:
    form = {"views": ["order_totals"], "branch": False, "only_stale": False, "reason": REASON}
    answers = {
        "approve": {"chosen_options": ["Reject"]},
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


def _after(planned: dict[str, Any] | None) -> Any:
    """What the last task sees where nothing was begun after such a plan."""
    answers = {"plan": planned}
    pulled = SimpleNamespace(xcom_pull=lambda *, task_ids: answers.get(task_ids))
    return {"run_id": "manual__2", "ti": pulled}


def test_a_refused_form_is_one_alert(project) -> None:
    """The last task fails too, or the run were green; it tells nobody again."""
    settings = load_settings()
    notifier = AlertNotifier(settings, runbook="gold-is-wrong")
    form = {"views": ["order_totals"], "branch": False, "only_stale": False, "reason": REASON}
    form |= {"from": "2999-01-01", "to": "2999-01-02"}
    ti = {"dag_id": "ops__replay", "run_id": "manual__3"}
    with pytest.raises(ReplayRequestError) as refused:
        replay_steps.validate_replay({"params": form})
    with pytest.raises(AirflowFailException, match="no plan") as last:
        replay_steps.report(_after(None))
    for task, raised in (("validate", refused), ("report", last)):
        told = {"ti": SimpleNamespace(**ti, task_id=task), "exception": raised.value}
        notifier.notify(told)
    (line,) = (settings.state / "alerts.jsonl").read_text().splitlines()
    assert json.loads(line)["condition"] == "REPLAY_REQUEST"


def test_a_replay_that_was_to_run_and_did_not_is_red(project) -> None:
    wanted = {"dry_run": False, "views": ["order_totals"], "approval": True}
    with pytest.raises(AirflowFailException, match="was not begun"):
        replay_steps.report(_after(wanted))
    for nothing in ({"dry_run": True}, {"views": []}):
        assert replay_steps.report(_after(wanted | nothing)) == "nothing was written"


def test_a_dry_run_is_what_nobody_clearly_declined(project) -> None:
    good = {"views": ["order_totals"], "branch": False, "only_stale": False, "reason": REASON}
    for text in (*HOSTILE, None, 0, ""):
        assert replay_steps.validate_replay({"params": {**good, "dry_run": text}})["dry_run"]
    assert not replay_steps.validate_replay({"params": {**good, "dry_run": False}})["dry_run"]
