"""Verbs that a second person has to agree to, where the settings ask for one."""

from __future__ import annotations

from spark_jobs.errors import LakehouseError
from spark_jobs.sections import Approval
from spark_jobs.settings import Settings


class SecondPersonNeededError(LakehouseError):
    """One person alone asks for what needs two, on the command line."""

    condition = "SECOND_PERSON_NEEDED"
    form: str
    primary = "this needs the approval of a second person, which the command line cannot ask for"
    hint = (
        "Use the form {form} in Airflow, where somebody else can approve; the setting "
        "replay.approval requires it."
    )


def alone_is_enough(settings: Settings, *, form: str) -> None:
    """Go on where one person may decide.

    Args:
        settings: of the project.
        form: the DAG that asks another person.

    Raises:
        SecondPersonNeededError: the settings ask for a second person.
    """
    if settings.replay.approval is Approval.SECOND_PERSON:
        raise SecondPersonNeededError(form)
