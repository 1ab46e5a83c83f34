"""The approval of a replay, a rollback or a release, and who gave it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

from spark_jobs.orchestration.errors import SamePersonError
from spark_jobs.orchestration.steps import who
from spark_jobs.orchestration.task_options import CONTROL
from spark_jobs.sections import Approval
from spark_jobs.settings import Settings

APPROVAL_TASK = "approve"


class Question(ApprovalOperator):
    """A person reads the plan and approves it; no answer is a rejection.

    An answer that does not count fails the task, and the retry asks again.
    """

    def __init__(self, *, second_person: bool = False, **options: Any) -> None:
        """Ask.

        Args:
            second_person: the person who triggered the run may not approve it.
            options: of Airflow's operator.
        """
        super().__init__(**options)
        self.second_person = second_person

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Accept the answer, unless a second person is needed and the requester approved.

        Args:
            context: the task's context.
            event: the answer, with ``chosen_options`` and ``responded_by_user``.

        Raises:
            SamePersonError: the requester approved.
        """
        if self.second_person and self.APPROVE in event.get("chosen_options", ()):
            asked, answered = who(context), person(event)
            if answered in {None, asked}:
                raise SamePersonError(asked)
        return super().execute_complete(context, event)


def question(settings: Settings, *, subject: str, body: str) -> Question:
    """The task that asks."""
    return Question(
        task_id=APPROVAL_TASK,
        subject=subject,
        body=body,
        second_person=settings.replay.approval is Approval.SECOND_PERSON,
        defaults=ApprovalOperator.REJECT,
        response_timeout=timedelta(hours=settings.replay.approval_hours),
        execution_timeout=timedelta(hours=settings.replay.approval_hours + 1),
        # If the answer comes before the scheduler has processed the deferral, Airflow fails the
        # task (apache/airflow#66374), and the retry asks again.
        retries=3,
        retry_delay=timedelta(seconds=5),
        # The retry policy of the DAG's other tasks does not retry our errors.
        retry_policy=None,
        pool=CONTROL,
    )


def answer(context: Context) -> Mapping[str, Any]:
    """The answer, as ``person`` reads it; empty if no approval was needed."""
    return context["ti"].xcom_pull(task_ids=APPROVAL_TASK) or {}


def approver(context: Context) -> str | None:
    """Who approved the run; None if no approval was needed or given."""
    given = answer(context)
    return person(given) if Question.APPROVE in given.get("chosen_options", ()) else None


def person(given: Mapping[str, Any]) -> str | None:
    """Who gave an answer, as ``airflow:NAME``; None if the time ran out.

    Args:
        given: the answer; its ``responded_by_user`` has ``name`` and ``id``.
    """
    user = given.get("responded_by_user") or {}
    name = user.get("name") or user.get("id")
    return None if name is None else f"airflow:{name}"
