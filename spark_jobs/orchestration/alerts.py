"""Alerts: their content when a task finally fails, and the notifiers that send them.

Settings name the notifiers: classes of Airflow, or subclasses of its ``BaseNotifier``. Their
templates can use ``alert``, the value of this module.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from airflow.sdk import BaseNotifier, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from spark_jobs.errors import LakehouseError
from spark_jobs.orchestration.errors import NotifierUnusableError
from spark_jobs.orchestration.runbooks import runbook_of
from spark_jobs.quality.errors import GateBlockedError
from spark_jobs.sections import NotifierSettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.terminal.caller import Failure

FILE: Final = "alerts.jsonl"
# At this size the file is rotated; one old file is kept.
MOST_BYTES: Final = 10_000_000
OPEN: Final = "open"
RESOLVED: Final = "resolved"
# Characters of an error's text; the task's log contains all of it.
_LONGEST: Final = 2000

log = logging.getLogger("airflow.task.tidemark")


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A task that failed and will not be retried.

    Attributes:
        at: time of the failure, in ISO 8601 with the zone.
        environment: the setting of that name.
        table: the gold view's name in SQL; None if the task is about more than one.
        condition: of the error, as in the runbooks; ``TASK_FAILED`` if the task failed with a
            message only, ``TASK_LOST`` if its process was lost; otherwise the type of the error.
        message: the error, in one or a few lines.
        todo: what to do.
        runbook: the URL of the runbook of the condition, or else of the DAG.
        log_url: the task's log in Airflow; "" if unknown.
        status: ``open``, or ``resolved`` after a later run succeeded.
        since: the first failure for this reason, in ISO 8601 with the zone.
        times: number of failures since then.
    """

    at: str
    environment: str
    dag_id: str
    task_id: str
    run_id: str
    table: str | None
    condition: str
    message: str
    todo: str
    runbook: str
    log_url: str
    status: str = OPEN
    since: str = ""
    times: int = 1

    @property
    def subject(self) -> str:
        """One line for a subject or title."""
        ended = "resolved: " if self.status == RESOLVED else ""
        return f"[{self.environment}] {ended}{self.table or self.dag_id}: {self.condition}"

    @property
    def text(self) -> str:
        """The whole alert as plain text."""
        where = f"{self.dag_id}, task {self.task_id}, run {self.run_id}"
        if self.status == RESOLVED:
            what = f"Resolved at {self.at}, after {self.times} failures since {self.since}."
            return f"{self.subject}\n{what}\n{where}"
        lines = (self.subject, self.message, self.todo, f"Runbook: {self.runbook}", where)
        return "\n".join(filter(None, (*lines, self.log_url)))


class AlertSentError(AirflowFailException):
    """A task failed because another one did, whose alert was already sent."""


class VerbFoundError(AirflowFailException):
    """A verb of the command line found something wrong; trying again would not help."""

    def __init__(self, message: str, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure


class VerbCrashedError(RuntimeError):
    """A verb of the command line could not do its work."""

    def __init__(self, message: str, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure


class AlertNotifier(BaseNotifier):
    """Sends an alert through every notifier of the settings, even if one of them fails."""

    def __init__(
        self, settings: Settings, *, runbook: str, table: str | None = None, lasts: bool = True
    ) -> None:
        """Check that the notifiers can be created.

        Args:
            settings: of the project.
            runbook: the page below the settings' ``alerts.runbooks`` for failures whose condition
                has none.
            table: the gold view that the DAG is about.
            lasts: failures of one kind are one incident, which ends with a successful run.
                Otherwise, if each run is a person's request, each failure is an alert.

        Raises:
            NotifierUnusableError: a class does not exist, is no notifier, or refuses its arguments.
        """
        super().__init__()
        self._settings, self._runbook, self._table = settings, runbook, table
        self._lasts = lasts
        for one in settings.alerts.notifiers:
            _made(one)

    def notify(self, context: Context) -> None:
        """Send the alert, unless another task or an earlier run already sent it."""
        error: Any = context.get("exception")
        if any(isinstance(one, AlertSentError) for one in _chain(error)):
            return
        alert = alert_of(
            context,
            table=self._table,
            runbook=self._runbook,
            settings=self._settings,
        )
        if self._lasts:
            gate = _gate(error)
            # The rows that fail may be others in the next run; the incident is the same.
            about = gate.primary if gate else None
            alert, new = with_incident(self._settings, alert, about=about)
            if not new:
                log.info("not reported again: %s, %d times since %s", alert.subject, *_past(alert))
                return
        send(self._settings, alert, context)


def send(settings: Settings, alert: Alert, context: Context) -> None:
    """Send an alert through every notifier of the settings, even if one of them fails."""
    for one in settings.alerts.notifiers:
        try:
            # Created for each alert, because rendering replaces a notifier's templates.
            _made(one)({**context, "alert": alert})
        except Exception:
            log.exception("notifier %s failed", one.notifier)


class FileNotifier(BaseNotifier):
    """Writes one JSON line for each alert to ``alerts.jsonl`` in the state directory."""

    def notify(self, context: Context) -> None:
        """Append the line."""
        alert: Any = context["alert"]  # type: ignore[typeddict-item]
        file = load_settings().state / FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and file.stat().st_size > MOST_BYTES:
            file.replace(_put_aside(file))
        line = json.dumps(asdict(alert)) + "\n"
        # A single append, so that lines of concurrent tasks do not mix.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def alert_of(
    context: Mapping[str, Any], *, table: str | None, runbook: str, settings: Settings
) -> Alert:
    """The alert for a task's failure, from the context that Airflow passes to callbacks.

    If the task's process was killed, the context contains no error.

    Args:
        context: from Airflow; ``ti`` and ``exception`` are read.
        table: the gold view that the DAG is about.
        runbook: the page for failures whose condition has none.
        settings: of the project.
    """
    ti, error = context["ti"], context.get("exception")
    ours = next((one for one in _chain(error) if isinstance(one, LakehouseError)), None)
    if ours is not None:
        condition, message, todo = ours.condition, ours.primary, ours.hint
        if isinstance(ours, GateBlockedError):
            message += f"\n{ours.detail}"
    elif error is None:
        condition, message, todo = "TASK_LOST", "the task's process ended without a message", None
    elif isinstance(error, VerbFoundError | VerbCrashedError):
        failure = error.failure
        condition, message, todo = failure.condition or "TASK_FAILED", str(error), failure.todo
        runbook = failure.runbook or runbook
    else:
        plain = isinstance(error, AirflowException)
        condition = "TASK_FAILED" if plain else type(error).__name__
        message, todo = str(error), None
        if not plain and _reads_personal(settings, table):
            message = "its message may have personal data; the task's log has it"
    if _reads_personal(settings, table):
        from spark_jobs.graph.personal import without_values

        message = without_values(message)
    return Alert(
        at=datetime.now(UTC).isoformat(),
        environment=settings.environment,
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        run_id=ti.run_id,
        table=table,
        condition=condition,
        message=message[:_LONGEST],
        todo=todo or "Read the task's log, then the runbook.",
        runbook=runbook_at(settings, runbook_of(condition, otherwise=runbook)),
        log_url=str(getattr(ti, "log_url", None) or ""),
    )


def _reads_personal(settings: Settings, table: str | None) -> bool:
    """Whether a gold view reads personal data, which an error of Spark may show."""
    from spark_jobs.graph.personal import reads_personal
    from spark_jobs.orchestration.compiled import compiled_manifest

    try:
        manifest = compiled_manifest(settings)
    except LakehouseError:
        # DAGs are made from it, so this is no task of a view.
        return False
    entry = manifest.gold.get((table or "").removeprefix("gold."))
    return entry is not None and reads_personal(manifest, entry)


def _gate(error: BaseException | None) -> GateBlockedError | None:
    """The gate's refusal. Its detail names rules and keys, while others may contain values."""
    return next((one for one in _chain(error) if isinstance(one, GateBlockedError)), None)


def runbook_at(settings: Settings, name: str) -> str:
    """The URL of a runbook, below the folder or URL of the settings."""
    return f"{settings.alerts.runbooks.rstrip('/')}/{name}.md"


def with_incident(
    settings: Settings, alert: Alert, *, about: str | None = None
) -> tuple[Alert, bool]:
    """Record the failure; returns the alert with its history, and whether to send it.

    If the control database cannot be reached, it is sent.

    Args:
        settings: of the project.
        alert: the failure.
        about: distinguishes incidents of one condition; None: the message does.
    """
    from spark_jobs.state.incidents import Incident, fault_of, new_incident_id
    from spark_jobs.state.store import ControlStore

    now = datetime.fromisoformat(alert.at)
    failure = Incident(
        incident_id=new_incident_id(),
        dag_id=alert.dag_id,
        task_id=alert.task_id,
        fault=fault_of(alert.condition, about or alert.message),
        table=alert.table,
        condition=alert.condition,
        message=alert.message,
        runbook=alert.runbook,
        opened_at=now,
        last_at=now,
        times=1,
        told_at=now,
    )
    again = timedelta(hours=settings.alerts.repeat_hours)
    try:
        with ControlStore.open(settings.control_url) as store:
            known, new = store.open_incident(failure, again_after=again)
    except Exception:
        log.exception("the incident cannot be recorded")
        return replace(alert, since=alert.at), True
    return replace(alert, since=known.opened_at.isoformat(), times=known.times), new


def _past(alert: Alert) -> tuple[int, str]:
    return alert.times, alert.since


def _chain(error: object) -> Iterator[BaseException]:
    """An error and its causes; final failures are Airflow's exceptions, with ours as the cause."""
    while isinstance(error, BaseException):
        yield error
        error = error.__cause__ or error.__context__


def _made(one: NotifierSettings) -> BaseNotifier:
    module, _, name = one.notifier.rpartition(".")
    try:
        found = getattr(import_module(module), name)
        if not (isinstance(found, type) and issubclass(found, BaseNotifier)):
            raise TypeError("it is not a subclass of airflow.sdk.BaseNotifier")
        return found(**one.arguments)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise NotifierUnusableError(one.notifier, str(error)) from error


def _put_aside(file: Path) -> Path:
    return file.with_name(f"{file.name}.1")
