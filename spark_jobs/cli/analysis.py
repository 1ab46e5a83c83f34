"""The option that says whether a command asks Spark's analyzer about gold views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spark_jobs.serving.sql.view_analysis import Analysis, Ask

AskSpark = Annotated[
    bool | None,
    typer.Option(
        "--spark/--no-spark",
        show_default=False,
        help="Ask Spark's analyzer about each view, or never. "
        "Default: if a Spark Connect server answers.",
    ),
]
AskSparkFirst = Annotated[
    bool,
    typer.Option(
        "--spark/--no-spark", help="Ask Spark's analyzer about each view that is new or changed."
    ),
]


def ask_of(spark: bool | None) -> Ask:
    """What the option says; None: it was not given."""
    from spark_jobs.serving.sql.view_analysis import Ask

    if spark is None:
        return Ask.IF_SERVED
    return Ask.ALWAYS if spark else Ask.NEVER


def print_note(analysis: Analysis) -> None:
    """Say on stderr if Spark was not asked, and how to ask it."""
    if analysis.note:
        typer.echo(analysis.note, err=True)
