"""Shell completion: names of views, tags and owners."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_jobs.errors import LakehouseError
from spark_jobs.settings import load_settings

VIEWS_HELP = "Gold views, or selections of them: tag:NAME, owner:NAME, path:DIR, +VIEW, VIEW+."


def complete_views(context: typer.Context, incomplete: str) -> list[str]:
    """Views and selections with this prefix, from the last manifest; never raises.

    A + before a name is kept.
    """
    from spark_jobs.graph.manifest import Manifest

    plus = "+" if incomplete.startswith("+") else ""
    project = context.find_root().params.get("project")
    try:
        manifest = Manifest.read(load_settings(project).manifest_file)
    except (LakehouseError, OSError, ValueError):
        return []
    views = manifest.gold.values()
    known = [
        *sorted(manifest.gold),
        *sorted({f"tag:{tag}" for view in views for tag in view.tags}),
        *sorted({f"owner:{view.owner}" for view in views}),
        "state:changed",
    ]
    return [f"{plus}{one}" for one in known if one.startswith(incomplete.removeprefix("+"))]


Views = Annotated[list[str] | None, typer.Argument(help=VIEWS_HELP, autocompletion=complete_views)]
