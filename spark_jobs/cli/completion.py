"""Shell completion: names of views, tags and owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.errors import LakehouseError
from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest

VIEWS_HELP = "Gold views, or selections of them: tag:NAME, owner:NAME, path:DIR, +VIEW, VIEW+."


TABLES_HELP = (
    "Gold views, silver tables as silver.NAME, or selections of both: tag:NAME, owner:NAME, "
    "path:DIR, +VIEW, TABLE+."
)


def complete_views(context: typer.Context, incomplete: str) -> list[str]:
    """Views and selections with this prefix, from the last manifest; never raises.

    A + before a name is kept.
    """
    manifest = _last_manifest(context)
    return [] if manifest is None else _starting(incomplete, _views_and_selections(manifest))


def complete_tables(context: typer.Context, incomplete: str) -> list[str]:
    """The same, and silver tables."""
    manifest = _last_manifest(context)
    if manifest is None:
        return []
    silver = (f"silver.{name}" for name in sorted(manifest.silver))
    return _starting(incomplete, [*_views_and_selections(manifest), *silver])


def _last_manifest(context: typer.Context) -> Manifest | None:
    from spark_jobs.graph.manifest import Manifest

    project = context.find_root().params.get("project")
    try:
        return Manifest.read(load_settings(project).manifest_file)
    except (LakehouseError, OSError, ValueError):
        return None


def _views_and_selections(manifest: Manifest) -> list[str]:
    views = manifest.gold.values()
    return [
        *sorted(manifest.gold),
        *sorted({f"tag:{tag}" for view in views for tag in view.tags}),
        *sorted({f"owner:{view.owner}" for view in views}),
        "state:changed",
    ]


def _starting(incomplete: str, known: list[str]) -> list[str]:
    plus = "+" if incomplete.startswith("+") else ""
    return [f"{plus}{one}" for one in known if one.startswith(incomplete.removeprefix("+"))]


Views = Annotated[list[str] | None, typer.Argument(help=VIEWS_HELP, autocompletion=complete_views)]
