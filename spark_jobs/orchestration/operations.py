"""The operators' DAGs: forms for a replay, a rollback, and the release of a blocked view.

All require a reason, show a plan, and wait for an approval: a replay only above a limit. The steps
are those of the command line; see ``replay_steps`` and ``view_steps``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from airflow.sdk import (
    DAG,
    Context,
    Param,
    TriggerRule,
    get_current_context,
    get_parsing_context,
    task,
)

from spark_jobs.graph.manifest import Manifest
from spark_jobs.orchestration import replay_steps, view_steps
from spark_jobs.orchestration.airflow import START_DATE
from spark_jobs.orchestration.alerts import AlertNotifier
from spark_jobs.orchestration.approval import APPROVAL_TASK, question
from spark_jobs.orchestration.assets import PUBLISHED
from spark_jobs.orchestration.blueprint import TIMEOUT_SECONDS, Pool, Step
from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.orchestration.operation_forms import (
    release_params,
    replay_params,
    rollback_params,
    selections_of,
)
from spark_jobs.orchestration.retries import RetryTransient
from spark_jobs.orchestration.task_options import OWNER, operator_task
from spark_jobs.settings import Settings, load_settings

REPLAY_DAG = "ops__replay"
_VIEW = "{{ task.op_kwargs['view'] }}"
_PLAN = "{{ ti.xcom_pull(task_ids='plan', key='markdown') }}"

REPLAY_DOC = """\
## Replay gold views

Recomputes views in staging at the published versions of their inputs, and publishes the
differences in one commit per view. Live refreshes continue meanwhile.

1. Fill in the form. With `dry_run`, the default, the run ends with the plan, in the log of `plan`.
2. Read the plan. Trigger again with `dry_run` off.
3. Above the limit of the settings the run waits for an approval, under *Required actions*.

A range recomputes the rows whose time column is in it. If replacing only those rows would not make
the table equal to its SQL, the plan says why, and the whole view is computed. To continue a killed
run, clear its failed tasks. See `docs/replay.md` and `docs/runbooks/gold-is-wrong.md`.
"""
ROLLBACK_DOC = """\
## Roll back a gold view

Publishes an earlier content of a view as a new version, after an approval, and pins the view: its
refreshes skip with `VIEW_PINNED` until the form `ops__release`, `tidemark release VIEW` or the next
replay of the view. `docs/runbooks/gold-is-wrong.md` says when to use it.
"""
RELEASE_DOC = """\
## Release a gold view

If the gate blocks a result of the view: publishes that result once, after an approval, although
critical expectations failed. It publishes the result that the question shows, even if newer input
arrived since. The record says who released it, who approved, why, and which rules failed. The rules
stay in force for the next refresh. A result that could not be checked is not published.

If the view was rolled back: unpins it, and the next refresh picks up the changes since.
`docs/runbooks/gold-refresh.md` says when to use it.
"""


@dataclass(frozen=True, kw_only=True)
class OperationOnView:
    """An operation on one view that a person requests and approves.

    Attributes:
        dag_id: of the form.
        task_id: of the task that does it.
        subject: of the approval.
        description: of the DAG, in one line.
        doc_md: of the DAG.
        params: the form, by the names of the views.
        validate: checks the form and returns its fields as plain values.
        plan: shows what would be done, and returns what a person approves.
        act: does what was approved.
    """

    dag_id: str
    task_id: str
    subject: str
    description: str
    doc_md: str
    params: Callable[[list[str]], dict[str, Param]]
    validate: Callable[[Context], dict[str, Any]]
    plan: Callable[[dict[str, Any], Context], Any]
    act: Callable[[dict[str, Any], Any, Context], None]


ROLLBACK = OperationOnView(
    dag_id="ops__rollback",
    task_id="rollback",
    subject="Roll back a gold view",
    description="Roll back a gold view.",
    doc_md=ROLLBACK_DOC,
    params=rollback_params,
    validate=view_steps.validate_rollback,
    plan=view_steps.plan_rollback,
    act=view_steps.rollback,
)
RELEASE = OperationOnView(
    dag_id="ops__release",
    task_id="release",
    subject="Release a gold view",
    description="Publish a blocked result, or unpin a view.",
    doc_md=RELEASE_DOC,
    params=release_params,
    validate=view_steps.validate_release,
    plan=view_steps.plan_release,
    act=view_steps.release,
)


def operations_dags(settings: Settings | None = None) -> dict[str, DAG]:
    """The DAGs of forms by id; in a process that runs one task, only that task's DAG.

    Raises:
        ManifestMissingError: the project was not compiled.
    """
    settings = settings or load_settings()
    wanted = get_parsing_context().dag_id
    made: dict[str, Callable[[Manifest, Settings], DAG]] = {
        REPLAY_DAG: replay_dag,
        **{one.dag_id: partial(approved_dag, one) for one in (ROLLBACK, RELEASE)},
    }
    chosen = [dag_id for dag_id in made if wanted in {None, dag_id}]
    if not chosen:
        return {}
    # Once: with a shared control database each reading asks it, and the forms show one deployment.
    manifest = compiled_manifest(settings)
    return {dag_id: made[dag_id](manifest, settings) for dag_id in chosen}


def replay_dag(manifest: Manifest, settings: Settings) -> DAG:
    """The DAG of a replay, with its form."""
    params = replay_params(sorted(manifest.gold), selections_of(manifest))
    with _dag(REPLAY_DAG, "Recompute gold views.", REPLAY_DOC, params, settings) as dag:

        @task(**_options("validate"))  # type: ignore[untyped-decorator]
        def validate() -> dict[str, Any]:
            with replay_steps.form_read():
                return replay_steps.validate_replay(get_current_context())

        @task(**_options("plan"))  # type: ignore[untyped-decorator]
        def plan(asked: dict[str, Any]) -> dict[str, Any]:
            return replay_steps.plan_replay(asked, get_current_context())

        @task.branch(**_options("limit"))  # type: ignore[untyped-decorator]
        def limit(planned: dict[str, Any]) -> str | None:
            return replay_steps.next_of_plan(planned, approve=APPROVAL_TASK, begin="begin")

        # After the branch, or after an approval; a rejection skips it.
        @task(**_options("begin", trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS))  # type: ignore[untyped-decorator]
        def begin(asked: dict[str, Any]) -> list[str]:
            return replay_steps.begin_replay(asked, get_current_context())

        @task(**_spark("build", map_index_template=_VIEW))  # type: ignore[untyped-decorator]
        def build(view: str) -> None:
            replay_steps.build(view, get_current_context())

        # A view that could not be built does not stop the others.
        @task(**_options("difference", trigger_rule=TriggerRule.ALL_DONE))  # type: ignore[untyped-decorator]
        def difference() -> list[str]:
            return replay_steps.difference(get_current_context())

        @task(**_spark("publish", map_index_template=_VIEW, outlets=[PUBLISHED]))  # type: ignore[untyped-decorator]
        def publish(view: str) -> None:
            replay_steps.publish(view, get_current_context())

        @task(**_spark("follow", trigger_rule=TriggerRule.ALL_DONE, outlets=[PUBLISHED]))  # type: ignore[untyped-decorator]
        def follow() -> dict[str, str]:
            return replay_steps.follow(get_current_context())

        @task(**_options("report", trigger_rule=TriggerRule.ALL_DONE))  # type: ignore[untyped-decorator]
        def report() -> str:
            return replay_steps.report(get_current_context())

        asked = validate()
        planned = plan(asked)
        branch = limit(planned)
        begun = begin(asked)
        branch >> question(settings, subject="Replay gold views", body=_PLAN) >> begun
        branch >> begun
        built = build.expand(view=begun)
        differing = difference()
        built >> differing
        published = publish.expand(view=differing)
        followed = follow()
        published >> followed >> report()
    return dag


def approved_dag(operation: OperationOnView, manifest: Manifest, settings: Settings) -> DAG:
    """The DAG of an operation on one view: form, plan, approval, action."""
    about, params = operation, operation.params(sorted(manifest.gold))
    with _dag(about.dag_id, about.description, about.doc_md, params, settings) as dag:

        @task(**_options("validate"))  # type: ignore[untyped-decorator]
        def validate() -> dict[str, Any]:
            with replay_steps.form_read():
                return about.validate(get_current_context())

        @task(**_options("plan"))  # type: ignore[untyped-decorator]
        def plan(asked: dict[str, Any]) -> Any:
            with replay_steps.form_read():
                return about.plan(asked, get_current_context())

        @task(**_spark(about.task_id, outlets=[PUBLISHED]))  # type: ignore[untyped-decorator]
        def act(asked: dict[str, Any], planned: Any) -> None:
            about.act(asked, planned, get_current_context())

        asked = validate()
        planned = plan(asked)
        asks = question(settings, subject=about.subject, body=_PLAN)
        planned >> asks >> act(asked, planned)
    return dag


def _dag(
    dag_id: str, description: str, doc_md: str, params: dict[str, Param], settings: Settings
) -> DAG:
    return DAG(
        dag_id=dag_id,
        description=description,
        schedule=None,
        start_date=START_DATE,
        catchup=False,
        # A run that waits for an approval must not block the dry run of another.
        max_active_runs=3,
        is_paused_upon_creation=False,
        tags=["operations"],
        doc_md=doc_md,
        default_args={
            "owner": OWNER,
            "retry_policy": RetryTransient(),
            "on_failure_callback": [AlertNotifier(settings, runbook="gold-is-wrong", lasts=False)],
        },
        params=params,
        render_template_as_native_obj=False,
    )


def _options(task_id: str, **more: Any) -> dict[str, Any]:
    """The arguments of a task that reads logs and the control database only."""
    return operator_task(task_id, timeout_seconds=TIMEOUT_SECONDS[Step.PLAN]) | more


def _spark(task_id: str, **more: Any) -> dict[str, Any]:
    """The arguments of a task that uses Spark."""
    timeout = timedelta(seconds=TIMEOUT_SECONDS[Step.REFRESH])
    return _options(task_id, **{"pool": str(Pool.REPLAY), "execution_timeout": timeout} | more)
