"""Commands that need the approval of a second person, if the settings require it."""

from __future__ import annotations

from spark_jobs.errors import LakehouseError
from spark_jobs.sections import Approval
from spark_jobs.settings import Settings


class SecondPersonNeededError(LakehouseError):
    """A command that needs the approval of a second person, which only Airflow can ask for."""

    condition = "SECOND_PERSON_NEEDED"
    form: str
    primary = "this needs the approval of a second person, which the command line cannot ask for"
    hint = (
        "Use the form {form} in Airflow, where somebody else can approve; the setting "
        "replay.approval requires it."
    )


def alone_is_enough(settings: Settings, *, form: str) -> None:
    """Check that no second person has to approve.

    Args:
        settings: of the project.
        form: the DAG that asks for the approval.

    Raises:
        SecondPersonNeededError: the settings require a second person.
    """
    if settings.replay.approval is Approval.SECOND_PERSON:
        raise SecondPersonNeededError(form)
