"""``tidemark page``: one HTML file that shows every table, how it stands, and what reads what.

The file needs nothing beside itself. Its policy lets one script run, which shows that it is old.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.cli.project import open_project

if TYPE_CHECKING:
    from spark_jobs.cli.page_facts import PageFacts


def page(
    context: typer.Context,
    to: Annotated[
        Path | None,
        typer.Option(help="The file. Default: status.html in the state directory."),
    ] = None,
) -> None:
    """Write one HTML file: all tables, their freshness, audits, streams, sinks, and lineage."""
    from spark_jobs.cli.page_reading import page_facts
    from spark_jobs.state.types import utc_now

    with open_project(context) as project:
        facts = page_facts(project, now=utc_now())
        file = to or project.settings.status_page
    write_page(rendered(facts), file)
    typer.echo(f"Wrote {file}.")


def rendered(facts: PageFacts) -> str:
    """The page as HTML; whatever a table, a person or an error says is text in it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from spark_jobs.cli.page_facts import NOTHING
    from spark_jobs.cli.page_picture import BOX_HEIGHT, BOX_WIDTH, picture
    from spark_jobs.orchestration.page_age import NOTICE, SCRIPT, opening, script_source

    environment = Environment(
        loader=PackageLoader("spark_jobs", "cli"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        facts=facts,
        picture=picture(facts),
        box_width=BOX_WIDTH,
        box_height=BOX_HEIGHT,
        nothing=NOTHING,
        opening=opening(facts.at),
        notice=NOTICE,
        script=SCRIPT,
        script_source=script_source(),
    )


def write_page(text: str, file: Path) -> None:
    """Write so that a reader sees the old page or the new one; only its owner may read it.

    Raises:
        BadParameter: the file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            # An error's text may hold half of a character, which no encoding has.
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text)
            Path(temporary).replace(file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from error
