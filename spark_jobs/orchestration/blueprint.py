"""From the manifest to plain data about DAGs: what to build, without Airflow.

The rules of scheduling, retries and documentation are here, where a test reads them as values;
``airflow.py`` only translates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from zlib import crc32

from spark_jobs.definitions.schedules import at_most_daily, cron_of
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.graph.manifest import GoldEntry, Manifest
from spark_jobs.names import Layer, TableName
from spark_jobs.orchestration.documentation import verification_documentation, view_documentation
from spark_jobs.orchestration.errors import PeriodUnsupportedError
from spark_jobs.planning.ranges import time_column
from spark_jobs.sections import ExecutorMode

DAG_PREFIX = "gold__"
VERIFY_PREFIX = "verify__"
# Starts of views with a shorter period are not spread: a few seconds would not help.
SHORTEST_STAGGERED = 5 * 60
# Upper bound of a start's delay, for any period.
LONGEST_SPREAD = 30 * 60
RETRIES = 2
RETRY_DELAY_SECONDS = 15
ASSET_SCHEME = "x-tidemark"


class Pool(StrEnum):
    """The pools of tasks that use Spark, so that no kind of work starves another.

    The stack creates them by ``airflow.pools``; a task in a missing pool never starts.
    """

    LIVE = "live"
    REPLAY = "replay"
    MAINTENANCE = "maintenance"


class Step(StrEnum):
    """The tasks of a refresh, in order."""

    PLAN = "plan"
    STAGE = "stage"
    AUDIT = "audit"
    PUBLISH = "publish"
    # Without a Connect server, stage, audit and publish are one Spark application, and the next
    # task reads the outcome from the ledger.
    REFRESH = "refresh"
    REPORT = "report"
    # The only task of the verification DAG.
    VERIFY = "verify"


STEPS = {
    ExecutorMode.CONNECT: (Step.PLAN, Step.STAGE, Step.AUDIT, Step.PUBLISH),
    ExecutorMode.SUBMIT: (Step.PLAN, Step.REFRESH, Step.REPORT),
}

# Planning reads logs only; staging and auditing read data.
TIMEOUT_SECONDS = {
    Step.PLAN: 10 * 60,
    Step.STAGE: 2 * 60 * 60,
    Step.AUDIT: 60 * 60,
    Step.PUBLISH: 30 * 60,
    Step.REFRESH: 4 * 60 * 60,
    Step.REPORT: 10 * 60,
    Step.VERIFY: 2 * 60 * 60,
}


@dataclass(frozen=True)
class AssetBlueprint:
    """A table's name and URI in Airflow's asset graph."""

    name: str
    uri: str


@dataclass(frozen=True, kw_only=True)
class TaskBlueprint:
    """One task.

    Attributes:
        writes: it changes the published table, so only one may run at any time.
    """

    step: Step
    retries: int = RETRIES
    retry_delay_seconds: int = RETRY_DELAY_SECONDS
    timeout_seconds: int
    pool: Pool = Pool.LIVE
    writes: bool = False


@dataclass(frozen=True, kw_only=True)
class DagBlueprint:
    """One DAG: a gold view and when it is refreshed, or compared with its SQL.

    Attributes:
        cron: None for a DAG that only runs on demand.
        time_zone: of the cron expression.
        delay_seconds: from the end of an interval to the start of its run.
        backfills: whether intervals can be recomputed, which selects rows by their time.
        backfill_days: whether a backfill recomputes whole days, because intervals are shorter.
        tasks: in order; each depends on the previous one.
        inlets: what the DAG reads: a view's inputs, or the view that is verified.
        outlet: the view that is refreshed; None for a verification.
        quality: the asset of the view's verdicts.
    """

    dag_id: str
    view: str
    description: str
    owner: str
    tags: tuple[str, ...]
    doc_md: str
    cron: str | None
    time_zone: str = "UTC"
    delay_seconds: int = 0
    backfills: bool = False
    backfill_days: bool = False
    tasks: tuple[TaskBlueprint, ...]
    inlets: tuple[AssetBlueprint, ...]
    outlet: AssetBlueprint | None
    quality: AssetBlueprint | None = None


def blueprints(
    manifest: Manifest, mode: ExecutorMode = ExecutorMode.CONNECT, *, own_timetable: bool = True
) -> tuple[DagBlueprint, ...]:
    """The DAGs of all gold views, in the order of their names.

    Args:
        manifest: the project.
        mode: how tasks reach Spark.
        own_timetable: whether our timetable is registered in Airflow: it spreads starts within
            each period, and lets a backfill recompute whole days.

    Raises:
        PeriodUnsupportedError: a view's period is not one of aligned intervals.
    """
    entries = [entry for _, entry in sorted(manifest.gold.items())]
    compared = [entry for entry in entries if entry.verify_seconds is not None]
    delays = start_delays(entries) if own_timetable else {}
    refreshed = (
        blueprint(one, mode, delay=delays.get(one.name, 0), own_timetable=own_timetable)
        for one in entries
    )
    return (*refreshed, *map(verify_blueprint, compared))


def start_delays(entries: Sequence[GoldEntry]) -> dict[str, int]:
    """The delay of each view's start after the end of its interval, in seconds, by view.

    Views are ordered: upstream views first, then by a hash of the name that is the same in every
    process. The delay is the view's position in this order, as a share of its period's spread. So
    starts are even, and views of different periods that are due together start apart too. Views
    without a period have no delay.
    """
    due = [one for one in entries if _period(one) is not None]
    row = sorted(due, key=lambda one: (one.tier, crc32(one.name.encode()), one.name))
    return {
        one.name: int(_spread(_period(one) or 0) * place / len(row))
        for place, one in enumerate(row)
    }


def _period(entry: GoldEntry) -> int | None:
    # An explicit schedule means that very minute, so its start is not delayed.
    return None if entry.refresh is RefreshPolicy.CONTINUOUS else entry.every_seconds


def _spread(period: int) -> float:
    return 0 if period < SHORTEST_STAGGERED else min(period / 2, LONGEST_SPREAD)


def blueprint(
    entry: GoldEntry,
    mode: ExecutorMode = ExecutorMode.CONNECT,
    *,
    delay: int = 0,
    own_timetable: bool = True,
) -> DagBlueprint:
    """The DAG of one gold view.

    Raises:
        PeriodUnsupportedError: the view's period is not one of aligned intervals.
    """
    cron = entry.schedule or _cron(entry, _period(entry))
    backfills = cron is not None and time_column(entry) is not None
    backfill_days = own_timetable and backfills and cron is not None and not at_most_daily(cron)
    return DagBlueprint(
        dag_id=dag_id(entry.name),
        view=entry.name,
        description=" ".join(entry.description.split()),
        owner=entry.owner,
        tags=_tags(entry),
        doc_md=view_documentation(entry, cron, delay, backfill_days=backfill_days),
        cron=cron,
        time_zone=entry.time_zone,
        delay_seconds=delay,
        backfills=backfills,
        backfill_days=backfill_days,
        tasks=_tasks(mode),
        inlets=tuple(asset(TableName.parse(name)) for name in entry.inputs),
        outlet=asset(entry.table_name),
        quality=quality_asset(entry.table_name),
    )


def verify_blueprint(entry: GoldEntry) -> DagBlueprint:
    """The DAG that compares a sample of one gold view with its SQL, in the declared period.

    Raises:
        PeriodUnsupportedError: the period is not one of aligned intervals.
    """
    return DagBlueprint(
        dag_id=f"{VERIFY_PREFIX}{entry.name}",
        view=entry.name,
        description=f"Compare a sample of {entry.table_name} with its SQL.",
        owner=entry.owner,
        tags=tuple(sorted({*_tags(entry), str(Step.VERIFY)})),
        doc_md=verification_documentation(entry),
        cron=_cron(entry, entry.verify_seconds),
        tasks=(_task(Step.VERIFY),),
        inlets=(asset(entry.table_name),),
        outlet=None,
    )


def dag_id(view: str) -> str:
    """The id of a view's DAG.

    >>> dag_id("daily_order_summary")
    'gold__daily_order_summary'
    """
    return f"{DAG_PREFIX}{view}"


def asset(table: TableName) -> AssetBlueprint:
    """The asset of a table; its URI names the table, not its location.

    >>> asset(TableName.parse("gold.daily_order_summary")).uri
    'x-tidemark://gold/daily_order_summary'
    """
    return AssetBlueprint(str(table), f"{ASSET_SCHEME}://{table.layer}/{table.name}")


def quality_asset(table: TableName) -> AssetBlueprint:
    """The asset of a view's verdicts.

    >>> quality_asset(TableName.parse("gold.daily_order_summary")).name
    'gold.daily_order_summary.quality'
    """
    about = asset(table)
    return AssetBlueprint(f"{about.name}.quality", f"{about.uri}/quality")


def _cron(entry: GoldEntry, seconds: int | None) -> str | None:
    if seconds is None:
        return None
    cron = cron_of(seconds)
    if cron is None:
        raise PeriodUnsupportedError(entry.name, seconds, file=entry.file)
    return cron


def _tags(entry: GoldEntry) -> tuple[str, ...]:
    ours = {
        str(Layer.GOLD),
        f"tier:{entry.tier}",
        f"refresh:{entry.refresh}",
        f"owner:{entry.owner}",
    }
    return tuple(sorted(ours | set(entry.tags)))


def _tasks(mode: ExecutorMode) -> tuple[TaskBlueprint, ...]:
    return tuple(_task(step) for step in STEPS[mode])


def _task(step: Step) -> TaskBlueprint:
    return TaskBlueprint(
        step=step,
        timeout_seconds=TIMEOUT_SECONDS[step],
        pool=Pool.MAINTENANCE if step is Step.VERIFY else Pool.LIVE,
        writes=step in {Step.PUBLISH, Step.REFRESH},
    )
