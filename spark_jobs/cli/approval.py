"""Commands that ask first: the person at the terminal, or, by the settings, a second person."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

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


def confirmed(what: Sequence[str], *, yes: bool, question: str = "") -> None:
    """Ask for confirmation if it is needed.

    Args:
        what: the effects that need it; none needs none.
        yes: whether it was given on the command line.
        question: what to ask; by default, the effects.

    Raises:
        NotConfirmedError: there is no terminal to ask on.
        Exit: the answer is no.
    """
    from spark_jobs.deploy.errors import NotConfirmedError

    if yes or not what:
        return
    if not sys.stdin.isatty():
        raise NotConfirmedError(what)
    # The output may be JSON, and may go to a file or a program.
    if not typer.confirm(question or f"{'; '.join(what)}?", err=True):
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(1)
