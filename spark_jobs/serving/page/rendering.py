"""The status page as HTML, and writing it so that a reader sees the old page or the new one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from spark_jobs.serving.page.facts import PageFacts


def rendered(facts: PageFacts) -> str:
    """The page as HTML; whatever a table, a person or an error says is text in it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from spark_jobs.orchestration.page_age import NOTICE, SCRIPT, opening, script_source
    from spark_jobs.serving.page.facts import NOTHING
    from spark_jobs.serving.page.picture import BOX_HEIGHT, BOX_WIDTH, picture

    environment = Environment(
        loader=PackageLoader("spark_jobs", "serving/page"),
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
