"""The question that a person answers before a replay, a rollback or a release, and who did."""

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
    """A person reads the plan and agrees; silence is no.

    An answer that does not count fails the task, and its next try asks again.
    """

    def __init__(self, *, second_person: bool = False, **options: Any) -> None:
        """Ask.

        Args:
            second_person: whoever asked for the run may not approve it.
            options: of Airflow's operator.
        """
        super().__init__(**options)
        self.second_person = second_person

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Take the answer, unless it is an approval by who asked where a second person is needed.

        Raises:
            SamePersonError: who asked also approved.
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
        # Airflow takes the end of the process that asked for the end of the task where the answer
        # comes before the scheduler has heard of it (apache/airflow#66374): it is asked again.
        retries=3,
        retry_delay=timedelta(seconds=5),
        # The policy of the DAG's other tasks gives up at the first error of ours.
        retry_policy=None,
        pool=CONTROL,
    )


def answer(context: Context) -> Mapping[str, Any]:
    """What was answered; empty where nobody was asked."""
    return context["ti"].xcom_pull(task_ids=APPROVAL_TASK) or {}


def approver(context: Context) -> str | None:
    """Who approved the run; None where nobody was asked, or did."""
    given = answer(context)
    return person(given) if Question.APPROVE in given.get("chosen_options", ()) else None


def person(given: Mapping[str, Any]) -> str | None:
    """Who gave an answer; None: nobody, as time ran out."""
    user = given.get("responded_by_user") or {}
    name = user.get("name") or user.get("id")
    return None if name is None else f"airflow:{name}"
