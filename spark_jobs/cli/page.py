"""``tidemark page``: writes one HTML file with the status of all tables and their lineage.

The file is self-contained. Its policy allows one script, which marks the page if it is out of date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.serving.project import open_project


def page(
    context: typer.Context,
    to: Annotated[
        Path | None,
        typer.Option(help="The file. Default: status.html in the state directory.", dir_okay=False),
    ] = None,
) -> None:
    """Write the status page, one HTML file: freshness, audits, streams, sinks, lineage."""
    from spark_jobs.serving.page.reading import page_facts
    from spark_jobs.serving.page.rendering import rendered, write_page
    from spark_jobs.state.types import utc_now

    if to is not None and not to.parent.is_dir():
        raise typer.BadParameter(f"directory {str(to.parent)!r} does not exist")
    with open_project(context) as project:
        facts = page_facts(project, now=utc_now())
        file = to or project.settings.status_page
    write_page(rendered(facts), file)
    typer.echo(f"Wrote {file}.")
