"""Alerts: what is said when a task of ours fails for good, and the notifiers that say it.

A notifier is a class of Airflow's, or one that follows its ``BaseNotifier``; settings name it.
Its templates may use ``alert``, the value of this module.
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
from spark_jobs.sections import NotifierSettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.terminal.caller import Failure

FILE: Final = "alerts.jsonl"
# Beyond this many bytes the file is put aside, and the one that was put aside before goes.
MOST_BYTES: Final = 10_000_000
OPEN: Final = "open"
RESOLVED: Final = "resolved"
# Of the text of an error; the task's log has all of it.
_LONGEST: Final = 2000

log = logging.getLogger("airflow.task.tidemark")


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A task that failed and will not be tried again.

    Attributes:
        at: when, in ISO 8601 with the zone.
        environment: the setting of that name.
        table: the gold view as SQL names it; None where the task is about more than one.
        condition: of the error, as runbooks name it; ``TASK_FAILED`` where a task says in words
            that it failed, ``TASK_LOST`` where it could not; otherwise the type of the error.
        message: the error in one line, or in a few.
        todo: what to do.
        runbook: where it is told how; of the condition, or else of the DAG.
        log_url: the task's log in Airflow; "" where that is not known.
        status: ``open``, or ``resolved`` where a later run showed that the fault is over.
        since: when the task failed for this reason first, in ISO 8601 with the zone.
        times: how often it failed since.
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
        """One line for a heading."""
        ended = "resolved: " if self.status == RESOLVED else ""
        return f"[{self.environment}] {ended}{self.table or self.dag_id}: {self.condition}"

    @property
    def text(self) -> str:
        """All of it, for a message without form."""
        where = f"{self.dag_id}, task {self.task_id}, run {self.run_id}"
        if self.status == RESOLVED:
            what = f"Resolved at {self.at}, after {self.times} failures since {self.since}."
            return f"{self.subject}\n{what}\n{where}"
        lines = (self.subject, self.message, self.todo, f"Runbook: {self.runbook}", where)
        return "\n".join(filter(None, (*lines, self.log_url)))


class ToldBeforeError(AirflowFailException):
    """A task that fails because another one did; the alert of that one is enough."""


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
    """Tells of a failure through every notifier of the settings; one that fails stops no other."""

    def __init__(
        self, settings: Settings, *, runbook: str, table: str | None = None, lasts: bool = True
    ) -> None:
        """Check that the notifiers can be made.

        Args:
            settings: of the project.
            runbook: the page below the settings' ``alerts.runbooks`` for failures whose condition
                has none.
            table: the gold view that the DAG is about.
            lasts: failures of one kind are one incident, which ends with a run that succeeds.
                Where each run is a person's own request, each failure is told.

        Raises:
            NotifierUnusableError: a notifier is not there, is none, or refuses its arguments.
        """
        super().__init__()
        self._settings, self._runbook, self._table = settings, runbook, table
        self._lasts = lasts
        for one in settings.alerts.notifiers:
            _made(one)

    def notify(self, context: Context) -> None:
        """Say it, unless the alert of another task or of an earlier run said it."""
        error: Any = context.get("exception")
        if any(isinstance(one, ToldBeforeError) for one in _chain(error)):
            return
        alert = alert_of(
            context,
            table=self._table,
            runbook=self._runbook,
            settings=self._settings,
        )
        if self._lasts:
            alert, new = with_incident(self._settings, alert)
            if not new:
                log.info("not reported again: %s, %d times since %s", alert.subject, *_past(alert))
                return
        tell(self._settings, alert, context)


def tell(settings: Settings, alert: Alert, context: Context) -> None:
    """Hand an alert to every notifier of the settings; one that fails stops no other."""
    for one in settings.alerts.notifiers:
        try:
            # Made again, as rendering replaces the templates that a notifier was made with.
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
        # One write at the end of the file, so that tasks that fail at once do not mix their lines.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def alert_of(
    context: Mapping[str, Any], *, table: str | None, runbook: str, settings: Settings
) -> Alert:
    """The alert of a task's failure, from the context that Airflow hands to callbacks.

    The context of a task whose process was killed knows no error.

    Args:
        context: Airflow's.
        table: the gold view that the DAG is about.
        runbook: the page for failures whose condition has none.
        settings: of the project.
    """
    ti, error = context["ti"], context.get("exception")
    ours = next((one for one in _chain(error) if isinstance(one, LakehouseError)), None)
    if ours is not None:
        condition, message, todo = ours.condition, ours.primary, ours.hint
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


def runbook_at(settings: Settings, name: str) -> str:
    """Where a runbook is: below the folder or URL that the settings name."""
    return f"{settings.alerts.runbooks.rstrip('/')}/{name}.md"


def with_incident(
    settings: Settings, alert: Alert, *, about: str | None = None
) -> tuple[Alert, bool]:
    """Record the failure; returns the alert with its past, and whether people are to be told.

    They are told where that cannot be found out.

    Args:
        settings: of the project.
        alert: the failure.
        about: what tells incidents of the condition apart; None: the message.
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
    """An error and those that it came from; a task fails for good with an error of Airflow's."""
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
