"""The DAGs that maintain the lake: each task runs one command of the command line.

A command runs in its own process: its Spark session ends with it, and its output is the task's log.
DAGs that work on tables are created paused if only some views are scheduled at first, as in the
demo, whose machine has no spare cores.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from airflow.sdk import (
    DAG,
    CronTriggerTimetable,
    get_current_context,
    get_parsing_context,
    task,
)

from spark_jobs.orchestration import overdue
from spark_jobs.orchestration.alerts import AlertNotifier, VerbCrashedError, VerbFoundError
from spark_jobs.orchestration.blueprint import Pool
from spark_jobs.orchestration.resolved import ResolvedNotifier
from spark_jobs.orchestration.retries import RetryTransient
from spark_jobs.orchestration.task_options import CONTROL, OWNER, operator_task
from spark_jobs.settings import Settings, load_settings
from spark_jobs.terminal.caller import FAILURE_FILE, reported_failure

MINUTE = 60
WIDTH = "160"
# Number of last lines of a failed command in the error, and so in its alert.
_LINES_TOLD = 10
# Exit status of a check that found a problem.
FOUND = 1

log = logging.getLogger("airflow.task.tidemark")


@dataclass(frozen=True)
class Verb:
    """A task.

    Attributes:
        words: its arguments, after the program's name.
        runbook: the runbook that an alert links to.
        judges: a check, which exits with 1 if it finds a problem; a retry would not help.
    """

    task_id: str
    words: tuple[str, ...]
    timeout_seconds: int
    runbook: str
    pool: str = Pool.MAINTENANCE
    judges: bool = True


@dataclass(frozen=True)
class MaintenanceDag:
    """A DAG of independent commands; the schedule is in UTC.

    Attributes:
        watches: it only reads reports and logs: it runs from the start, and also compares the
            freshness of views.
    """

    dag_id: str
    description: str
    cron: str
    verbs: tuple[Verb, ...]
    does: str
    runbooks: tuple[str, ...]
    watches: bool = False

    @property
    def doc_md(self) -> str:
        """The documentation of the DAG, for someone who finds it failed."""
        lines = "\n".join(f"- `tidemark {' '.join(verb.words)}`" for verb in self.verbs)
        books = "\n".join(f"- `docs/runbooks/{name}.md`" for name in self.runbooks)
        return (
            f"## {self.description}\n\n{self.does}\n\n### Runs\n\n{lines}\n\n"
            f"### When it fails\n\nThe task's log says what is wrong. Runbooks:\n\n{books}\n"
        )


MAINTENANCE = (
    MaintenanceDag(
        dag_id="ops__maintenance",
        description="Delete expired rows and unneeded files.",
        cron="17 3 * * *",
        verbs=(Verb("maintain", ("maintain",), 4 * 60 * MINUTE, "lake-grows", judges=False),),
        does="Deletes rows older than their table's `ttl`, in one commit per table, which gold "
        "views and sinks process; files that no readable version needs; expired staged results; "
        "old rows of the ledger; with `maintenance.airflow_days`, Airflow's old runs and logs. "
        "Clusters the files of tables with `cluster_by`. Files that a view, a sink, a stream or a "
        "run has not read yet are kept; the log names it. Writers compact the small files of their "
        "tables themselves.",
        runbooks=("lake-grows",),
    ),
    MaintenanceDag(
        dag_id="ops__logs",
        description="Delete unneeded entries of the tables' logs.",
        cron="37 * * * *",
        verbs=(Verb("logs", ("maintain", "--logs"), 30 * MINUTE, "lake-grows", judges=False),),
        does="Deletes the commits and checkpoints of each table's log that no readable version "
        "needs. A stream makes thousands of commits a day, and everyone who opens or writes a "
        "table lists them.",
        runbooks=("lake-grows",),
    ),
    MaintenanceDag(
        dag_id="ops__reconcile",
        description="Compare counts from Kafka to silver, and samples of gold.",
        cron="47 3 * * *",
        verbs=(
            Verb(
                "reconcile",
                ("reconcile", "--wait", "300"),
                60 * MINUTE,
                "records-do-not-add-up",
            ),
            Verb("verify", ("verify", "--all", "--sample"), 4 * 60 * MINUTE, "gold-is-wrong"),
            Verb(
                "quality",
                ("quality",),
                10 * MINUTE,
                "records-in-quarantine",
                pool=CONTROL,
                judges=False,
            ),
        ),
        does="Compares Kafka with bronze, bronze with silver, silver with the source database, and "
        "a sample of each gold view with its SQL. The log of `quality` is the report on yesterday: "
        "attempts, failed expectations, late publications, rejected records.",
        runbooks=("records-do-not-add-up", "gold-is-wrong", "records-in-quarantine"),
    ),
    MaintenanceDag(
        dag_id="ops__stream_watch",
        description="Check that streams, views and sinks report.",
        cron="*/5 * * * *",
        verbs=(
            Verb("watch", ("status", "--check"), 5 * MINUTE, "stream-silent", pool=CONTROL),
            Verb("page", ("page",), 5 * MINUTE, "stream-silent", pool=CONTROL, judges=False),
        ),
        does="The streams, continuous views and sinks report every few seconds. The task `watch` "
        "fails, and names the runbook, if one of them was silent for a minute, failed, is refused "
        "or blocked, or has waited for minutes; if a stream has more to read than one batch takes; "
        "or if a large refresh waits for a person. The task `freshness` alerts on each view that "
        "is later than its `freshness`. The task `page` writes the status page, which Airflow "
        "shows at `/tidemark/status`.",
        watches=True,
        runbooks=(
            "stream-silent",
            "stream-refused",
            "continuous-view",
            "sink-behind",
            "refresh-waits",
            "gold-refresh",
        ),
    ),
)


def maintenance_dags(settings: Settings | None = None) -> dict[str, DAG]:
    """The maintenance DAGs by id; in a process that runs one task, only that task's DAG."""
    settings = settings or load_settings()
    wanted = get_parsing_context().dag_id
    return {one.dag_id: _dag(one, settings) for one in MAINTENANCE if wanted in {None, one.dag_id}}


def run_verb(words: tuple[str, ...], *, judges: bool) -> None:
    """Run a command in its own process, with its output as the task's log.

    Raises:
        VerbFoundError: a check found a problem; with its last lines.
        VerbCrashedError: any other failure; it may be retried.
    """
    with tempfile.TemporaryDirectory(prefix="tidemark-") as directory:
        file = Path(directory, "failure.json")
        file.touch()
        code, last = _run(words, file)
        failure = reported_failure(file)
    if code:
        failed = "\n".join((f"tidemark {' '.join(words)} ended with {code}:", *last))
        # With any other status it did not come to a judgement.
        raised = VerbFoundError if judges and code == FOUND else VerbCrashedError
        raise raised(failed, failure)


def _run(words: tuple[str, ...], failure_file: Path) -> tuple[int, list[str]]:
    """Its exit code and its last lines."""
    last: deque[str] = deque(maxlen=_LINES_TOLD)
    program = [sys.executable, "-c", "from spark_jobs.cli.main import run; run()", *words]
    with subprocess.Popen(
        program,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": WIDTH, FAILURE_FILE: str(failure_file)},
    ) as process:
        try:
            for line in process.stdout or ():
                log.info("%s", line.rstrip())
                last.append(line.rstrip())
            return process.wait(), list(last)
        finally:
            # A task that is stopped or times out must leave no process behind.
            process.terminate()


def _dag(maintenance: MaintenanceDag, settings: Settings) -> DAG:
    # Without a start date, and with no time to look back, the first run is the next of the
    # schedule. With False, its default, Airflow makes up for one that is some minutes old.
    next_only = timedelta()
    with DAG(
        dag_id=maintenance.dag_id,
        description=maintenance.description,
        schedule=CronTriggerTimetable(maintenance.cron, timezone="UTC", run_immediately=next_only),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=bool(settings.gold.scheduled_at_first) and not maintenance.watches,
        tags=["operations", "maintenance"],
        doc_md=maintenance.doc_md,
        default_args={"owner": OWNER, "retry_policy": RetryTransient()},
        render_template_as_native_obj=False,
    ) as dag:
        for verb in maintenance.verbs:
            _task(verb, settings)()
        if maintenance.watches:
            _freshness_task(settings)()
    return dag


def _task(verb: Verb, settings: Settings) -> Callable[[], object]:
    options = operator_task(verb.task_id, timeout_seconds=verb.timeout_seconds, pool=str(verb.pool))
    alert = AlertNotifier(settings, runbook=verb.runbook)

    ended = ResolvedNotifier(settings)

    @task(**options, on_failure_callback=[alert], on_success_callback=[ended])
    def run() -> None:
        run_verb(verb.words, judges=verb.judges)

    made: Callable[[], object] = run
    return made


def _freshness_task(settings: Settings) -> Callable[[], object]:
    options = operator_task(overdue.TASK_ID, timeout_seconds=5 * MINUTE)
    alert = AlertNotifier(settings, runbook="gold-refresh")
    ended = ResolvedNotifier(settings, about_views=False)

    @task(**options, on_failure_callback=[alert], on_success_callback=[ended])
    def freshness() -> None:
        overdue.alert_overdue(load_settings(), get_current_context())

    made: Callable[[], object] = freshness
    return made
