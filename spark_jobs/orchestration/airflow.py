"""From blueprints to DAGs; parsing reads the manifest and imports no Spark and no SQL parser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import (
    DAG,
    BaseOperator,
    CronDataIntervalTimetable,
    Metadata,
    Param,
    TaskGroup,
    WeightRule,
    get_current_context,
    get_parsing_context,
    task,
)

from spark_jobs.names import Layer, TableName
from spark_jobs.orchestration import steps
from spark_jobs.orchestration.alerts import AlertNotifier
from spark_jobs.orchestration.assets import as_asset
from spark_jobs.orchestration.blueprint import (
    AssetBlueprint,
    DagBlueprint,
    Step,
    TaskBlueprint,
    blueprints,
)
from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.orchestration.resolved import ResolvedNotifier
from spark_jobs.orchestration.retries import RetryTransient
from spark_jobs.orchestration.scope import RunKind
from spark_jobs.sections import ExecutorMode
from spark_jobs.settings import Settings, load_settings

# Fixed, so that a DAG is the same at every parse. Backfills cannot start earlier.
START_DATE = datetime(2024, 1, 1, tzinfo=UTC)


# The group of all tasks of a refresh.
TICK = "tick"
TICK_TOOLTIP = "Skipped: nothing changed, or the view waits for a person; see the log of plan."

# For a view whose rows have no time. The values are Airflow's, whose own type is not public.
BUT_BACKFILLS: Any = frozenset(RunKind) - {RunKind.BACKFILL}

FORCE = Param(
    default=False,
    type="boolean",
    title="Recompute",
    description="Compute the whole result, even if no input changed.",
)

# Airflow's form treats an empty text as missing, and would disable the trigger button.
LET_PASS = Param(
    default=None,
    type=["null", "string"],
    maxLength=300,
    title="Approve a large refresh",
    description="The reason, if the last run waits for a person; at least 10 characters.",
)


def gold_dags(settings: Settings | None = None) -> dict[str, DAG]:
    """The DAGs of a project's gold views, by id: refreshes and verifications.

    Raises:
        ManifestMissingError: the project was not compiled.
        PeriodUnsupportedError: a view's period is not one of aligned intervals.
        NotifierUnusableError: a notifier of the settings cannot be created.
    """
    settings = settings or load_settings()
    # A process that runs one task also parses this file, and only needs that task's DAG.
    wanted = get_parsing_context().dag_id
    return {
        one.dag_id: build_dag(one, settings)
        for one in blueprints(
            compiled_manifest(settings),
            settings.airflow.executor_mode,
            own_timetable=settings.airflow.stagger,
        )
        if wanted in {None, one.dag_id}
    }


def build_dag(blueprint: DagBlueprint, settings: Settings) -> DAG:
    """The DAG that a blueprint describes."""
    dag = DAG(
        dag_id=blueprint.dag_id,
        description=blueprint.description,
        schedule=_timetable(blueprint),
        start_date=START_DATE,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=_paused(blueprint, settings),
        tags=list(blueprint.tags),
        doc_md=blueprint.doc_md,
        default_args={
            "owner": blueprint.owner,
            "retry_policy": RetryTransient(),
            "on_failure_callback": [_alert(blueprint, settings)],
        },
        allowed_run_types=None if blueprint.backfills else BUT_BACKFILLS,
        params={} if blueprint.outlet is None else {"force": FORCE, "let_pass": LET_PASS},
        render_template_as_native_obj=False,
    )
    with dag:
        if blueprint.outlet is None:
            _verify_task(blueprint, settings)
            return dag
    # Closed, as the grid shows it at first, it is one square a run, and a run that found nothing
    # to do is not a row of skipped tasks.
    with dag, TaskGroup(TICK, prefix_group_id=False, tooltip=TICK_TOOLTIP):
        if settings.airflow.executor_mode is ExecutorMode.SUBMIT:
            _submit_tasks(blueprint, blueprint.outlet, settings)
        else:
            _connect_tasks(blueprint, blueprint.outlet, settings)
    return dag


def _resolving(blueprint: DagBlueprint, settings: Settings) -> dict[str, Any]:
    ended = [ResolvedNotifier(settings, view=blueprint.view)]
    return {"on_success_callback": ended, "on_skipped_callback": ended}


def _verify_task(blueprint: DagBlueprint, settings: Settings) -> None:
    options = _options(blueprint)
    options[Step.VERIFY] |= {"on_success_callback": [ResolvedNotifier(settings)]}

    @task(**options[Step.VERIFY])  # type: ignore[untyped-decorator]
    def verify() -> dict[str, Any]:
        return steps.verify(blueprint.view)

    verify()


def _connect_tasks(blueprint: DagBlueprint, published: AssetBlueprint, settings: Settings) -> None:
    options, outlet = _options(blueprint), as_asset(published)
    options[Step.PUBLISH] |= _resolving(blueprint, settings)

    @task(**options[Step.STAGE])  # type: ignore[untyped-decorator]
    def stage(attempt_id: str) -> str:
        return steps.stage(attempt_id)

    @task(**options[Step.AUDIT])  # type: ignore[untyped-decorator]
    def audit(attempt_id: str) -> str:
        return steps.audit(attempt_id)

    @task(**options[Step.PUBLISH])  # type: ignore[untyped-decorator]
    def publish(attempt_id: str) -> Iterator[Metadata]:
        yield from steps.publish(attempt_id, outlet)

    publish(audit(stage(_plan_task(blueprint, options, settings))))


def _submit_tasks(blueprint: DagBlueprint, published: AssetBlueprint, settings: Settings) -> None:
    # Only this mode needs the provider, and its import would slow down every parse.
    from spark_jobs.orchestration.submitted import submitted_refresh

    options, outlet = _options(blueprint), as_asset(published)
    options[Step.REPORT] |= _resolving(blueprint, settings)

    @task(**options[Step.REPORT])  # type: ignore[untyped-decorator]
    def report(attempt_id: str) -> Iterator[Metadata]:
        yield from steps.report(attempt_id, outlet)

    attempt_id = _plan_task(blueprint, options, settings)
    refresh: BaseOperator = submitted_refresh(settings, attempt_id, options[Step.REFRESH])
    refresh >> report(attempt_id)


def _plan_task(
    blueprint: DagBlueprint, options: Mapping[Step, dict[str, Any]], settings: Settings
) -> Any:
    """The first task of both modes; its value is the attempt's id."""
    # Someone may have published by hand: the next run finds nothing to do, and the incident is
    # still over.
    skipped = {"on_skipped_callback": _resolving(blueprint, settings)["on_skipped_callback"]}

    @task(**options[Step.PLAN], **skipped)  # type: ignore[untyped-decorator]
    def plan() -> str:
        return steps.plan(blueprint.view, get_current_context())

    return plan()


def _options(blueprint: DagBlueprint) -> dict[Step, dict[str, Any]]:
    """The arguments of each task; tasks that emit asset events have the DAG's assets."""
    inlets = {"inlets": [as_asset(one) for one in blueprint.inlets]}
    outlets = [] if blueprint.outlet is None else [as_asset(blueprint.outlet)]
    # Publishing depends on the verdict, and Airflow only knows assets that a task names.
    judged = [] if blueprint.quality is None else [as_asset(blueprint.quality)]
    announced = {"inlets": [*inlets["inlets"], *judged], "outlets": outlets}
    assets = {
        Step.PLAN: inlets,
        Step.PUBLISH: announced,
        Step.REPORT: announced,
        Step.VERIFY: inlets,
    }
    return {one.step: {**_task_options(one), **assets.get(one.step, {})} for one in blueprint.tasks}


def _task_options(blueprint: TaskBlueprint) -> dict[str, Any]:
    return {
        "task_id": str(blueprint.step),
        "retries": blueprint.retries,
        "retry_delay": timedelta(seconds=blueprint.retry_delay_seconds),
        "execution_timeout": timedelta(seconds=blueprint.timeout_seconds),
        "pool": str(blueprint.pool),
        # Limits writers to one; cleared and backfilled runs do not count against
        # max_active_runs.
        "max_active_tis_per_dag": 1 if blueprint.writes else None,
        "weight_rule": WeightRule.ABSOLUTE,
    }


def _alert(blueprint: DagBlueprint, settings: Settings) -> AlertNotifier:
    runbook = "gold-is-wrong" if blueprint.outlet is None else "gold-refresh"
    table = str(TableName(Layer.GOLD, blueprint.view))
    return AlertNotifier(settings, runbook=runbook, table=table)


def _paused(blueprint: DagBlueprint, settings: Settings) -> bool:
    first = settings.gold.scheduled_at_first
    # A DAG without a schedule must not be paused: a manual run would never start.
    return bool(first) and blueprint.cron is not None and blueprint.view not in first


def _timetable(blueprint: DagBlueprint) -> Any:
    cron, delay, days = blueprint.cron, blueprint.delay_seconds, blueprint.backfill_days
    if cron is None:
        return None
    # A cron string would create a timetable with empty intervals.
    if not delay and not days:
        return CronDataIntervalTimetable(cron, timezone=blueprint.time_zone)
    # Only these views need the timetable class, which a plugin registers in Airflow.
    from spark_jobs.orchestration.staggered import StaggeredTimetable

    return StaggeredTimetable(
        cron,
        time_zone=blueprint.time_zone,
        delay=timedelta(seconds=delay),
        backfill_days=days,
    )
